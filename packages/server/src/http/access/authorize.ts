import { isPawlError, type JobView, type Pawl, type PawlError, type Scheduler } from "pawl";
import { type Action, isOwnTask, pawlError, permit, type Subject } from "pawl/service";
import type { AnyRoute } from "../contract/route.js";
import { tenantOf } from "../handler.js";
import type { RequestFields } from "../request/validate.js";
import { BULK_TASK } from "../tasks/bulk-task.js";
import { isRestricted, readableOf } from "./hidden-jobs.js";
import type { Principal } from "./principal.js";

export function refuseReserved(task: string): void {
  if (isOwnTask(task)) throw pawlError("task_reserved", { task });
}

/**
 * Checks everything a request names against its caller: every tenant anywhere in it, and the tasks and queues it is
 * about. Of a batch every item is checked, before anything is done. A job or schedule that a caller may not read is
 * answered as one that does not exist.
 */
export function authorizer(route: AnyRoute): (caller: Principal, fields: RequestFields, scheduler: Scheduler, pawl: Pawl) => Promise<void> {
  const tenants = [...tenantPaths("params", route.params), ...tenantPaths("query", route.query), ...tenantPaths("body", route.body)];
  const { policy } = route;
  return async (caller, fields, scheduler, pawl) => {
    if ("open" in policy) return;
    if (caller.tenant !== undefined) {
      for (const path of tenants) for (const name of valuesAt(fields, path)) checkTenant(caller.tenant, name);
    }
    if (policy.action === "jobs.write" || policy.action === "schedules.write") checkReserved(fields.body);
    // A worker names its tasks and queues when it claims, and is held to them job by job: see routes/leases.ts.
    if (policy.action === "leases.write" || !isRestricted(caller)) return;
    for (const { subject, unknown } of await subjectsOf(caller, fields, scheduler)) {
      const permission = permit(caller, policy.action, subject);
      if (permission.allowed) continue;
      const forbidden = pawlError("forbidden", { action: route.id, reason: `its ${permission.why} is not one of its own` });
      throw unknown === undefined || permit(caller, unknown.by, subject).allowed ? forbidden : unknown.as(forbidden);
    }
    if (policy.action === "jobs.write") await checkParents(route, caller, fields.body as EnqueueBody, pawl);
  };
}

/** Whether a caller may do it to anything at all: known before the body is read. */
export function authorizeRoute(route: AnyRoute, caller: Principal): void {
  const { policy } = route;
  if ("open" in policy) return;
  const anywhere = { tenant: caller.tenant, grants: caller.grants.map(({ role }) => ({ role })) };
  const permission = permit(anywhere, policy.action);
  if (!permission.allowed) {
    const reason = permission.why === "tenant" ? "it is for all tenants together" : "its role does not include it";
    throw pawlError("forbidden", { action: route.id, reason });
  }
  if (policy.scope === "tenant" || caller.tenant === undefined) return;
  if (policy.allTenantsOnly !== undefined) throw pawlError("all_tenants_only", { what: policy.allTenantsOnly });
  throw pawlError("forbidden", { action: route.id, reason: "it is for all tenants together" });
}

function checkTenant(own: string, name: unknown): void {
  if (name !== undefined && name !== own) throw pawlError("tenant_mismatch", { tenant: String(name) });
}

interface TaskAndQueue {
  readonly task?: string;
  readonly queue?: string;
}

function checkReserved(body: unknown): void {
  const { jobs, task } = body as { readonly jobs?: readonly TaskAndQueue[]; readonly task?: string };
  for (const name of [task, ...(jobs ?? []).map((job) => job.task)]) if (name !== undefined) refuseReserved(name);
}

/** Something that a request is about. */
interface RequestSubject {
  readonly subject: Subject;
  /** what was found by its id or name: whoever may not read it by this action is told that there is none */
  readonly unknown?: { readonly by: Action; as(forbidden: PawlError): PawlError };
}

interface DependentJob extends TaskAndQueue {
  readonly dependsOn?: readonly string[];
}

type EnqueueBody = DependentJob & { readonly jobs?: readonly DependentJob[]; readonly options?: DependentJob };

/** A job waits for those that its caller may read. Of another one, whether it exists and how it ends would be told by what becomes of this one. */
async function checkParents(route: AnyRoute, caller: Principal, { jobs = [], options, ...one }: EnqueueBody, pawl: Pawl): Promise<void> {
  const shared = { task: one.task, dependsOn: options?.dependsOn };
  const fieldsWithParents = [
    { ...one, at: "/dependsOn" },
    { ...shared, at: "/options/dependsOn" },
    ...jobs.map((job, index) => ({ ...job, at: `/jobs/${index}/dependsOn` })),
  ];
  const dependencies = fieldsWithParents.flatMap(({ task, dependsOn = [], at }) => dependsOn.map((parent) => ({ task, parent, at })));
  if (dependencies.length === 0) return;
  const parents = dependencies.map(({ parent }) => parent);
  const readable = await readableOf(parents, caller, pawl);
  const wrong = dependencies.find(({ parent }) => !readable(parent));
  if (wrong === undefined) return;
  const { task, parent, at: pointer } = wrong;
  const forbidden = pawlError("forbidden", { action: route.id, reason: "a job that it depends on is not one of its own" });
  throw pawlError("dependency_unknown", { job: `of ${task ?? jobs[0]?.task}`, parent: parent.toLowerCase(), pointer }, forbidden);
}

/** What a request is about. What it does not name stands for all of it, which only a credential for all of it may ask for. */
async function subjectsOf(caller: Principal, { params, query, body }: RequestFields, scheduler: Scheduler): Promise<readonly RequestSubject[]> {
  if (typeof params.job === "string") return [jobSubject(await scheduler.jobs.get(params.job))];
  const { jobs, filter, options, job, ...rest } = (body ?? {}) as TaskAndQueue & {
    readonly jobs?: readonly TaskAndQueue[];
    readonly filter?: TaskAndQueue;
    readonly options?: TaskAndQueue;
    readonly job?: TaskAndQueue;
  };
  if (jobs !== undefined) return distinct(jobs.map(subjectIn)).map((subject) => ({ subject }));
  const requestSubject = {
    ...subjectIn(params),
    ...subjectIn(query),
    ...subjectIn(rest),
    ...subjectIn(filter),
    ...subjectIn(options),
    ...subjectIn(job),
  };
  if (typeof params.schedule !== "string") return [{ subject: requestSubject }];
  const { tenant } = { ...rest, ...query } as { readonly tenant?: string };
  const ref = { name: params.schedule, tenant: tenantOf(caller, tenant) };
  const stored = scheduler.schedules.get(ref);
  // Who puts one in the place of another changes both; only there may be none before.
  if (requestSubject.task !== undefined) return [...(await subjectIfFound(stored)), { subject: requestSubject }];
  return [
    {
      subject: subjectIn(await stored),
      unknown: { by: "schedules.read", as: (forbidden) => pawlError("schedule_unknown", { schedule: ref.name, tenant: ref.tenant }, forbidden) },
    },
  ];
}

/** A bulk operation is about what its filter names: whoever may start it may look after it. */
function jobSubject({ id, task, queue, input }: JobView): RequestSubject {
  const { filter } = (task === BULK_TASK ? (input ?? {}) : {}) as { readonly filter?: TaskAndQueue };
  return {
    subject: task === BULK_TASK ? subjectIn(filter) : { task, queue },
    unknown: { by: "jobs.read", as: (forbidden) => pawlError("job_unknown", { job: id }, forbidden) },
  };
}

/** A batch of a thousand is of few tasks and queues. */
function distinct(subjects: readonly Subject[]): readonly Subject[] {
  return [...new Map(subjects.map((subject) => [`${subject.task ?? ""}\n${subject.queue ?? ""}`, subject])).values()];
}

async function subjectIfFound(found: Promise<Required<TaskAndQueue>>): Promise<readonly RequestSubject[]> {
  try {
    return [{ subject: subjectIn(await found) }];
  } catch (error) {
    if (isPawlError(error, "schedule_unknown")) return [];
    throw error;
  }
}

function subjectIn(of: Readonly<Record<string, unknown>> | TaskAndQueue = {}): Subject {
  const { task, queue } = of as TaskAndQueue;
  return { ...(typeof task === "string" ? { task } : {}), ...(typeof queue === "string" ? { queue } : {}) };
}

type FieldPath = readonly string[];

/** Where in a request tenants are named, found by the mark in its schema: a new field needs no new check. */
export function tenantPaths(start: string, schema: unknown): readonly FieldPath[] {
  if (typeof schema !== "object" || schema === null) return [];
  const { properties = {}, items, ...rest } = schema as { readonly properties?: Readonly<Record<string, unknown>>; readonly items?: unknown };
  if ((rest as { readonly "x-names"?: unknown })["x-names"] === "tenant") return [[start]];
  const inside = [...Object.entries(properties).flatMap(([name, inner]) => tenantPaths(name, inner)), ...tenantPaths("*", items)];
  return inside.map((path) => [start, ...path]);
}

function valuesAt(value: unknown, [step, ...rest]: FieldPath): readonly unknown[] {
  if (step === undefined) return [value];
  if (typeof value !== "object" || value === null) return [];
  if (step === "*") return (value as readonly unknown[]).flatMap((item) => valuesAt(item, rest));
  return valuesAt((value as Readonly<Record<string, unknown>>)[step], rest);
}

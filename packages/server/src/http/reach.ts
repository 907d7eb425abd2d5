import type { JobView, PawlError, Scheduler, Subject } from "pawl";
import { type Action, isOwnTask, isPawlError, pawlError, permit } from "pawl";
import type { Principal } from "./access.js";
import { BULK_TASK } from "./bulk-task.js";
import type { AnyRoute } from "./contract/route.js";
import { tenantOf } from "./handler.js";
import { isLimited, type Lanes, readableOf } from "./sight.js";
import type { Asked } from "./validate.js";

export function refuseReserved(task: string): void {
  if (isOwnTask(task)) throw pawlError("task_reserved", { task });
}

/**
 * Checks everything a request names against its caller: every tenant anywhere in it, and the tasks and queues it is
 * about. Of a batch every item is checked, before anything is done. A job or schedule that a caller may not read is
 * answered as one that does not exist.
 */
export function reachCheck(route: AnyRoute): (caller: Principal, asked: Asked, scheduler: Scheduler, pawl: Lanes) => Promise<void> {
  const tenants = [...tenantPaths("params", route.params), ...tenantPaths("query", route.query), ...tenantPaths("body", route.body)];
  const { policy } = route;
  return async (caller, asked, scheduler, pawl) => {
    if ("open" in policy) return;
    if (caller.tenant !== undefined) {
      for (const path of tenants) for (const named of valuesAt(asked, path)) checkTenant(caller.tenant, named);
    }
    if (policy.action === "jobs.write" || policy.action === "schedules.write") checkReserved(asked.body);
    // A worker names its tasks and queues when it claims, and is held to them job by job: see routes/leases.ts.
    if (policy.action === "leases.write" || !isLimited(caller)) return;
    for (const { subject, unknown } of await subjectsOf(caller, asked, scheduler)) {
      const permission = permit(caller, policy.action, subject);
      if (permission.allowed) continue;
      const denied = pawlError("forbidden", { action: route.id, reason: `its ${permission.why} is not one of its own` });
      throw unknown === undefined || permit(caller, unknown.by, subject).allowed ? denied : unknown.as(denied);
    }
    if (policy.action === "jobs.write") await checkParents(route, caller, asked.body as Batch, pawl);
  };
}

/** Whether a caller may do it to anything at all: known before the body is read. */
export function mayAsk(route: AnyRoute, caller: Principal): void {
  const { policy } = route;
  if ("open" in policy) return;
  const anywhere = { tenant: caller.tenant, grants: caller.grants.map(({ role }) => ({ role })) };
  const permission = permit(anywhere, policy.action);
  if (!permission.allowed) {
    const reason = permission.why === "tenant" ? "it is for all tenants together" : "its role does not include it";
    throw pawlError("forbidden", { action: route.id, reason });
  }
  if (policy.scope === "tenant" || caller.tenant === undefined) return;
  if (policy.untold !== undefined) throw pawlError("not_by_tenant", { what: policy.untold });
  throw pawlError("forbidden", { action: route.id, reason: "it is for all tenants together" });
}

function checkTenant(own: string, named: unknown): void {
  if (named !== undefined && named !== own) throw pawlError("tenant_mismatch", { tenant: String(named) });
}

interface Named {
  readonly task?: string;
  readonly queue?: string;
}

function checkReserved(body: unknown): void {
  const { jobs, task } = body as { readonly jobs?: readonly Named[]; readonly task?: string };
  for (const named of [task, ...(jobs ?? []).map((job) => job.task)]) if (named !== undefined) refuseReserved(named);
}

/** Something that a request is about. */
interface Concern {
  readonly subject: Subject;
  /** what was found by its id or name: whoever may not read it by this action is told that there is none */
  readonly unknown?: { readonly by: Action; as(denied: PawlError): PawlError };
}

interface Parented extends Named {
  readonly dependsOn?: readonly string[];
}

type Batch = Parented & { readonly jobs?: readonly Parented[]; readonly options?: Parented };

/** A job waits for those that its caller may read. Of another one, whether it exists and how it ends would be told by what becomes of this one. */
async function checkParents(route: AnyRoute, caller: Principal, { jobs = [], options, ...one }: Batch, pawl: Lanes): Promise<void> {
  const shared = { task: one.task, dependsOn: options?.dependsOn };
  const places = [
    { ...one, at: "/dependsOn" },
    { ...shared, at: "/options/dependsOn" },
    ...jobs.map((job, place) => ({ ...job, at: `/jobs/${place}/dependsOn` })),
  ];
  const asked = places.flatMap(({ task, dependsOn = [], at }) => dependsOn.map((parent) => ({ task, parent, at })));
  if (asked.length === 0) return;
  const parents = asked.map(({ parent }) => parent);
  const readable = await readableOf(parents, caller, pawl);
  const wrong = asked.find(({ parent }) => !readable(parent));
  if (wrong === undefined) return;
  const { task, parent, at: pointer } = wrong;
  const denied = pawlError("forbidden", { action: route.id, reason: "a job that it depends on is not one of its own" });
  throw pawlError("dependency_unknown", { job: `of ${task ?? jobs[0]?.task}`, parent: parent.toLowerCase(), pointer }, denied);
}

/** What a request is about. What it does not name stands for all of it, which only a credential for all of it may ask for. */
async function subjectsOf(caller: Principal, { params, query, body }: Asked, scheduler: Scheduler): Promise<readonly Concern[]> {
  if (typeof params.job === "string") return [aboutJob(await scheduler.jobs.get(params.job))];
  const { jobs, filter, options, job, ...rest } = (body ?? {}) as Named & {
    readonly jobs?: readonly Named[];
    readonly filter?: Named;
    readonly options?: Named;
    readonly job?: Named;
  };
  if (jobs !== undefined) return distinct(jobs.map(named)).map((subject) => ({ subject }));
  const said = { ...named(params), ...named(query), ...named(rest), ...named(filter), ...named(options), ...named(job) };
  if (typeof params.schedule !== "string") return [{ subject: said }];
  const { tenant } = { ...rest, ...query } as { readonly tenant?: string };
  const ref = { name: params.schedule, tenant: tenantOf(caller, tenant) };
  const there = scheduler.schedules.get(ref);
  // Who puts one in the place of another changes both; only there may be none before.
  if (said.task !== undefined) return [...(await ifAny(there)), { subject: said }];
  return [
    {
      subject: named(await there),
      unknown: { by: "schedules.read", as: (denied) => pawlError("schedule_unknown", { schedule: ref.name, tenant: ref.tenant }, denied) },
    },
  ];
}

/** A bulk operation is about what its filter names: whoever may start it may look after it. */
function aboutJob({ id, task, queue, input }: JobView): Concern {
  const { filter } = (task === BULK_TASK ? (input ?? {}) : {}) as { readonly filter?: Named };
  return {
    subject: task === BULK_TASK ? named(filter) : { task, queue },
    unknown: { by: "jobs.read", as: (denied) => pawlError("job_unknown", { job: id }, denied) },
  };
}

/** A batch of a thousand is of few tasks and queues. */
function distinct(subjects: readonly Subject[]): readonly Subject[] {
  return [...new Map(subjects.map((subject) => [`${subject.task ?? ""}\n${subject.queue ?? ""}`, subject])).values()];
}

async function ifAny(found: Promise<Required<Named>>): Promise<readonly Concern[]> {
  try {
    return [{ subject: named(await found) }];
  } catch (error) {
    if (isPawlError(error, "schedule_unknown")) return [];
    throw error;
  }
}

function named(of: Readonly<Record<string, unknown>> | Named = {}): Subject {
  const { task, queue } = of as Named;
  return { ...(typeof task === "string" ? { task } : {}), ...(typeof queue === "string" ? { queue } : {}) };
}

type Path = readonly string[];

/** Where in a request tenants are named, found by the mark in its schema: a new field needs no new check. */
export function tenantPaths(start: string, schema: unknown): readonly Path[] {
  if (typeof schema !== "object" || schema === null) return [];
  const { properties = {}, items, ...rest } = schema as { readonly properties?: Readonly<Record<string, unknown>>; readonly items?: unknown };
  if ((rest as { readonly "x-names"?: unknown })["x-names"] === "tenant") return [[start]];
  const inside = [...Object.entries(properties).flatMap(([name, inner]) => tenantPaths(name, inner)), ...tenantPaths("*", items)];
  return inside.map((path) => [start, ...path]);
}

function valuesAt(value: unknown, [step, ...rest]: Path): readonly unknown[] {
  if (step === undefined) return [value];
  if (typeof value !== "object" || value === null) return [];
  if (step === "*") return (value as readonly unknown[]).flatMap((item) => valuesAt(item, rest));
  return valuesAt((value as Readonly<Record<string, unknown>>)[step], rest);
}

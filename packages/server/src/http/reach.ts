import type { Grant, Scheduler, Subject } from "pawl";
import { isOwnTask, isPawlError, pawlError, permit } from "pawl";
import type { Principal } from "./access.js";
import type { AnyRoute } from "./contract/route.js";
import { tenantOf } from "./handler.js";
import type { Asked } from "./validate.js";

export function refuseReserved(task: string): void {
  if (isOwnTask(task)) throw pawlError("task_reserved", { task });
}

/**
 * Checks everything a request names against its caller: every tenant anywhere in it, and the tasks and queues it is
 * about. Of a batch every item is checked, before anything is done.
 */
export function reachCheck(route: AnyRoute): (caller: Principal, asked: Asked, scheduler: Scheduler) => Promise<void> {
  const tenants = [...tenantPaths("params", route.params), ...tenantPaths("query", route.query), ...tenantPaths("body", route.body)];
  const { policy } = route;
  return async (caller, asked, scheduler) => {
    if ("open" in policy) return;
    if (caller.tenant !== undefined) {
      for (const path of tenants) for (const named of valuesAt(asked, path)) checkTenant(caller.tenant, named);
    }
    if (policy.action === "jobs.write" || policy.action === "schedules.write") checkReserved(asked.body);
    // A worker names its tasks and queues when it claims, and is held to them job by job: see routes/leases.ts.
    if (policy.action === "leases.write" || caller.grants.every(isWhole)) return;
    for (const subject of await subjectsOf(caller, asked, scheduler)) {
      const { allowed, ...refusal } = permit(caller, policy.action, subject);
      if (!allowed) throw pawlError("forbidden", { action: route.id, reason: `its ${(refusal as { why: string }).why} is not one of its own` });
    }
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

function isWhole({ tasks, queues }: Grant): boolean {
  return [tasks, queues].every((patterns) => patterns === undefined || patterns.includes("*"));
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

/** What a request is about. What it does not name stands for all of it, which only a credential for all of it may ask for. */
async function subjectsOf(caller: Principal, { params, query, body }: Asked, scheduler: Scheduler): Promise<readonly Subject[]> {
  if (typeof params.job === "string") return [await laneOf(scheduler.jobs.get(params.job))];
  const { jobs, filter, options, job, ...rest } = (body ?? {}) as Named & {
    readonly jobs?: readonly Named[];
    readonly filter?: Named;
    readonly options?: Named;
    readonly job?: Named;
  };
  if (jobs !== undefined) return distinct(jobs.map(named));
  const said = { ...named(params), ...named(query), ...named(rest), ...named(filter), ...named(options), ...named(job) };
  if (typeof params.schedule !== "string") return [said];
  const { tenant } = { ...rest, ...query } as { readonly tenant?: string };
  const there = scheduler.schedules.get({ name: params.schedule, tenant: tenantOf(caller, tenant) });
  // Who puts one in the place of another changes both; only there may be none before.
  return said.task === undefined ? [await laneOf(there)] : [...(await laneIfAny(there)), said];
}

/** A batch of a thousand is of few tasks and queues. */
function distinct(subjects: readonly Subject[]): readonly Subject[] {
  return [...new Map(subjects.map((subject) => [`${subject.task ?? ""}\n${subject.queue ?? ""}`, subject])).values()];
}

async function laneIfAny(found: Promise<Required<Named>>): Promise<readonly Subject[]> {
  try {
    return [await laneOf(found)];
  } catch (error) {
    if (isPawlError(error, "schedule_unknown")) return [];
    throw error;
  }
}

async function laneOf(found: Promise<Required<Named>>): Promise<Subject> {
  return named(await found);
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

import { failureOfParent } from "../../../core/jobs/dependency.js";
import type { LeaseId } from "../../../core/jobs/id.js";
import { isFinished } from "../../../core/jobs/job.js";
import type { WorkerRef } from "../../../core/jobs/lease.js";
import type { Verb } from "../../../core/jobs/lifecycle.js";
import { deathOf, type Patch } from "../../../core/jobs/outcome.js";
import { limitKeyId } from "../../../core/limits/limit-rule.js";
import { pauseLimitKey } from "../limits/limit-queues.js";
import type { JobStatus, MemoryAttempt, MemoryJob, Tables } from "../state.js";
import { move, parked, release, waiting } from "./move.js";

/** Under which lease something happened to a job, and when. Marks have no worker. */
interface HistoryStamp {
  readonly lease: LeaseId;
  readonly worker?: WorkerRef;
  readonly startedAt: number;
  readonly finishedAt: number;
}

/** Writes the history and puts the job where the patch says. Whoever calls releases the dependents of those that ended. */
export function apply(tables: Tables, row: MemoryJob, verb: Verb, patch: Patch, by: HistoryStamp): void {
  row.history.push({
    job: row.id,
    lease: by.lease,
    outcome: patch.outcome,
    ...(by.worker === undefined ? {} : { worker: by.worker.name, instance: by.worker.instance }),
    startedAt: by.startedAt,
    finishedAt: by.finishedAt,
    ...(patch.output === undefined ? {} : { output: patch.output }),
    ...(patch.failure === undefined ? {} : { failure: patch.failure }),
    next: patch.next,
  });
  if (patch.diedOf !== undefined)
    row.history.push({ job: row.id, ...systemEntry(tables), outcome: "failed", failure: patch.diedOf, next: patch.next });
  row.attempts = patch.attempts;
  row.crashes = patch.crashes;
  // Carried out, or overtaken by the end of the job.
  tables.intents.delete(row.id);
  if (patch.pauses !== undefined) pauseLimitKey(tables, limitKeyId(row.lane.tenant, patch.pauses), patch.pauses.for);
  move(tables, row, verb, statusAfter(tables, patch));
}

function statusAfter(tables: Tables, patch: Patch): JobStatus {
  const runAt = patch.delay === undefined ? undefined : tables.now + patch.delay;
  if (patch.next === "scheduled" || patch.next === "ready") return waiting(tables, patch.next === "ready" ? undefined : runAt);
  return patch.next === "parked" ? parked(tables, runAt) : { state: patch.next };
}

/** A line of history that no worker wrote, under a number of its own. */
export function systemEntry(tables: Tables): Omit<HistoryStamp, "worker"> {
  return { lease: tables.nextLease(), startedAt: tables.now, finishedAt: tables.now };
}

export function releaseDependents(tables: Tables, touched: readonly MemoryJob[]): void {
  const ended = touched.filter((row) => isFinished(row.status.state));
  release(tables, ended, (child, parent) => apply(tables, child, "unblock", deathOf(child, failureOfParent(parent)), systemEntry(tables)));
}

/** Without a trace, except for its idempotency key, which goes on answering. */
export function erase(tables: Tables, row: MemoryJob): void {
  tables.jobs.delete(row.id);
  tables.dependents.delete(row.id);
  if (row.key !== undefined && tables.keys.get(row.key)?.job === row.id) tables.keys.delete(row.key);
}

export function lastOf(row: MemoryJob): MemoryAttempt | undefined {
  return row.history.at(-1);
}

import { doomedBy } from "../../core/dependency.js";
import type { LeaseId } from "../../core/id.js";
import { isFinished } from "../../core/job.js";
import type { WorkerRef } from "../../core/lease.js";
import type { Verb } from "../../core/lifecycle.js";
import { gateKey } from "../../core/limit.js";
import { deathOf, type Patch } from "../../core/outcome.js";
import { pauseGate } from "./gate-lines.js";
import { move, parked, release, waiting } from "./places.js";
import type { HistoryRow, JobRow, Place, Tables } from "./state.js";

/** Under which lease something happened to a job, and when. Marks have no worker. */
interface By {
  readonly lease: LeaseId;
  readonly worker?: WorkerRef;
  readonly startedAt: number;
  readonly finishedAt: number;
}

/** Writes the history and puts the job where the patch says. Whoever calls releases the dependents of those that ended. */
export function apply(tables: Tables, row: JobRow, verb: Verb, patch: Patch, by: By): void {
  row.history.push({
    job: row.id,
    lease: by.lease,
    outcome: patch.outcome,
    ...(by.worker === undefined ? {} : { worker: by.worker.name, boot: by.worker.boot }),
    startedAt: by.startedAt,
    finishedAt: by.finishedAt,
    ...(patch.output === undefined ? {} : { output: patch.output }),
    ...(patch.failure === undefined ? {} : { failure: patch.failure }),
    next: patch.next,
  });
  if (patch.diedOf !== undefined) row.history.push({ job: row.id, ...mark(tables), outcome: "failed", failure: patch.diedOf, next: patch.next });
  row.spent = patch.spent;
  row.crashes = patch.crashes;
  // Carried out, or overtaken by the end of the job.
  tables.intents.delete(row.id);
  if (patch.pauses !== undefined) pauseGate(tables, gateKey(row.lane.tenant, patch.pauses), patch.pauses.for);
  move(tables, row, verb, placeOf(tables, patch));
}

function placeOf(tables: Tables, patch: Patch): Place {
  const runAt = patch.delay === undefined ? undefined : tables.now + patch.delay;
  if (patch.next === "scheduled" || patch.next === "ready") return waiting(tables, patch.next === "ready" ? undefined : runAt);
  return patch.next === "parked" ? parked(tables, runAt) : { state: patch.next };
}

/** A line of history that no worker wrote, under a number of its own. */
export function mark(tables: Tables): Omit<By, "worker"> {
  return { lease: tables.nextLease(), startedAt: tables.now, finishedAt: tables.now };
}

export function releaseDependents(tables: Tables, touched: readonly JobRow[]): void {
  const ended = touched.filter((row) => isFinished(row.place.state));
  release(tables, ended, (child, parent) => apply(tables, child, "unblock", deathOf(child, doomedBy(parent)), mark(tables)));
}

/** Without a trace, except for its request id, which goes on answering. */
export function erase(tables: Tables, row: JobRow): void {
  tables.jobs.delete(row.id);
  tables.dependents.delete(row.id);
  if (row.key !== undefined && tables.keys.get(row.key)?.job === row.id) tables.keys.delete(row.key);
}

export function lastOf(row: JobRow): HistoryRow | undefined {
  return row.history.at(-1);
}

import { dependencyMeaning } from "../../../core/jobs/dependency.js";
import type { JobId } from "../../../core/jobs/id.js";
import { isFinished, JOB_STATES, type JobState } from "../../../core/jobs/job.js";
import { compareText, laneKey } from "../../../core/jobs/lane.js";
import { allowed, type Verb } from "../../../core/jobs/lifecycle.js";
import { isSuspect } from "../../../core/jobs/outcome.js";
import { dueTimer } from "../../../core/jobs/timer.js";
import { addStarts } from "../../../core/limits/start-rate.js";
import { JobFifo } from "../claim/fifo.js";
import { joinLimitQueue, leaveLimitQueue, releaseSlots, statusUnderLimits } from "../limits/limit-queues.js";
import { noteChange, noteMove } from "../observe/series.js";
import type { JobStatus, MemoryJob, Tables } from "../state.js";

/** The one way a job changes its state. This store is the specification, so it holds itself to the lifecycle table. */
export function move(tables: Tables, row: MemoryJob, verb: Verb, to: JobStatus): void {
  const from = row.status.state;
  // Into a worker's hands it takes what it holds. Everything else it gives back, but for its serial slot.
  if (to.state !== "running") releaseSlots(tables, row, isFinished(to.state));
  const status = to.state === "ready" && verb !== "admit" ? statusUnderLimits(tables, row) : to;
  if (!allowed(from, verb, status.state)) throw new Error(`the lifecycle has no ${verb} from ${from} to ${status.state}`);
  leave(tables, row);
  row.status = status;
  noteMove(tables, row.lane, from, status.state);
  enter(tables, row);
}

export function enter(tables: Tables, row: MemoryJob): void {
  const { status } = row;
  count(tables, row, 1);
  switch (status.state) {
    case "ready":
      fifoOf(tables, row).add(row.id);
      tables.wakeups.ready.set(laneKey(row.lane), row.lane);
      break;
    case "parked":
      if (status.limitWait !== undefined) joinLimitQueue(tables, status.limitWait, row);
      break;
    case "scheduled":
      tables.scheduled.add(row.id, status.runAt);
      tables.wakeups.scheduledAt = Math.min(status.runAt, tables.wakeups.scheduledAt ?? status.runAt);
      break;
    case "succeeded":
    case "dead":
    case "cancelled":
      tables.wakeups.finished.push(row.id);
      break;
    default:
  }
  const timer = timerOf(row);
  if (timer !== undefined) tables.timers.add(row.id, timer.at);
}

/** Out of every index; the row itself stays. */
export function leave(tables: Tables, row: MemoryJob): void {
  count(tables, row, -1);
  if (row.status.state === "ready") {
    fifoOf(tables, row).remove(row.id);
    const key = laneKey(row.lane);
    const lane = tables.lanes.get(key);
    if (lane !== undefined && lane.admitted.size + lane.rest.size === 0) tables.lanes.delete(key);
  }
  if (row.status.state === "parked" && row.status.limitWait !== undefined) leaveLimitQueue(tables, row.status.limitWait);
  if (row.status.state === "blocked") for (const parent of [...row.waits]) forgetEdge(tables, parent, row);
  tables.scheduled.remove(row.id);
  tables.timers.remove(row.id);
}

/** Back to waiting: for its time if that is to come, otherwise for a worker. */
export function waiting(tables: Tables, runAt: number | undefined): JobStatus {
  return runAt !== undefined && runAt > tables.now ? { state: "scheduled", runAt } : { state: "ready" };
}

export function parked(tables: Tables, runAt: number | undefined): JobStatus {
  return runAt !== undefined && runAt > tables.now ? { state: "parked", runAt } : { state: "parked" };
}

/** Whether an attempt at it ever began. Marks count: a job that a person brought back is not a fresh one. */
export function hasStarted(row: MemoryJob): boolean {
  return row.status.state === "running" || row.history.length > 0;
}

export function timerOf(row: MemoryJob) {
  const pending = !isFinished(row.status.state) && row.status.state !== "running";
  return pending ? dueTimer(row.dueAt, row.options, hasStarted(row)) : undefined;
}

/**
 * What the parents that just ended mean for the jobs that wait for them, generation by generation: `killChild` ends a
 * child, whose own children are next. Those set free line up by id, in every store.
 */
export function release(tables: Tables, ended: readonly MemoryJob[], killChild: (child: MemoryJob, parent: JobId) => void): void {
  for (let parents = ended; parents.length > 0; ) {
    const freed: MemoryJob[] = [];
    const dying: MemoryJob[] = [];
    for (const parent of parents) {
      for (const child of childrenOf(tables, parent.id)) {
        const meaning = dependencyMeaning(parent.status.state, child.onDependencyDeath);
        if (meaning === "waits") continue;
        if (meaning === "dying") {
          killChild(child, parent.id);
          dying.push(child);
        } else {
          forgetEdge(tables, parent.id, child);
          if (child.waits.size === 0) freed.push(child);
        }
      }
    }
    for (const child of freed.sort((a, b) => compareText(a.id, b.id))) unblock(tables, child);
    parents = dying;
  }
}

function unblock(tables: Tables, child: MemoryJob): void {
  const paused = tables.intents.get(child.id)?.intent === "pause";
  tables.intents.delete(child.id);
  move(tables, child, "unblock", paused ? parked(tables, child.dueAt) : waiting(tables, child.dueAt));
}

function childrenOf(tables: Tables, parent: JobId): readonly MemoryJob[] {
  const ids = [...(tables.dependents.get(parent) ?? [])].sort(compareText);
  return ids.flatMap((id) => tables.jobs.get(id) ?? []);
}

export function addEdge(tables: Tables, parent: JobId, child: MemoryJob): void {
  child.waits.add(parent);
  const children = tables.dependents.get(parent);
  if (children === undefined) tables.dependents.set(parent, new Set([child.id]));
  else children.add(child.id);
}

function forgetEdge(tables: Tables, parent: JobId, child: MemoryJob): void {
  child.waits.delete(parent);
  const children = tables.dependents.get(parent);
  children?.delete(child.id);
  if (children?.size === 0) tables.dependents.delete(parent);
}

function fifoOf(tables: Tables, row: MemoryJob): JobFifo {
  if (isSuspect(row.crashes)) return tables.suspects;
  const key = laneKey(row.lane);
  let lane = tables.lanes.get(key);
  if (lane === undefined) {
    lane = { lane: row.lane, admitted: new JobFifo(), rest: new JobFifo() };
    tables.lanes.set(key, lane);
  }
  return row.status.state === "ready" && row.status.admitted === true ? lane.admitted : lane.rest;
}

function count(tables: Tables, row: MemoryJob, by: 1 | -1): void {
  const { queue, task } = row.lane;
  const key = `${queue}\u0001${task}`;
  let entry = tables.counts.get(key);
  if (entry === undefined) {
    entry = { queue, task, counts: Object.fromEntries(JOB_STATES.map((state) => [state, 0])) as Record<JobState, number> };
    tables.counts.set(key, entry);
  }
  entry.counts[row.status.state] += by;
  noteChange(tables, row.lane, row.status.state, by);
  if (by === 1 && row.status.state === "running") tables.startRates.set(key, addStarts(tables.startRates.get(key), 1, tables.now));
}

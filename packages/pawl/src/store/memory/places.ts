import { releaseOf } from "../../core/dependency.js";
import type { JobId } from "../../core/id.js";
import { isFinished, STATES, type State } from "../../core/job.js";
import { compareText, laneKey } from "../../core/lane.js";
import { allowed, type Verb } from "../../core/lifecycle.js";
import { isSuspect } from "../../core/outcome.js";
import { paced } from "../../core/pace.js";
import { dueTimer } from "../../core/timer.js";
import { linedUp, stand, stepOut, vacate } from "./gate-lines.js";
import { Line } from "./line.js";
import { noteChange, noteMove } from "./series.js";
import type { JobRow, Place, Tables } from "./state.js";

/** The one way a job changes place. This store is the specification, so it holds itself to the lifecycle table. */
export function move(tables: Tables, row: JobRow, verb: Verb, to: Place): void {
  const from = row.place.state;
  // Into a worker's hands it takes what it holds. Everything else it gives back, but for its turn in a serial line.
  if (to.state !== "running") vacate(tables, row, isFinished(to.state));
  const place = to.state === "ready" && verb !== "admit" ? linedUp(tables, row) : to;
  if (!allowed(from, verb, place.state)) throw new Error(`the lifecycle has no ${verb} from ${from} to ${place.state}`);
  leave(tables, row);
  row.place = place;
  noteMove(tables, row.lane, from, place.state);
  enter(tables, row);
}

export function enter(tables: Tables, row: JobRow): void {
  const { place } = row;
  count(tables, row, 1);
  switch (place.state) {
    case "ready":
      lineOf(tables, row).add(row.id);
      tables.hints.ready.set(laneKey(row.lane), row.lane);
      break;
    case "parked":
      if (place.standing !== undefined) stand(tables, place.standing, row);
      break;
    case "scheduled":
      tables.scheduled.add(row.id, place.runAt);
      tables.hints.scheduledAt = Math.min(place.runAt, tables.hints.scheduledAt ?? place.runAt);
      break;
    case "succeeded":
    case "dead":
    case "cancelled":
      tables.hints.finished.push(row.id);
      break;
    default:
  }
  const timer = timerOf(row);
  if (timer !== undefined) tables.timers.add(row.id, timer.at);
}

/** Out of every index; the row itself stays. */
export function leave(tables: Tables, row: JobRow): void {
  count(tables, row, -1);
  if (row.place.state === "ready") {
    const line = lineOf(tables, row);
    line.remove(row.id);
    const key = laneKey(row.lane);
    const lane = tables.lanes.get(key);
    if (lane !== undefined && lane.front.size + lane.line.size === 0) tables.lanes.delete(key);
  }
  if (row.place.state === "parked" && row.place.standing !== undefined) stepOut(tables, row.place.standing);
  if (row.place.state === "blocked") for (const parent of [...row.waits]) forgetEdge(tables, parent, row);
  tables.scheduled.remove(row.id);
  tables.timers.remove(row.id);
}

/** Back to waiting: for its time if that is to come, otherwise for a worker. */
export function waiting(tables: Tables, runAt: number | undefined): Place {
  return runAt !== undefined && runAt > tables.now ? { state: "scheduled", runAt } : { state: "ready" };
}

export function parked(tables: Tables, runAt: number | undefined): Place {
  return runAt !== undefined && runAt > tables.now ? { state: "parked", runAt } : { state: "parked" };
}

/** Whether an attempt at it ever began. Marks count: a job that a person brought back is not a fresh one. */
export function hasStarted(row: JobRow): boolean {
  return row.place.state === "running" || row.history.length > 0;
}

export function timerOf(row: JobRow) {
  const pending = !isFinished(row.place.state) && row.place.state !== "running";
  return pending ? dueTimer(row.dueAt, row.options, hasStarted(row)) : undefined;
}

/**
 * What the parents that just ended mean for the jobs that wait for them, generation by generation: `doom` ends a
 * child, whose own children are next. Those set free line up by id, in every store.
 */
export function release(tables: Tables, ended: readonly JobRow[], doom: (child: JobRow, parent: JobId) => void): void {
  for (let parents = ended; parents.length > 0; ) {
    const freed: JobRow[] = [];
    const doomed: JobRow[] = [];
    for (const parent of parents) {
      for (const child of childrenOf(tables, parent.id)) {
        const meaning = releaseOf(parent.place.state, child.onDeath);
        if (meaning === "waits") continue;
        if (meaning === "doomed") {
          doom(child, parent.id);
          doomed.push(child);
        } else {
          forgetEdge(tables, parent.id, child);
          if (child.waits.size === 0) freed.push(child);
        }
      }
    }
    for (const child of freed.sort((a, b) => compareText(a.id, b.id))) unblock(tables, child);
    parents = doomed;
  }
}

function unblock(tables: Tables, child: JobRow): void {
  const paused = tables.intents.get(child.id)?.intent === "pause";
  tables.intents.delete(child.id);
  move(tables, child, "unblock", paused ? parked(tables, child.dueAt) : waiting(tables, child.dueAt));
}

function childrenOf(tables: Tables, parent: JobId): readonly JobRow[] {
  const ids = [...(tables.dependents.get(parent) ?? [])].sort(compareText);
  return ids.flatMap((id) => tables.jobs.get(id) ?? []);
}

export function addEdge(tables: Tables, parent: JobId, child: JobRow): void {
  child.waits.add(parent);
  const children = tables.dependents.get(parent);
  if (children === undefined) tables.dependents.set(parent, new Set([child.id]));
  else children.add(child.id);
}

function forgetEdge(tables: Tables, parent: JobId, child: JobRow): void {
  child.waits.delete(parent);
  const children = tables.dependents.get(parent);
  children?.delete(child.id);
  if (children?.size === 0) tables.dependents.delete(parent);
}

function lineOf(tables: Tables, row: JobRow): Line {
  if (isSuspect(row.crashes)) return tables.suspects;
  const key = laneKey(row.lane);
  let lane = tables.lanes.get(key);
  if (lane === undefined) {
    lane = { lane: row.lane, front: new Line(), line: new Line() };
    tables.lanes.set(key, lane);
  }
  return row.place.state === "ready" && row.place.front === true ? lane.front : lane.line;
}

function count(tables: Tables, row: JobRow, by: 1 | -1): void {
  const { queue, task } = row.lane;
  const key = `${queue}\u0001${task}`;
  let entry = tables.counts.get(key);
  if (entry === undefined) {
    entry = { queue, task, counts: Object.fromEntries(STATES.map((state) => [state, 0])) as Record<State, number> };
    tables.counts.set(key, entry);
  }
  entry.counts[row.place.state] += by;
  noteChange(tables, row.lane, row.place.state, by);
  if (by === 1 && row.place.state === "running") tables.paces.set(key, paced(tables.paces.get(key), 1, tables.now));
}

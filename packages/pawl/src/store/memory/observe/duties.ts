import type { RequestedIntent } from "../../../core/jobs/job.js";
import { deathOf } from "../../../core/jobs/outcome.js";
import { lateFailure } from "../../../core/jobs/timer.js";
import type { DutyStore, Poll } from "../../port/duties/duties.js";
import { cancelNow } from "../jobs/enqueue.js";
import { apply, releaseDependents, systemEntry } from "../jobs/history.js";
import { move, parked, timerOf } from "../jobs/move.js";
import { prune, restore } from "../prune.js";
import type { MemoryJob, Tables } from "../state.js";
import { watchedIn } from "./events.js";

export function memoryDuties(tables: Tables): DutyStore {
  return {
    poll: () => tables.step(() => poll(tables)),
    promote: (limit) =>
      tables.step(() => {
        const count = eachDue(tables, tables.scheduled, limit, (row) => {
          const paused = tables.intents.get(row.id)?.intent === "pause";
          if (paused) tables.intents.delete(row.id);
          move(tables, row, "promote", paused ? { state: "parked" } : { state: "ready" });
        });
        const first = tables.scheduled.first();
        return first === undefined ? { count } : { count, nextIn: first.at - tables.now };
      }),
    expire: (limit) =>
      tables.step(() => {
        const late: MemoryJob[] = [];
        const count = eachDue(tables, tables.timers, limit, (row) => {
          const { kind } = timerOf(row) as { kind: "expired" | "deadline" };
          apply(tables, row, "expire", deathOf(row, lateFailure(kind)), systemEntry(tables));
          late.push(row);
        });
        releaseDependents(tables, late);
        return count;
      }),
    // Parents end and children are enqueued one after the other here, so nothing is ever missed.
    unblock: () => tables.step(() => 0),
    carryOut: (limit) =>
      tables.step(() => {
        const rows = intentsToCarryOut(tables).slice(0, limit);
        for (const row of rows) {
          const { intent, reason } = tables.intents.get(row.id) as RequestedIntent;
          if (intent === "cancel") cancelNow(tables, row, reason);
          else {
            tables.intents.delete(row.id);
            move(tables, row, "pause", parked(tables, "runAt" in row.status ? row.status.runAt : undefined));
          }
        }
        return rows.length;
      }),
    // Counts are kept as they change.
    fold: () => tables.step(() => 0),
    prune: (rules) => prune(tables, rules),
    restore: (batch) => restore(tables, batch),
  };
}

function poll(tables: Tables): Poll {
  const watched = watchedIn(tables);
  const scheduled = tables.scheduled.first();
  const timer = tables.timers.first();
  const ticks = [...tables.schedules.values()].flatMap(({ record }) => record.looksAt ?? []);
  const limitChecks = [...tables.limitChecks.values()];
  const leases = [...tables.leases.values()].map(({ until }) => until);
  return {
    now: tables.now,
    ...(scheduled === undefined ? {} : { scheduledIn: scheduled.at - tables.now }),
    ...(leases.length === 0 ? {} : { leaseIn: leases.reduce((a, b) => Math.min(a, b)) - tables.now }),
    ...(timer === undefined ? {} : { timerIn: timer.at - tables.now }),
    ...(limitChecks.length === 0 ? {} : { admitIn: limitChecks.reduce((a, b) => Math.min(a, b)) - tables.now }),
    ...(ticks.length === 0 ? {} : { tickIn: ticks.reduce((a, b) => Math.min(a, b)) - tables.now }),
    intents: intentsToCarryOut(tables).length > 0,
    unverified: false,
    deltas: false,
    ...(watched === undefined ? {} : { watched }),
  };
}

/** Jobs with an intent that nobody will pass by to carry out. A blocked one keeps its pause until it is unblocked. */
function intentsToCarryOut(tables: Tables): readonly MemoryJob[] {
  const rows = [...tables.intents.keys()].map((id) => tables.jobs.get(id) as MemoryJob);
  return rows.filter(({ status }) => status.state === "scheduled" || status.state === "ready");
}

function eachDue(tables: Tables, timeline: Tables["timers"], limit: number, act: (row: MemoryJob) => void): number {
  let count = 0;
  for (let first = timeline.first(); first !== undefined && first.at <= tables.now && count < limit; first = timeline.first()) {
    act(tables.jobs.get(first.id) as MemoryJob);
    count++;
  }
  return count;
}

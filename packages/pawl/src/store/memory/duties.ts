import type { Asked } from "../../core/job.js";
import { deathOf } from "../../core/outcome.js";
import { lateFailure } from "../../core/timer.js";
import type { DutyStore, Pulse } from "../port-duties.js";
import { apply, mark, releaseDependents } from "./endings.js";
import { cancelNow } from "./enqueue.js";
import { watchedIn } from "./events.js";
import { move, parked, timerOf } from "./places.js";
import { prune, restore } from "./prune.js";
import type { JobRow, Tables } from "./state.js";

export function memoryDuties(tables: Tables): DutyStore {
  return {
    pulse: () => tables.step(() => pulse(tables)),
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
        const late: JobRow[] = [];
        const count = eachDue(tables, tables.timers, limit, (row) => {
          const { kind } = timerOf(row) as { kind: "expired" | "deadline" };
          apply(tables, row, "expire", deathOf(row, lateFailure(kind)), mark(tables));
          late.push(row);
        });
        releaseDependents(tables, late);
        return count;
      }),
    // Parents end and children are enqueued one after the other here, so nothing is ever missed.
    unblock: () => tables.step(() => 0),
    carryOut: (limit) =>
      tables.step(() => {
        const asked = askedInVain(tables).slice(0, limit);
        for (const row of asked) {
          const { intent, reason } = tables.intents.get(row.id) as Asked;
          if (intent === "cancel") cancelNow(tables, row, reason);
          else {
            tables.intents.delete(row.id);
            move(tables, row, "pause", parked(tables, "runAt" in row.place ? row.place.runAt : undefined));
          }
        }
        return asked.length;
      }),
    // Counts are kept as they change.
    fold: () => tables.step(() => 0),
    prune: (rules) => prune(tables, rules),
    restore: (batch) => restore(tables, batch),
  };
}

function pulse(tables: Tables): Pulse {
  const watched = watchedIn(tables);
  const scheduled = tables.scheduled.first();
  const timer = tables.timers.first();
  const ticks = [...tables.schedules.values()].flatMap(({ record }) => record.looksAt ?? []);
  const knocks = [...tables.knocks.values()];
  const leases = [...tables.leases.values()].map(({ until }) => until);
  return {
    now: tables.now,
    ...(scheduled === undefined ? {} : { scheduledIn: scheduled.at - tables.now }),
    ...(leases.length === 0 ? {} : { leaseIn: leases.reduce((a, b) => Math.min(a, b)) - tables.now }),
    ...(timer === undefined ? {} : { timerIn: timer.at - tables.now }),
    ...(knocks.length === 0 ? {} : { admitIn: knocks.reduce((a, b) => Math.min(a, b)) - tables.now }),
    ...(ticks.length === 0 ? {} : { tickIn: ticks.reduce((a, b) => Math.min(a, b)) - tables.now }),
    intents: askedInVain(tables).length > 0,
    unverified: false,
    deltas: false,
    ...(watched === undefined ? {} : { watched }),
  };
}

/** Jobs with an intent that nobody will pass by to carry out. A blocked one keeps its pause until it is unblocked. */
function askedInVain(tables: Tables): readonly JobRow[] {
  const rows = [...tables.intents.keys()].map((id) => tables.jobs.get(id) as JobRow);
  return rows.filter(({ place }) => place.state === "scheduled" || place.state === "ready");
}

function eachDue(tables: Tables, timeline: Tables["timers"], limit: number, act: (row: JobRow) => void): number {
  let count = 0;
  for (let first = timeline.first(); first !== undefined && first.at <= tables.now && count < limit; first = timeline.first()) {
    act(tables.jobs.get(first.id) as JobRow);
    count++;
  }
  return count;
}

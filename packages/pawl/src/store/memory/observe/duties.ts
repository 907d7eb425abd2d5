import type { RequestedIntent } from "../../../core/jobs/job.js";
import { deathOf } from "../../../core/jobs/outcome.js";
import { lateFailure } from "../../../core/jobs/timer.js";
import { DEFAULTS } from "../../../core/values/defaults.js";
import { ADMIT, type DutyReport, type DutyStore, type Poll, PROMOTE, REAP, TICK } from "../../port/duties/duties.js";
import { dutiesFrom, type PeriodicDuties, stepReport } from "../../port/duties/duty-table.js";
import { pruneReport, pruneRulesOf } from "../../port/duties/prune.js";
import { MAX_EVENTS } from "../../port/observe/events.js";
import { reap } from "../claim/leases.js";
import { cancelNow } from "../jobs/enqueue.js";
import { apply, releaseDependents, systemEntry } from "../jobs/history.js";
import { move, parked, timerOf } from "../jobs/move.js";
import { admitDue } from "../limits/limits.js";
import { prune } from "../prune.js";
import { tick, trim } from "../schedules/schedules.js";
import type { MemoryJob, Tables } from "../state.js";
import { memoryEvents, watchedIn } from "./events.js";
import { trimSeries } from "./series.js";

/** Parents end and children are enqueued one after the other here, and counts are kept as they change: there is no more to do. */
export function memoryDuties(tables: Tables): DutyStore {
  const duties = dutiesFrom({
    [PROMOTE]: { dueBy: "poll", step: ({ limit }) => tables.step(() => promote(tables, limit)) },
    [REAP]: {
      dueBy: "poll",
      step: ({ limit }) =>
        tables.step(() => {
          const counts = reap(tables, limit);
          return { ...stepReport(counts.jobs, limit, counts.leases), counts };
        }),
    },
    [TICK]: {
      dueBy: "poll",
      maxLimit: DEFAULTS.schedule.batch,
      step: ({ limit, idSuffixes }) =>
        tables.step(() => {
          const { nextIn, ...counts } = tick(tables, limit, idSuffixes);
          return { ...stepReport(counts.schedules, limit), ...(nextIn === undefined ? {} : { nextIn }), counts };
        }),
    },
    [ADMIT]: {
      dueBy: "poll",
      step: ({ limit }) =>
        tables.step(() => {
          const { count, limitKeys, nextIn } = admitDue(tables, limit);
          return { ...stepReport(count, limit, limitKeys), ...(nextIn === undefined ? {} : { nextIn }) };
        }),
    },
    expire: { dueBy: "poll", step: ({ limit }) => tables.step(() => stepReport(expire(tables, limit), limit)) },
    "carry out intents": { dueBy: "poll", step: ({ limit }) => tables.step(() => stepReport(carryOutIntents(tables, limit), limit)) },
    prune: { dueBy: "period", step: async (request) => pruneReport(await prune(tables, pruneRulesOf(request)), request.limit) },
    trim: { dueBy: "period", step: ({ limit, keep }) => tables.step(() => stepReport(trim(tables, limit, keep.dead), limit)) },
    "trim series": {
      dueBy: "period",
      step: ({ keep }) => tables.step(() => ({ count: trimSeries(tables, keep.series, keep.seriesRows), more: false })),
    },
  });
  return { ...duties, poll: () => tables.step(() => poll(tables)) };
}

/** The duties of what a service keeps. */
export function memoryServiceDuties(tables: Tables): PeriodicDuties {
  return dutiesFrom({
    "trim events": {
      dueBy: "period",
      step: async ({ keep }) => ({ count: await memoryEvents(tables).trim(keep.events, MAX_EVENTS), more: false }),
    },
  });
}

/** scheduled → ready, for what is due, oldest due first. */
function promote(tables: Tables, limit: number): DutyReport {
  const count = eachDue(tables, tables.scheduled, limit, (row) => {
    const paused = tables.intents.get(row.id)?.intent === "pause";
    if (paused) tables.intents.delete(row.id);
    move(tables, row, "promote", paused ? { state: "parked" } : { state: "ready" });
  });
  const first = tables.scheduled.first();
  return { ...stepReport(count, limit), ...(first === undefined ? {} : { nextIn: first.at - tables.now }) };
}

/** pending → dead, for jobs that did not start in time or whose deadline has passed while they waited */
function expire(tables: Tables, limit: number): number {
  const late: MemoryJob[] = [];
  const count = eachDue(tables, tables.timers, limit, (row) => {
    const { kind } = timerOf(row) as { kind: "expired" | "deadline" };
    apply(tables, row, "expire", deathOf(row, lateFailure(kind)), systemEntry(tables));
    late.push(row);
  });
  releaseDependents(tables, late);
  return count;
}

/** Carries out intents on jobs that no worker holds any more. */
function carryOutIntents(tables: Tables, limit: number): number {
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
}

function poll(tables: Tables): Poll {
  const watched = watchedIn(tables);
  const due = new Map<string, number>();
  const dueAt = (duty: string, ...times: readonly number[]) => {
    if (times.length > 0) due.set(duty, times.reduce((a, b) => Math.min(a, b)) - tables.now);
  };
  const scheduled = tables.scheduled.first();
  const timer = tables.timers.first();
  if (scheduled !== undefined) dueAt(PROMOTE, scheduled.at);
  if (timer !== undefined) dueAt("expire", timer.at);
  dueAt(REAP, ...[...tables.leases.values()].map(({ until }) => until));
  dueAt(ADMIT, ...tables.limitChecks.values());
  dueAt(TICK, ...[...tables.schedules.values()].flatMap(({ record }) => record.looksAt ?? []));
  if (intentsToCarryOut(tables).length > 0) due.set("carry out intents", 0);
  return { now: tables.now, due, ...(watched === undefined ? {} : { watched }) };
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

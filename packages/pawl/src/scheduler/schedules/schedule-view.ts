import type { JobId } from "../../core/jobs/id.js";
import type { FiredTick, ScheduleRecord, SkipReason, TickWay } from "../../core/schedules/schedule.js";
import type { TickEntry } from "../../store/port/schedules/schedules.js";
import { type ScheduleTimes, timesOf } from "./schedule.js";

/** A schedule as people see it: its times in the words they are given in, durations in ms. */
export interface ScheduleView extends ScheduleTimes {
  readonly name: string;
  readonly tenant: string;
  readonly task: string;
  readonly queue: string;
  /** the application whose code it is part of; absent: made at run time */
  readonly app?: string;
  /** it was changed at run time, and is not what that code says */
  readonly overridden?: true;
  /** since when that code no longer has it */
  readonly undeclaredSince?: Date;
  readonly pausedSince?: Date;
  /** the next tick; absent: it is over */
  readonly next?: Date;
  readonly revision: number;
  readonly createdAt: Date;
  readonly changedAt: Date;
}

export function scheduleView(record: ScheduleRecord): ScheduleView {
  const { name, tenant, definition, app, declared, undeclaredSince, pausedSince, next, revision, createdAt, changedAt } = record;
  const { task, queue } = definition.job.lane;
  return {
    name,
    tenant,
    task,
    queue,
    ...timesOf(definition),
    ...(app === undefined ? {} : { app }),
    ...(declared === undefined ? {} : { overridden: true }),
    ...(undeclaredSince === undefined ? {} : { undeclaredSince: new Date(undeclaredSince) }),
    ...(pausedSince === undefined ? {} : { pausedSince: new Date(pausedSince) }),
    ...(next === undefined ? {} : { next: new Date(next) }),
    revision,
    createdAt: new Date(createdAt),
    changedAt: new Date(changedAt),
  };
}

/** One tick that has a job, or a run of ticks that have none. */
export type TickView =
  | { readonly kind: TickWay; readonly at: Date; readonly firedAt: Date; readonly job: JobId; readonly merged: number }
  | { readonly kind: "skipped"; readonly from: Date; readonly to: Date; readonly count: number; readonly reason: SkipReason }
  | { readonly kind: "merged"; readonly from: Date; readonly to: Date; readonly count: number; readonly into: Date };

export function tickView(entry: TickEntry): TickView {
  if ("at" in entry) {
    const { at, way, firedAt, job, merged }: FiredTick = entry;
    return { kind: way, at: new Date(at), firedAt: new Date(firedAt), job, merged };
  }
  const { from, to, count, skipped, mergedInto } = entry;
  const range = { from: new Date(from), to: new Date(to), count };
  return mergedInto === undefined
    ? { kind: "skipped", ...range, reason: skipped as SkipReason }
    : { kind: "merged", ...range, into: new Date(mergedInto) };
}

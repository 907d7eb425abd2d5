import type { IdSuffix } from "../../../core/jobs/id.js";
import type { JobRequest } from "../../../core/jobs/job.js";
import { jobOfTick, openJobs, type ScheduleRef } from "../../../core/schedules/schedule.js";
import type { BackfillRequest } from "../../port/schedules/schedules.js";
import { plainArray } from "../connection/arrays.js";
import { type StoreDb, statement, type WriteTransaction } from "../connection/db.js";
import { readPartitionRange } from "../schema/partition-range.js";
import { enqueueTicks, firedAmong, recordTicks, type TickedJobs, type TickJob } from "./record-ticks.js";
import { lockSchedule, type ScheduleRow } from "./schedule-table.js";

/** What people ask of a schedule beside its rule. */

/** One more job of a schedule, now. Its own time is the next whole ms that no other trigger has. */
export function triggerSchedule(
  db: StoreDb,
  ref: ScheduleRef,
  { idSuffix, input, idempotencyKey }: { readonly idSuffix: IdSuffix; readonly input?: string; readonly idempotencyKey?: JobRequest },
): Promise<TickedJobs | undefined> {
  return byHand(db, ref, async (tx, row, now) => {
    const candidates = Array.from({ length: 100 }, (_, n) => Math.floor(now) + n);
    const taken = new Set(await firedAmong(tx, row.id, candidates, true));
    const at = candidates.find((one) => !taken.has(one)) ?? Math.floor(now) + 100;
    const tick = { at, way: "triggered", merged: 0 } as const;
    const job = jobOfTick(row.record, tick, idSuffix);
    return [
      {
        schedule: row.id,
        tick,
        job: { ...job, ...(input === undefined ? {} : { input }), ...(idempotencyKey === undefined ? {} : { idempotencyKey }) },
      },
    ];
  });
}

/** Jobs for ticks of the past that have none. */
export function backfillSchedule(db: StoreDb, ref: ScheduleRef, { ticks, after, pace, idSuffix }: BackfillRequest): Promise<TickedJobs | undefined> {
  return byHand(db, ref, async (tx, row) => {
    const before = new Set(await firedAmong(tx, row.id, ticks));
    return ticks
      .filter((at) => !before.has(at))
      .map((at, nth) => {
        const tick = { at, way: "backfilled", merged: 0 } as const;
        const delay = after + nth * pace;
        return {
          schedule: row.id,
          tick,
          job: { ...jobOfTick(row.record, tick, idSuffix(row.record.definition.job.lane.tenant)), ...(delay === 0 ? {} : { delay }) },
        };
      });
  });
}

const SET_OPEN = statement("set_open", "update pawl.schedule set open = $2::uuid[] where id = $1::bigint");

/** The next tick stays where it is. */
function byHand(
  db: StoreDb,
  ref: ScheduleRef,
  prepare: (tx: WriteTransaction, row: ScheduleRow, now: number) => Promise<readonly TickJob[]>,
): Promise<TickedJobs | undefined> {
  return db.transaction(async (tx) => {
    const row = await lockSchedule(tx, ref);
    if (row === undefined) return undefined;
    const { now } = await readPartitionRange(db, tx);
    const ticks = await prepare(tx, row, now);
    const answers = await enqueueTicks(db, tx, ticks);
    await recordTicks(tx, now, ticks, answers, [], []);
    const made = answers.flatMap((answer) => (answer.kind === "created" ? answer.id : []));
    await tx.query(SET_OPEN, [row.id, plainArray(openJobs(row.open, made))]);
    return { jobs: ticks.map(({ job }) => job), answers, now };
  });
}

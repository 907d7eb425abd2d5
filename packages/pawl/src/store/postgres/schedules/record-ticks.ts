import type { JobId } from "../../../core/jobs/id.js";
import type { Enqueued, NewJob } from "../../../core/jobs/job.js";
import type { DuePlan, PlannedGap } from "../../../core/schedules/due-ticks.js";
import { openJobs, type TickWay } from "../../../core/schedules/schedule.js";
import { BOUNDS } from "../../../core/values/bounds.js";
import { splitBySize } from "../../../core/values/split-by-size.js";
import { plainArray, textArray } from "../connection/arrays.js";
import { type Db, ms, statement, type WriteTransaction } from "../connection/db.js";
import type { Queryable } from "../drivers/driver.js";
import { enqueuePlain } from "../enqueue/enqueue.js";
import { enqueueChecked } from "../enqueue/enqueue-checked.js";
import { needsChecks } from "../enqueue/enqueue-mixed.js";

/** How ticks become jobs and are accounted for, in the transaction that holds their schedules locked. */

/** Jobs that a step made, for those who wait to be told. */
export interface TickedJobs {
  readonly jobs: readonly NewJob[];
  readonly answers: readonly Enqueued[];
  readonly now: number;
}

/** A job on its way in, and the tick of the schedule that it is for. */
export interface TickJob {
  readonly schedule: string;
  readonly tick: { readonly at: number; readonly way: TickWay; readonly merged: number };
  readonly job: NewJob;
}

/** A schedule that goes on: its plan, and the jobs before this step that may be unfinished. */
export interface MovedSchedule {
  readonly schedule: string;
  readonly plan: DuePlan;
  readonly open: readonly JobId[];
}

export interface ScheduleGap extends PlannedGap {
  readonly schedule: string;
}

/** In the order given, and as many at a time as one statement carries: many ticks of one schedule repeat its input. */
export async function enqueueTicks(db: Db, tx: WriteTransaction, ticks: readonly TickJob[]): Promise<readonly Enqueued[]> {
  const answers: Enqueued[] = [];
  const jobs = ticks.map(({ job }) => job);
  for (const some of splitBySize(jobs, ({ input }) => input.length, BOUNDS.statement)) answers.push(...(await enqueueSome(db, tx, some)));
  return answers;
}

/** Most need no guards, and those go by the fast way. */
async function enqueueSome(db: Db, tx: WriteTransaction, jobs: readonly NewJob[]): Promise<readonly Enqueued[]> {
  if (!jobs.some(needsChecks)) return (await enqueuePlain(db, tx, jobs)).answers;
  const answers = new Map<NewJob, Enqueued>();
  for (const [way, some] of [
    [enqueuePlain, jobs.filter((job) => !needsChecks(job))],
    [enqueueChecked, jobs.filter(needsChecks)],
  ] as const) {
    if (some.length === 0) continue;
    const report = await way(db, tx, some);
    some.forEach((job, index) => void answers.set(job, report.answers[index] as Enqueued));
  }
  return jobs.map((job) => answers.get(job) as Enqueued);
}

const RECORD = statement(
  "record_ticks",
  `
  with fired as (
    insert into pawl.tick (schedule, at, fired_at, way, merged, job)
    select g.schedule, to_timestamp(g.at / 1000), to_timestamp($1::float8 / 1000), g.way, g.merged, g.job
    from unnest($2::bigint[], $3::float8[], $4::text[], $5::int[], $6::uuid[])
      as g(schedule, at, way, merged, job)  -- guard: one-tick-each
  ),
  gaps as (
    insert into pawl.tick_gap (schedule, from_at, to_at, seen_at, count, skipped, merged_into)
    select g.schedule, to_timestamp(g.from_at / 1000), to_timestamp(g.to_at / 1000), to_timestamp($1::float8 / 1000), g.count, g.skipped, to_timestamp(g.into_at / 1000)
    from unnest($7::bigint[], $8::float8[], $9::float8[], $10::int[], $11::text[], $12::float8[]) as g(schedule, from_at, to_at, count, skipped, into_at)
  )
  update pawl.schedule s set next = to_timestamp(g.next / 1000), due_at = to_timestamp(g.due_at / 1000), open = string_to_array(g.open, ',')::uuid[]
  from unnest($13::bigint[], $14::float8[], $15::float8[], $16::text[]) as g(schedule, next, due_at, open) where s.id = g.schedule`,
);

export async function recordTicks(
  tx: WriteTransaction,
  now: number,
  ticks: readonly TickJob[],
  answers: readonly Enqueued[],
  planned: readonly ScheduleGap[],
  moved: readonly MovedSchedule[],
): Promise<void> {
  const fired: { readonly schedule: string; readonly tick: TickJob["tick"]; readonly job: JobId }[] = [];
  const gaps = [...planned];
  const added = new Map<string, readonly JobId[]>();
  ticks.forEach(({ schedule, tick }, index) => {
    const answer = answers[index] as Enqueued;
    if (answer.kind === "created") {
      fired.push({ schedule, tick, job: answer.id });
      const before = added.get(schedule);
      added.set(schedule, before === undefined ? [answer.id] : [...before, answer.id]);
    } else if (tick.way !== "triggered") gaps.push({ schedule, from: tick.at, to: tick.at, count: 1, skipped: "key" });
  });
  await tx.query(RECORD, [
    now,
    plainArray(fired.map(({ schedule }) => schedule)),
    plainArray(fired.map(({ tick }) => tick.at)),
    textArray(fired.map(({ tick }) => tick.way)),
    plainArray(fired.map(({ tick }) => tick.merged)),
    plainArray(fired.map(({ job }) => job)),
    plainArray(gaps.map(({ schedule }) => schedule)),
    plainArray(gaps.map(({ from }) => from)),
    plainArray(gaps.map(({ to }) => to)),
    plainArray(gaps.map(({ count }) => count)),
    textArray(gaps.map(({ skipped }) => skipped)),
    plainArray(gaps.map(({ mergedInto }) => mergedInto)),
    plainArray(moved.map(({ schedule }) => schedule)),
    plainArray(moved.map(({ plan }) => plan.next)),
    plainArray(moved.map(({ plan }) => plan.looksAt)),
    textArray(moved.map(({ schedule, open }) => openJobs(open, added.get(schedule) ?? []).join(","))),
  ]);
}

const FIRED = statement(
  "fired_among",
  `select ${ms("at")} as at from pawl.tick where schedule = $1::bigint and at = any(select to_timestamp(g / 1000) from unnest($2::float8[]) g) and (way = 'triggered') = $3::bool`,
);

/** Which of these times of a schedule have a job. */
export async function firedAmong(on: Queryable, schedule: string, ticks: readonly number[], triggered = false): Promise<readonly number[]> {
  return (await on.query<{ at: number }>(FIRED, [schedule, plainArray(ticks), triggered])).map(({ at }) => at);
}

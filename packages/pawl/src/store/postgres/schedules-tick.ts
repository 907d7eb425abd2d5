import type { IdTail, JobId } from "../../core/id.js";
import type { Enqueued, NewJob } from "../../core/job.js";
import { jobOfTick, openJobs, type ScheduleRef, seedOf, type TickWay } from "../../core/schedule.js";
import { type DuePlan, duePlan, type PlannedFire, type PlannedGap } from "../../core/schedule-plan.js";
import type { Backfill, Ticked } from "../port.js";
import { plainArray, textArray } from "./arrays.js";
import { stateCode } from "./codes.js";
import { end } from "./control.js";
import { type Db, ms, NOW, statement } from "./db.js";
import type { Queryable, Transaction } from "./drivers/driver.js";
import { enqueuePlain } from "./enqueue.js";
import { enqueueGuarded } from "./enqueue-guarded.js";
import type { LowWaters } from "./low-water.js";
import { take } from "./pending.js";
import { type DueRow, lockDue, lockSchedule, type ScheduleRow } from "./schedules-table.js";
import { readSpan } from "./span.js";

/** Jobs that a step made, for those who wait to be told. */
export interface Made {
  readonly jobs: readonly NewJob[];
  readonly answers: readonly Enqueued[];
  readonly now: number;
}

/** A job on its way in, and the tick that it is for. */
interface TickJob {
  readonly row: ScheduleRow;
  readonly tick: { readonly at: number; readonly way: TickWay; readonly merged: number };
  readonly job: NewJob;
}

/** A plan that cannot be made (its zone has left the tz database) is tried again after so many ms, and holds up no other. */
const POSTPONED = 60_000;

const NEXT = statement(
  "next_tick",
  `select ${ms("looks_at")} - ${ms(NOW)} as next from pawl.schedule where looks_at >= to_timestamp($2::float8 / 1000) order by looks_at limit 1`,
);

/** The rows of the schedules are locked from the look until the commit, so each tick is decided once; the index on ticks is the proof. */
export async function tickSchedules(
  db: Db,
  low: LowWaters,
  limit: number,
  tail: () => IdTail,
): Promise<{ readonly ticked: Ticked; readonly made: Made }> {
  const { due, made, failures } = await db.transaction(async (tx) => {
    const rows = await lockDue(db, tx, limit, low.tick.value);
    const errors: unknown[] = [];
    const told = rows.length === 0 ? { jobs: [], answers: [], now: 0 } : await tickRows(db, tx, rows, tail, (error) => errors.push(error));
    return { due: rows, made: told, failures: errors };
  });
  const [next] = await db.query<{ next: number }>(NEXT, [db.now(), low.tick.value]);
  const ticked = {
    schedules: due.length,
    jobs: made.answers.filter(({ kind }) => kind === "created").length,
    latest: due.reduce((most, { now, record }) => Math.max(most, now - (record.looksAt as number)), 0),
    ...(next === undefined ? {} : { nextIn: Math.max(0, next.next) }),
    ...(failures.length === 0 ? {} : { failures }),
  };
  return { ticked, made };
}

async function tickRows(db: Db, tx: Transaction, rows: readonly DueRow[], tail: () => IdTail, onFailure: (error: unknown) => void): Promise<Made> {
  const { now } = rows[0] as DueRow;
  const unfinished = await unfinishedOf(
    tx,
    rows.flatMap(({ record, open }) => (record.definition.overlap === "allow" ? [] : open)),
  );
  const open = new Map(
    rows.map((row) => [row.id, row.record.definition.overlap === "allow" ? row.open : row.open.filter((id) => unfinished.has(id))]),
  );
  const plans = new Map(rows.map((row) => [row.id, planOf(row, (open.get(row.id) as readonly JobId[]).length, onFailure)]));
  const fires = rows.flatMap((row) => (plans.get(row.id)?.fires ?? []).map((fire) => ({ row, fire })));
  const before = await backfilled(tx, fires);
  const jobs: TickJob[] = [];
  for (const { row, fire } of fires) {
    if (before.has(`${row.id} ${fire.at}`)) continue;
    const job = jobOfTick(row.record, fire, tail());
    jobs.push({ row, tick: fire, job: await withOverlap(db, tx, fire, open.get(row.id) as readonly JobId[], job) });
  }
  const answers = await enqueueAll(
    db,
    tx,
    jobs.map(({ job }) => job),
  );
  await recordTicks(
    tx,
    now,
    jobs,
    answers,
    rows.flatMap((row) => (plans.get(row.id)?.gaps ?? []).map((gap) => ({ ...gap, id: row.id }))),
    rows.map((row) => ({ row, plan: plans.get(row.id) as DuePlan, open: open.get(row.id) as readonly JobId[] })),
  );
  return { jobs: jobs.map(({ job }) => job), answers, now };
}

function planOf({ record, now }: DueRow, unfinished: number, onFailure: (error: unknown) => void): DuePlan {
  const next = record.next as number;
  try {
    return duePlan({ seed: seedOf(record), definition: record.definition, next, unfinished }, now);
  } catch (error) {
    onFailure(error);
    return { fires: [], gaps: [], next, looksAt: now + POSTPONED };
  }
}

const BACKFILLED = statement(
  "backfilled_ticks",
  `select g.schedule::text, g.at from unnest($1::bigint[], $2::float8[]) as g(schedule, at)
   where exists (select from pawl.tick t where t.schedule = g.schedule and t.at = to_timestamp(g.at / 1000) and (t.way = 'triggered') = false)`,
);

/** Ticks that have a job before their time. Read after the schedules are locked, or one that is just being made would be missed. */
async function backfilled(
  tx: Transaction,
  fires: readonly { readonly row: ScheduleRow; readonly fire: PlannedFire }[],
): Promise<ReadonlySet<string>> {
  if (fires.length === 0) return new Set();
  const values = [plainArray(fires.map(({ row }) => row.id)), plainArray(fires.map(({ fire }) => fire.at))];
  return new Set((await tx.query<{ schedule: string; at: number }>(BACKFILLED, values)).map(({ schedule, at }) => `${schedule} ${at}`));
}

/** (The limit tells the planner that there is one row per id.) */
const UNFINISHED = statement(
  "unfinished_jobs",
  `select g.id from unnest($1::uuid[]) as g(id)
   cross join lateral (select from pawl.any_job j where j.id = g.id limit 1) j
   left join lateral (select a.next from pawl.any_attempt a where a.job = g.id order by a.lease desc limit 1) a on true
   where coalesce(a.next, ${stateCode("ready")}) not in (${stateCode("succeeded")}, ${stateCode("cancelled")})
     and not exists (select from pawl.dead d where d.id = g.id)`,
);

async function unfinishedOf(on: Queryable, ids: readonly JobId[]): Promise<ReadonlySet<JobId>> {
  if (ids.length === 0) return new Set();
  return new Set((await on.query<{ id: JobId }>(UNFINISHED, [plainArray(ids)])).map(({ id }) => id));
}

const ASK = statement(
  "ask_cancel",
  `insert into pawl.intent as i (job, kind, reason, asked_at) select g.id, 'cancel', $3, ${NOW} from unnest($2::uuid[]) as g(id)
   on conflict (job) do update set kind = excluded.kind, reason = excluded.reason where i.kind <> 'cancel'`,
);
const REPLACED = "the next tick of its schedule came";

/** It runs after what is unfinished, however that ends; if it was told to, it has it end now. */
async function withOverlap(db: Db, tx: Transaction, { overlap }: PlannedFire, open: readonly JobId[], job: NewJob): Promise<NewJob> {
  if (overlap === undefined || open.length === 0) return job;
  if (overlap === "wait") return { ...job, dependsOn: { parents: open, onDeath: "run" } };
  const waiting = await take(tx, open);
  for (const one of waiting) await end(db, tx, one, "cancelled", REPLACED);
  const ended = new Set(waiting.map(({ id }) => id));
  const parents = open.filter((id) => !ended.has(id));
  if (parents.length === 0) return job;
  await tx.query(ASK, [db.now(), plainArray(parents), REPLACED]);
  return { ...job, dependsOn: { parents, onDeath: "run" } };
}

/** In the order given. Most need no guards, and those go by the fast way. */
async function enqueueAll(db: Db, tx: Transaction, jobs: readonly NewJob[]): Promise<readonly Enqueued[]> {
  const answers: Enqueued[] = [];
  const guarded = (job: NewJob) => job.request !== undefined || job.unique !== undefined || job.dependsOn !== undefined;
  for (const [way, which] of [
    [enqueuePlain, (job: NewJob) => !guarded(job)],
    [enqueueGuarded, guarded],
  ] as const) {
    const numbers = jobs.flatMap((job, index) => (which(job) ? index : []));
    if (numbers.length === 0) continue;
    const told = await way(
      db,
      tx,
      numbers.map((index) => jobs[index] as NewJob),
    );
    numbers.forEach((index, nth) => {
      answers[index] = told.answers[nth] as Enqueued;
    });
  }
  return answers;
}

const RECORD = statement(
  "record_ticks",
  `
  with fired as (
    insert into pawl.tick (schedule, at, fired_at, way, merged, job)
    select g.schedule, to_timestamp(g.at / 1000), to_timestamp($1::float8 / 1000), g.way, g.merged, g.job
    from unnest($2::bigint[], $3::float8[], $4::text[], $5::int[], $6::uuid[]) as g(schedule, at, way, merged, job)
  ),
  gaps as (
    insert into pawl.tick_gap (schedule, from_at, to_at, seen_at, count, skipped, merged_into)
    select g.schedule, to_timestamp(g.from_at / 1000), to_timestamp(g.to_at / 1000), to_timestamp($1::float8 / 1000), g.count, g.skipped, to_timestamp(g.into_at / 1000)
    from unnest($7::bigint[], $8::float8[], $9::float8[], $10::int[], $11::text[], $12::float8[]) as g(schedule, from_at, to_at, count, skipped, into_at)
  )
  update pawl.schedule s set next = to_timestamp(g.next / 1000), looks_at = to_timestamp(g.looks_at / 1000), open = string_to_array(g.open, ',')::uuid[]
  from unnest($13::bigint[], $14::float8[], $15::float8[], $16::text[]) as g(schedule, next, looks_at, open) where s.id = g.schedule`,
);

interface Moved {
  readonly row: ScheduleRow;
  readonly plan: DuePlan;
  readonly open: readonly JobId[];
}

async function recordTicks(
  tx: Transaction,
  now: number,
  jobs: readonly TickJob[],
  answers: readonly Enqueued[],
  gaps: readonly (PlannedGap & { readonly id: string })[],
  moved: readonly Moved[],
): Promise<void> {
  const fired = jobs.flatMap(({ row, tick }, index) => {
    const answer = answers[index] as Enqueued;
    return answer.kind === "created" ? { id: row.id, job: answer.id, ...tick } : [];
  });
  const taken = jobs.flatMap(({ row, tick: { at, way } }, index): readonly (typeof gaps)[number][] =>
    answers[index]?.kind === "created" || way === "triggered" ? [] : [{ id: row.id, from: at, to: at, count: 1, skipped: "key" }],
  );
  const all = [...gaps, ...taken];
  const added = new Map<string, JobId[]>();
  for (const { id, job } of fired) added.set(id, [...(added.get(id) ?? []), job]);
  await tx.query(RECORD, [
    now,
    plainArray(fired.map(({ id }) => id)),
    plainArray(fired.map(({ at }) => at)),
    textArray(fired.map(({ way }) => way)),
    plainArray(fired.map(({ merged }) => merged)),
    plainArray(fired.map(({ job }) => job)),
    plainArray(all.map(({ id }) => id)),
    plainArray(all.map(({ from }) => from)),
    plainArray(all.map(({ to }) => to)),
    plainArray(all.map(({ count }) => count)),
    textArray(all.map(({ skipped }) => skipped)),
    plainArray(all.map(({ mergedInto }) => mergedInto)),
    plainArray(moved.map(({ row }) => row.id)),
    plainArray(moved.map(({ plan }) => plan.next)),
    plainArray(moved.map(({ plan }) => plan.looksAt)),
    textArray(moved.map((one) => openJobs(one.open, added.get(one.row.id) ?? []).join(","))),
  ]);
}

const FIRED = statement(
  "fired_among",
  `select ${ms("at")} as at from pawl.tick where schedule = $1::bigint and at = any(select to_timestamp(g / 1000) from unnest($2::float8[]) g) and (way = 'triggered') = $3::bool`,
);

export async function firedAmong(on: Queryable, schedule: string, ticks: readonly number[], triggered = false): Promise<readonly number[]> {
  return (await on.query<{ at: number }>(FIRED, [schedule, plainArray(ticks), triggered])).map(({ at }) => at);
}

/** One more job of a schedule, now. Its own time is the next whole ms that no other trigger has. */
export function triggerSchedule(
  db: Db,
  ref: ScheduleRef,
  { tail, input, request }: { readonly tail: IdTail; readonly input?: string; readonly request?: string },
): Promise<Made | undefined> {
  return outside(db, ref, async (tx, row, now) => {
    const candidates = Array.from({ length: 100 }, (_, n) => Math.floor(now) + n);
    const taken = new Set(await firedAmong(tx, row.id, candidates, true));
    const at = candidates.find((one) => !taken.has(one)) ?? Math.floor(now) + 100;
    const tick = { at, way: "triggered", merged: 0 } as const;
    const job = jobOfTick(row.record, tick, tail);
    return [{ row, tick, job: { ...job, ...(input === undefined ? {} : { input }), ...(request === undefined ? {} : { request }) } }];
  });
}

/** Jobs for ticks of the past that have none. */
export function backfillSchedule(db: Db, ref: ScheduleRef, { ticks, after, pace, tail }: Backfill): Promise<Made | undefined> {
  return outside(db, ref, async (tx, row) => {
    const before = new Set(await firedAmong(tx, row.id, ticks));
    return ticks
      .filter((at) => !before.has(at))
      .map((at, nth) => {
        const tick = { at, way: "backfilled", merged: 0 } as const;
        const delay = after + nth * pace;
        return { row, tick, job: { ...jobOfTick(row.record, tick, tail()), ...(delay === 0 ? {} : { delay }) } };
      });
  });
}

const SET_OPEN = statement("set_open", "update pawl.schedule set open = $2::uuid[] where id = $1::bigint");

/** What people ask of a schedule beside its rule: its next tick stays where it is. */
function outside(
  db: Db,
  ref: ScheduleRef,
  prepare: (tx: Transaction, row: ScheduleRow, now: number) => Promise<readonly TickJob[]>,
): Promise<Made | undefined> {
  return db.transaction(async (tx) => {
    const row = await lockSchedule(tx, ref);
    if (row === undefined) return undefined;
    const { now } = await readSpan(db, tx);
    const jobs = await prepare(tx, row, now);
    const answers = await enqueueAll(
      db,
      tx,
      jobs.map(({ job }) => job),
    );
    await recordTicks(tx, now, jobs, answers, [], []);
    const made = answers.flatMap((answer) => (answer.kind === "created" ? answer.id : []));
    await tx.query(SET_OPEN, [row.id, plainArray(openJobs(row.open, made))]);
    return { jobs: jobs.map(({ job }) => job), answers, now };
  });
}

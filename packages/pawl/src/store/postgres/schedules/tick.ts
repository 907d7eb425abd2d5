import type { IdSuffixSource, JobId } from "../../../core/jobs/id.js";
import { type DuePlan, duePlan } from "../../../core/schedules/due-ticks.js";
import { type Definition, jobOfTick, type ScheduleRef, seedOf } from "../../../core/schedules/schedule.js";
import { isPawlError } from "../../../core/values/error.js";
import type { TickReport } from "../../port/schedules/schedules.js";
import type { LowWatermarks } from "../claim/low-watermarks.js";
import { plainArray } from "../connection/arrays.js";
import { ms, NOW, type StoreDb, statement, type WriteTransaction } from "../connection/db.js";
import { DriverError } from "../connection/errors.js";
import { unfinishedOf, withOverlap } from "./overlap.js";
import { enqueueTicks, recordTicks, type TickedJobs, type TickJob } from "./record-ticks.js";

/**
 * What schedules do when their time has come. Their rows are locked from the look until the commit, so each tick is
 * decided once; the index on ticks is the proof. Several processes share the work by skipping each other's rows.
 */

/** A plan that cannot be made (its zone has left the tz database) is tried again after so many ms, and holds up no other. */
const POSTPONED_MS = 60_000;

const DUE = statement(
  "due_schedules",
  `select s.id::text, s.tenant, s.name, s.definition::text, array_to_string(s.open, ',') as open, ${ms("s.next")} as next, ${ms("s.due_at")} as due_at, ${ms("c.now")} as now
   from (select ${NOW} as now) c
   cross join lateral (
     select * from pawl.schedule
     where due_at >= to_timestamp($3::float8 / 1000)  -- stop: due-schedules-snapshot
       and due_at <= c.now order by due_at limit $2
     for update skip locked  -- guard: due-schedule-locked
   ) s`,
);
const NEXT = statement(
  "next_tick",
  `select ${ms("due_at")} - ${ms(NOW)} as next from pawl.schedule where due_at >= to_timestamp($2::float8 / 1000) order by due_at limit 1`,
);

interface DueRow extends ScheduleRef {
  readonly id: string;
  readonly definition: string;
  readonly open: string;
  readonly next: number;
  readonly due_at: number;
  readonly now: number;
}

interface Step {
  readonly rows: readonly DueRow[];
  readonly made: TickedJobs;
  readonly failures: readonly unknown[];
}

export async function tickSchedules(
  db: StoreDb,
  watermarks: LowWatermarks,
  limit: number,
  idSuffix: IdSuffixSource,
): Promise<{ readonly ticked: TickReport; readonly made: TickedJobs }> {
  const step = (wary: boolean) => db.transaction((tx) => tickDue(db, tx, [db.now(), limit, watermarks.tick.value], idSuffix, wary));
  // Hardly ever was a tick backfilled before its schedule got to it: the index tells, and then they are looked up.
  const { rows, made, failures } = await step(false).catch((error: unknown) => (isTaken(error) ? step(true) : Promise.reject(error)));
  const [next] = await db.query<{ next: number }>(NEXT, [db.now(), watermarks.tick.value]);
  const ticked = {
    schedules: rows.length,
    jobs: made.answers.filter(({ kind }) => kind === "created").length,
    latest: rows.reduce((most, { now, due_at }) => Math.max(most, now - due_at), 0),
    ...(next === undefined ? {} : { nextIn: Math.max(0, next.next) }),
    ...(failures.length === 0 ? {} : { failures }),
  };
  return { ticked, made };
}

const UNIQUE_VIOLATION = "23505";
function isTaken(error: unknown): boolean {
  return isPawlError(error) && error.cause instanceof DriverError && error.cause.code === UNIQUE_VIOLATION;
}

async function tickDue(db: StoreDb, tx: WriteTransaction, look: readonly unknown[], idSuffix: IdSuffixSource, wary: boolean): Promise<Step> {
  const rows = await tx.query<DueRow>(DUE, look);
  const failures: unknown[] = [];
  if (rows.length === 0) return { rows, failures, made: { jobs: [], answers: [], now: 0 } };
  const { now } = rows[0] as DueRow;
  const due = await planned(tx, rows, failures);
  const before = wary ? await backfilled(tx, due) : NONE;
  const ticks: TickJob[] = [];
  for (const { schedule, name, definition, plan, open } of due) {
    for (const fire of plan.fires) {
      if (before.has(`${schedule} ${fire.at}`)) continue;
      const job = jobOfTick({ name, definition }, fire, idSuffix(definition.job.lane.tenant));
      ticks.push({ schedule, tick: fire, job: fire.overlap === undefined ? job : await withOverlap(db, tx, fire.overlap, open, job) });
    }
  }
  const answers = await enqueueTicks(db, tx, ticks);
  const gaps = due.flatMap(({ schedule, plan }) => plan.gaps.map((gap) => ({ ...gap, schedule })));
  await recordTicks(tx, now, ticks, answers, gaps, due);
  return { rows, failures, made: { jobs: ticks.map(({ job }) => job), answers, now } };
}

interface Due {
  readonly schedule: string;
  readonly name: string;
  readonly definition: Definition;
  readonly plan: DuePlan;
  readonly open: readonly JobId[];
}

async function planned(tx: WriteTransaction, rows: readonly DueRow[], failures: unknown[]): Promise<readonly Due[]> {
  const decoded = rows.map((row) => ({
    row,
    definition: JSON.parse(row.definition) as Definition,
    open: row.open === "" ? [] : (row.open.split(",") as JobId[]),
  }));
  const unfinished = await unfinishedOf(
    tx,
    decoded.flatMap(({ definition, open }) => (definition.overlap === "allow" ? [] : open)),
  );
  return decoded.map(({ row, definition, open: all }) => {
    const open = definition.overlap === "allow" ? all : all.filter((id) => unfinished.has(id));
    return { schedule: row.id, name: row.name, definition, open, plan: planOf(row, definition, open.length, failures) };
  });
}

function planOf(row: DueRow, definition: Definition, unfinished: number, failures: unknown[]): DuePlan {
  const { next, now } = row;
  try {
    return duePlan({ seed: seedOf(row), definition, next, unfinished }, now);
  } catch (error) {
    failures.push(error);
    return { fires: [], gaps: [], next, looksAt: now + POSTPONED_MS };
  }
}

/** (The limit keeps the planner from reading all ticks there are.) */
const BACKFILLED = statement(
  "backfilled_ticks",
  `select g.schedule::text, g.at from unnest($1::bigint[], $2::float8[]) as g(schedule, at)
   cross join lateral (
     select from pawl.tick t where t.schedule = g.schedule and t.at = to_timestamp(g.at / 1000) and (t.way = 'triggered') = false limit 1
   ) t  -- guard: backfilled-are-passed-by
   `,
);
const NONE: ReadonlySet<string> = new Set();

/** Ticks that have a job before their time. Read after the schedules are locked, or one that is just being made would be missed. */
async function backfilled(tx: WriteTransaction, due: readonly Due[]): Promise<ReadonlySet<string>> {
  const fires = due.flatMap(({ schedule, plan }) => plan.fires.map(({ at }) => ({ schedule, at })));
  const values = [plainArray(fires.map(({ schedule }) => schedule)), plainArray(fires.map(({ at }) => at))];
  return new Set((await tx.query<{ schedule: string; at: number }>(BACKFILLED, values)).map(({ schedule, at }) => `${schedule} ${at}`));
}

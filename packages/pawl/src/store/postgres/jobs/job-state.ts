import type { Failure } from "../../../core/jobs/failure.js";
import type { JobId } from "../../../core/jobs/id.js";
import { type Intent, isFinished, type JobOptions, type JobRecord, type JobState, type ParkReason } from "../../../core/jobs/job.js";
import type { Lane } from "../../../core/jobs/lane.js";
import { type LimitKeyId, limitKeyParts } from "../../../core/limits/limit-rule.js";
import { plainArray } from "../connection/arrays.js";
import { stateOf } from "../connection/codes.js";
import { ms, statement } from "../connection/db.js";
import { bytesOf, withinBytes } from "../connection/pages.js";
import { SEQ_STEP } from "../connection/sql-constants.js";
import type { Queryable } from "../drivers/driver.js";
import { laneOf } from "./waiting-jobs.js";

/**
 * Which table holds the row is the state (`waiting`); in none of them, the newest attempt says how it ended, or it is running.
 * (The limit tells the planner that there is one row per id: without it the estimate is high enough to wake the JIT.)
 */
const reading = (ids: string) => `
  select g.id, j.queue, j.priority, j.tenant, j.task, j.input::text, j.options::text, ${ms("j.created_at")} as created_at, ${ms("j.due_at")} as due_at,
    case when r.id is not null or u.id is not null or k.seq is not null then 'ready' when s.id is not null then 'scheduled' when p.id is not null then 'parked'
      when b.id is not null then 'blocked' when d.id is not null then 'dead' end as waiting, a.next,
    coalesce(a.attempts, 0) as attempts, coalesce(a.crashes, 0) as crashes, a.lease is not null as tried,
    ${ms("coalesce(s.run_at, p.run_at)")} as run_at, p.reason as parked_for, p.limit_key, i.kind as intent,
    ${ms("a.finished_at")} as finished_at, a.output::text, a.failure::text,
    (select l.data::text from pawl.any_log l where l.job = g.id and l.level = 4 order by l.at desc, l.line desc limit 1) as progress, g.ord::int as place,
    (select string_agg(t.parent::text, ',' order by t.parent) from pawl.dependency t where t.child = g.id) as waits_for
  from ${ids}
  cross join lateral (select * from pawl.any_job j where j.id = g.id limit 1) j
  left join pawl.ready r on r.id = g.id
  left join pawl.suspect u on u.id = g.id
  left join lateral (
    select r.seq from pawl.ready r
    where r.queue = j.queue and r.priority = j.priority and r.tenant = j.tenant and r.task = j.task and r.seq > j.home - ${SEQ_STEP} and r.seq <= j.home and g.id = any(r.jobs)
  ) k on true
  left join pawl.scheduled s on s.id = g.id
  left join pawl.parked p on p.id = g.id
  left join pawl.blocked b on b.id = g.id
  left join pawl.dead d on d.id = g.id
  left join pawl.intent i on i.job = g.id
  left join lateral (select * from pawl.any_attempt a where a.job = g.id order by a.lease desc limit 1) a on true`;

const READ = reading("unnest($1::uuid[]) with ordinality as g(id, ord)");

const FACTS = statement("facts", `${READ} order by g.ord`);
/** A list of unknown length counts as ten, so its general plan looks dear, and it is planned anew each time, for longer than it runs. */
const FACT = statement("facts_one", reading("(select $1::uuid as id, 1 as ord) as g"));
const FACTS_WITHIN = statement(
  "facts_within",
  withinBytes(`select f.*, ${bytesOf("input", "output", "failure", "progress")} as bytes from (${READ}) f`, "place", "$2"),
);

export interface FactsRow extends Lane {
  readonly id: JobId;
  readonly input: string;
  readonly options: string | null;
  readonly created_at: number;
  readonly due_at: number;
  /** the state that the table with its row stands for; null: it is in none */
  readonly waiting: JobState | null;
  /** where the newest attempt left it */
  readonly next: number | null;
  readonly attempts: number;
  readonly crashes: number;
  readonly tried: boolean;
  readonly run_at: number | null;
  readonly parked_for: ParkReason | null;
  readonly limit_key: LimitKeyId | null;
  readonly intent: Intent | null;
  readonly finished_at: number | null;
  readonly output: string | null;
  readonly failure: string | null;
  readonly progress: string | null;
  readonly waits_for: string | null;
}

/** A job's record, and whether it was ever tried. */
export interface Facts extends JobRecord {
  readonly started: boolean;
}

/** In the order of the ids; unknown ones are left out. */
export async function readFacts(on: Queryable, ids: readonly JobId[]): Promise<readonly Facts[]> {
  if (ids.length === 0) return [];
  const rows = await (ids.length === 1 ? on.query<FactsRow>(FACT, [ids[0]]) : on.query<FactsRow>(FACTS, [plainArray(ids)]));
  return rows.map(factsOf);
}

/** The first of them, as many as fill these bytes; `full`: there was no room for more. */
export async function readFactsWithin(
  on: Queryable,
  ids: readonly JobId[],
  most: number,
): Promise<{ readonly facts: readonly Facts[]; readonly full: boolean }> {
  if (ids.length === 0) return { facts: [], full: false };
  const rows = await on.query<FactsRow & { readonly bytes: number }>(FACTS_WITHIN, [plainArray(ids), most]);
  return { facts: rows.map(factsOf), full: rows.reduce((sum, row) => sum + row.bytes, 0) >= most };
}

function factsOf(row: FactsRow): Facts {
  const record = recordOf(row);
  return { ...record, started: row.tried || record.state === "running" };
}

export function recordOf(row: Omit<FactsRow, "tried">): JobRecord {
  const state = row.waiting ?? endOf(row.next);
  const ended = isFinished(state);
  return {
    id: row.id,
    lane: laneOf(row),
    state,
    input: row.input,
    options: row.options === null ? {} : (JSON.parse(row.options) as JobOptions),
    createdAt: row.created_at,
    dueAt: row.due_at,
    attempts: row.attempts,
    crashes: row.crashes,
    ...(row.run_at === null ? {} : { runAt: row.run_at }),
    ...(row.parked_for === null ? {} : { parkedFor: row.parked_for }),
    ...(row.limit_key === null ? {} : { limitKey: limitKeyOf(row.limit_key) }),
    ...(row.waits_for === null ? {} : { waitsFor: row.waits_for.split(",") as JobId[] }),
    ...(row.intent === null ? {} : { intent: row.intent }),
    ...(ended && row.finished_at !== null ? { finishedAt: row.finished_at } : {}),
    ...(state === "succeeded" && row.output !== null ? { output: row.output } : {}),
    ...(state !== "succeeded" && row.failure !== null ? { failure: JSON.parse(row.failure) as Failure } : {}),
    ...(row.progress === null ? {} : { progress: row.progress }),
  };
}

/** Of a job in no table of those that wait. */
function endOf(next: number | null): JobState {
  const state = next === null ? undefined : stateOf(next);
  return state === "succeeded" || state === "cancelled" ? state : "running";
}

function limitKeyOf(limitKey: LimitKeyId): NonNullable<JobRecord["limitKey"]> {
  const { limit, key } = limitKeyParts(limitKey);
  return { limit, key };
}

export function withoutStarted({ started: _, ...record }: Facts): JobRecord {
  return record;
}

import type pg from "pg";
import { JOB_STATES, type JobState } from "../../../packages/pawl/src/core/jobs/job.js";
import { outcomeCode, outcomeOf, stateCode, stateOf } from "../../../packages/pawl/src/store/postgres/connection/codes.js";
import type { HandlerLog } from "../processes/handler-log.js";

/**
 * What must hold after any failure, read from the tables and from the handler log; I-numbers are those of the catalogue of
 * failures. `installWitness` puts a trigger beside the history that sees its inserts in the order they happened.
 */
export interface InvariantEvidence {
  readonly client: pg.Client;
  readonly handlerLog?: HandlerLog;
  /** ids whose enqueue resolved */
  readonly acknowledged?: readonly string[];
  /** ids whose enqueue was tried; absent: nobody knows */
  readonly attempted?: readonly string[];
  /** jobs whose rows a test destroyed on purpose */
  readonly destroyed?: readonly string[];
  /** whether everything must be finished by now (default: yes) */
  readonly quiet?: boolean;
}

const WITNESS = `
create table if not exists public.witness (
  no bigint generated always as identity primary key, at timestamptz not null default clock_timestamp(),
  job uuid not null, lease bigint not null, worker int, outcome int not null, next int not null
);
create or replace function public.witness() returns trigger language plpgsql as $$
begin
  -- A row of several that is taken apart comes back as rows of one.
  if tg_op = 'DELETE' then delete from public.witness w where w.lease = old.lease and w.job = any(old.jobs);
  else insert into public.witness (job, lease, worker, outcome, next)
    select u.job, new.lease, new.worker, coalesce(new.outcomes[o.at + 1], ${outcomeCode("succeeded")}), coalesce(new.outcomes[o.at + 2], ${stateCode("succeeded")})
    from unnest(coalesce(new.jobs, array[new.first])) with ordinality as u(job, place)
    left join lateral (select at from generate_series(1, cardinality(new.outcomes), 5) as at where new.outcomes[at] = u.place) o on true;
  end if;
  return null;
end $$;
create or replace trigger witness after insert or delete on pawl.history for each row execute function public.witness();`;

export async function installWitness(client: pg.Client): Promise<void> {
  await client.query(WITNESS);
}

const JOB_LOCATIONS = `
  with place as (
    select id, 'ready' as state from pawl.any_ready
    union all select id, 'scheduled' from pawl.scheduled
    union all select id, 'parked' from pawl.parked
    union all select id, 'blocked' from pawl.blocked
    union all select id, 'dead' from pawl.dead
    union all select u.job, 'running' from pawl.lease l cross join lateral unnest(l.jobs) with ordinality as u(job, place)
      where not u.place::int <@ l.settled
    union all select job, case when next = ${stateCode("succeeded")} then 'succeeded' else 'cancelled' end
      from (select distinct on (job) job, next from pawl.any_attempt order by job, lease desc) as last
      where next in (${stateCode("succeeded")}, ${stateCode("cancelled")})
  )
  select coalesce(j.id, p.id)::text as id, j.queue, j.task, array_remove(array_agg(p.state), null) as states, j.id is not null as "exists"
  from pawl.any_job j full join place p on p.id = j.id group by j.id, p.id, j.queue, j.task`;

interface StoredJob {
  readonly id: string;
  readonly queue: string;
  readonly task: string;
  readonly states: readonly JobState[];
  readonly exists: boolean;
}

const FINISHED: ReadonlySet<JobState> = new Set(["succeeded", "dead", "cancelled"]);

/** Throws one error that lists every violation. All is read from one snapshot, so it may be asked while work goes on. */
export async function checkInvariants(evidence: InvariantEvidence): Promise<void> {
  const { client } = evidence;
  await client.query("begin isolation level repeatable read read only");
  const problems = await violations(evidence).finally(() => client.query("rollback"));
  if (problems.length > 0) throw new Error(`invariants broken:\n${problems.slice(0, 20).join("\n")}${problems.length > 20 ? "\n…" : ""}`);
}

async function violations(evidence: InvariantEvidence): Promise<readonly string[]> {
  const { client } = evidence;
  const destroyed = new Set(evidence.destroyed ?? []);
  const { rows } = await client.query<StoredJob>(JOB_LOCATIONS);
  const places = rows.filter(({ id }) => !destroyed.has(id));
  const states = new Map(places.map(({ id, states: [state] }) => [id, state]));
  return [
    ...structure(places, evidence.quiet !== false),
    ...accounting(evidence, states, destroyed),
    ...(await history(client)),
    ...(await effects(client, states)),
    ...(await leftovers(client)),
    ...(destroyed.size > 0 ? [] : await counts(client, places)),
    ...(evidence.handlerLog === undefined ? [] : atMostOnce(evidence.handlerLog)),
  ];
}

/** I14: every job in exactly one place; and, once all is quiet, finished. */
function* structure(places: readonly StoredJob[], quiet: boolean): Iterable<string> {
  for (const { id, states, exists } of places) {
    if (!exists) yield `I14 job ${id} is ${states.join(" and ")} without a row of its own`;
    else if (states.length !== 1) yield `I14 job ${id} is in ${states.length} places: ${states.join(", ")}`;
    else if (quiet && !FINISHED.has(states[0] as JobState)) yield `I13 job ${id} is still ${states[0]}`;
  }
}

/** I1, I2: what was acknowledged is there; what is there, and what ran, somebody asked for. */
function* accounting(
  { acknowledged, attempted, handlerLog }: InvariantEvidence,
  states: ReadonlyMap<string, unknown>,
  destroyed: ReadonlySet<string>,
): Iterable<string> {
  for (const id of acknowledged ?? []) if (!states.has(id) && !destroyed.has(id)) yield `I1 job ${id} was acknowledged and is gone`;
  if (attempted === undefined) return;
  const asked = new Set(attempted);
  for (const id of states.keys()) if (!asked.has(id)) yield `I2 job ${id} comes from nowhere`;
  for (const { job } of handlerLog?.lines("start") ?? []) if (!asked.has(job)) yield `I2 job ${job} ran and was never enqueued`;
}

/** I3, I6: leases of a job grow, it succeeds at most once, and nothing follows its end. */
async function history(client: pg.Client): Promise<readonly string[]> {
  const problems: string[] = [];
  const { rows } = await client.query<{ job: string; lease: string; outcome: number; next: number }>(
    "select job::text, lease::text, outcome, next from public.witness order by no",
  );
  const last = new Map<string, { lease: bigint; next: JobState }>();
  for (const row of rows) {
    const lease = BigInt(row.lease);
    const before = last.get(row.job);
    if (before !== undefined && lease <= before.lease) problems.push(`I3 job ${row.job} was settled under lease ${lease} after ${before.lease}`);
    if (before !== undefined && FINISHED.has(before.next) && outcomeOf(row.outcome) !== "redriven")
      problems.push(`I6 job ${row.job} went on after it was ${before.next}`);
    last.set(row.job, { lease, next: stateOf(row.next) });
  }
  const twice = await client.query<{ job: string }>("select job::text from public.witness where outcome = 0 group by job having count(*) > 1");
  for (const { job } of twice.rows) problems.push(`I3 job ${job} succeeded more than once`);
  return problems;
}

/** I4: an effect written with its settlement is there once for a job that succeeded, and never for another. */
async function effects(client: pg.Client, states: ReadonlyMap<string, JobState | undefined>): Promise<readonly string[]> {
  const problems: string[] = [];
  const { rows } = await client.query<{ job: string; n: number }>("select job::text, count(*)::int as n from public.effects group by job");
  for (const { job, n } of rows) {
    if (n > 1) problems.push(`I4 the effect of job ${job} is there ${n} times`);
    if (states.get(job) !== "succeeded") problems.push(`I4 job ${job} is ${states.get(job)} and left an effect`);
  }
  const missing = await client.query<{ job: string }>(
    `select a.job::text from pawl.any_attempt a join pawl.any_job j on j.id = a.job
     where j.task = 'counter' and a.outcome = 0 and not exists (select from public.effects e where e.job = a.job)`,
  );
  for (const { job } of missing.rows) problems.push(`I4 job ${job} succeeded without its effect`);
  return problems;
}

/** I14: no lease without an open job, and none that miscounts them; nothing asked of jobs that have ended. */
async function leftovers(client: pg.Client): Promise<readonly string[]> {
  const problems: string[] = [];
  const { rows } = await client.query<{ id: string; open: number; really: number }>(
    `select l.id::text, l.unsettled as open, (select count(*)::int from unnest(l.jobs) u(job)
       where not exists (select from pawl.any_attempt a where a.job = u.job and a.lease = l.id)) as really from pawl.lease l`,
  );
  for (const { id, open, really } of rows)
    if (open !== really || really === 0) problems.push(`I14 lease ${id} says ${open} open jobs and has ${really}`);
  return problems;
}

/** I17: what the counters say is what there is. */
async function counts(client: pg.Client, places: readonly StoredJob[]): Promise<readonly string[]> {
  const problems: string[] = [];
  const sums = JOB_STATES.map((state) => `sum(${state})::int as ${state}`).join(", ");
  const columns = JOB_STATES.join(", ");
  const { rows } = await client.query<{ queue: string; task: string } & Record<JobState, number>>(
    `select queue, task, ${sums} from (select queue, task, ${columns} from pawl.counter union all select queue, task, ${columns} from pawl.counter_delta) c group by queue, task`,
  );
  const truth = new Map<string, number>();
  for (const { queue, task, states } of places)
    for (const state of states) truth.set(`${queue} ${task} ${state}`, (truth.get(`${queue} ${task} ${state}`) ?? 0) + 1);
  for (const row of rows) {
    for (const state of JOB_STATES) {
      const key = `${row.queue} ${row.task} ${state}`;
      if (row[state] !== (truth.get(key) ?? 0)) problems.push(`I17 counts say ${row[state]} ${key}, there are ${truth.get(key) ?? 0}`);
      truth.delete(key);
    }
  }
  for (const [key, n] of truth) problems.push(`I17 counts do not know ${n} ${key}`);
  return problems;
}

/** I5: what may run at most once started at most once. */
function* atMostOnce(handlerLog: HandlerLog): Iterable<string> {
  const starts = new Map<string, number>();
  for (const { job, task } of handlerLog.lines("start")) if (task === "fragile") starts.set(job, (starts.get(job) ?? 0) + 1);
  for (const [job, n] of starts) if (n > 1) yield `I5 job ${job} started ${n} times`;
}

/** I15: connections by application name. */
export async function connections(client: pg.Client): Promise<ReadonlyMap<string, number>> {
  const { rows } = await client.query<{ name: string; n: number }>(
    `select application_name as name, count(*)::int as n from pg_stat_activity
     where datname = current_database() and application_name like 'pawl%' group by 1 order by 1`,
  );
  return new Map(rows.map(({ name, n }) => [name, n]));
}

import { DEFAULTS } from "../../core/defaults.js";
import { doomedBy, releaseOf } from "../../core/dependency.js";
import { type JobId, jobId } from "../../core/id.js";
import type { Enqueued, NewJob, State } from "../../core/job.js";
import { debouncedUntil, judgeKey, type KeyHolder, type UniqueRule } from "../../core/unique.js";
import { ALL_NULL, plainArray, textArray } from "./arrays.js";
import { end, MOST_LOOKS } from "./control.js";
import { count } from "./counts.js";
import { type Db, ms, statement } from "./db.js";
import type { Queryable, Transaction } from "./drivers/driver.js";
import { dueTime } from "./enqueue.js";
import { type Facts, readFacts } from "./facts.js";
import { LanesTable, laneCte } from "./lanes-table.js";
import { optionsText } from "./options-text.js";
import { markDead, type Placement, put, take } from "./pending.js";
import { clampDue, readSpan, type Span } from "./span.js";
import { type Limited, saveTickets } from "./tickets.js";

/** A job of the batch with its id and due time. */
interface Candidate {
  readonly job: NewJob;
  readonly id: JobId;
  readonly due: number;
}

/**
 * Stores a batch in which some jobs have a request id, a key, parents or limits, in the caller's transaction, as if they had
 * come one by one: jobs that share a key or a request id are handled in rounds, each seeing the one before.
 */
export async function enqueueGuarded(db: Db, tx: Transaction, jobs: readonly NewJob[]): Promise<{ answers: readonly Enqueued[]; now: number }> {
  const span = await readSpan(db, tx);
  const answers = new Map<NewJob, Enqueued>();
  for (const round of rounds(jobs)) {
    const candidates = round.map((job): Candidate => {
      const due = dueTime(job, span.now);
      return { job, due, id: jobId(clampDue(due, span), job.tail) };
    });
    await enqueueRound(db, tx, candidates, span, answers);
  }
  return { answers: jobs.map((job) => answers.get(job) as Enqueued), now: span.now };
}

function rounds(jobs: readonly NewJob[]): readonly (readonly NewJob[])[] {
  const seen = new Map<string, number>();
  const result: NewJob[][] = [];
  for (const job of jobs) {
    const names = [job.request === undefined ? undefined : `r${requestKey(job)}`, job.unique === undefined ? undefined : `k${uniqueKey(job)}`].filter(
      (name) => name !== undefined,
    );
    const round = Math.max(0, ...names.map((name) => seen.get(name) ?? 0));
    for (const name of names) seen.set(name, round + 1);
    result[round] = [...(result[round] ?? []), job];
  }
  return result;
}

function requestKey(job: NewJob): string {
  return `${job.lane.tenant}\u0001${job.request}`;
}
function uniqueKey(job: NewJob): string {
  return `${job.lane.tenant}\u0001${job.lane.task}\u0001${job.unique?.key}`;
}

async function enqueueRound(db: Db, tx: Transaction, candidates: readonly Candidate[], span: Span, answers: Map<NewJob, Enqueued>): Promise<void> {
  const repeated = await lockRequests(tx, candidates, span);
  for (const { job } of candidates) {
    const first = repeated.get(requestKey(job));
    if (job.request !== undefined && first !== undefined) answers.set(job, { kind: "existing", id: first });
  }
  const parents = await readParents(tx, candidates);
  for (const { job } of open(candidates, answers)) {
    const orphan = job.dependsOn?.parents.find((parent) => parents.get(parent)?.lane.tenant !== job.lane.tenant);
    if (orphan !== undefined) answers.set(job, { kind: "orphaned", parent: orphan });
  }
  const redated = await judgeKeys(db, tx, open(candidates, answers), span, answers);
  const created = candidates
    .filter(({ job }) => !answers.has(job) || answers.get(job)?.kind === "created")
    .map((candidate) => redated.get(candidate.job) ?? candidate);
  for (const { job, id } of created) if (!answers.has(job)) answers.set(job, { kind: "created", id });
  await saveRequests(tx, candidates, answers, span);
  await storeJobs(tx, created, span);
  await saveTickets(db, tx, created.flatMap(limited));
  await placeJobs(db, tx, created, parents, span);
}

function limited({ job, id }: Candidate): readonly Limited[] {
  const limits = job.options?.limits;
  return limits === undefined ? [] : [{ id, tenant: job.lane.tenant, limits }];
}

function open(candidates: readonly Candidate[], answers: ReadonlyMap<NewJob, Enqueued>): readonly Candidate[] {
  return candidates.filter(({ job }) => !answers.has(job));
}

// --- request ids -------------------------------------------------------------------------------------------------

/** Inserting locks a name that is new and one that is old alike; sorted, so that two batches never wait in a circle. */
const LOCK_REQUESTS = statement(
  "lock_requests",
  `insert into pawl.request as r (tenant, id, job, until)
   select g.tenant, g.id, g.job, to_timestamp($4::float8 / 1000) from unnest($1::text[], $2::text[], $3::uuid[]) as g(tenant, id, job) order by g.tenant collate "C", g.id collate "C"
   on conflict (tenant, id) do update set job = case when r.until > to_timestamp($5::float8 / 1000) then r.job else excluded.job end,
     until = case when r.until > to_timestamp($5::float8 / 1000) then r.until else excluded.until end
   returning tenant, id, job`,
);

/** The first job of each request id that is still remembered. */
async function lockRequests(tx: Queryable, candidates: readonly Candidate[], span: Span): Promise<ReadonlyMap<string, JobId>> {
  const asked = candidates.filter(({ job }) => job.request !== undefined);
  if (asked.length === 0) return new Map();
  const rows = await tx.query<{ tenant: string; id: string; job: JobId }>(LOCK_REQUESTS, [
    textArray(asked.map(({ job }) => job.lane.tenant)),
    textArray(asked.map(({ job }) => job.request)),
    plainArray(asked.map(({ id }) => id)),
    span.now + DEFAULTS.keep.request,
    span.now,
  ]);
  const own = new Set(asked.map(({ id }) => id));
  return new Map(rows.filter((row) => !own.has(row.job)).map((row) => [`${row.tenant}\u0001${row.id}`, row.job]));
}

const MOVE_REQUEST = statement("move_request", "update pawl.request set job = $3::uuid where tenant = $1 and id = $2");
const FORGET_REQUEST = statement("forget_request", "delete from pawl.request where tenant = $1 and id = $2");

/** A request that was answered with another job remembers that one; one that was turned away remembers nothing. */
async function saveRequests(tx: Queryable, candidates: readonly Candidate[], answers: ReadonlyMap<NewJob, Enqueued>, _span: Span): Promise<void> {
  for (const { job, id } of candidates) {
    const answer = answers.get(job) as Enqueued;
    if (job.request === undefined) continue;
    if (answer.kind === "existing" && answer.id !== id) await tx.query(MOVE_REQUEST, [job.lane.tenant, job.request, answer.id]);
    if (answer.kind === "rejected" || answer.kind === "orphaned") await tx.query(FORGET_REQUEST, [job.lane.tenant, job.request]);
  }
}

// --- keys --------------------------------------------------------------------------------------------------------

const LOCK_KEYS = statement(
  "lock_keys",
  `insert into pawl.key as k (tenant, task, key, job, hold, until, since)
   select g.tenant, g.task, g.key, g.job, g.hold, to_timestamp(g.until / 1000), to_timestamp($7::float8 / 1000)
   from unnest($1::text[], $2::text[], $3::text[], $4::uuid[], $5::text[], $6::float8[]) as g(tenant, task, key, job, hold, until)
   order by g.tenant collate "C", g.task collate "C", g.key collate "C"
   on conflict (tenant, task, key) do update set job = k.job
   returning tenant, task, key, job, hold, ${ms("until")} as until, ${ms("since")} as since`,
);
const MOVE_KEY = statement(
  "move_key",
  "update pawl.key set job = $4::uuid, hold = $5, until = to_timestamp($6::float8 / 1000), since = to_timestamp($7::float8 / 1000) where tenant = $1 and task = $2 and key = $3",
);

interface KeyRow {
  readonly tenant: string;
  readonly task: string;
  readonly key: string;
  readonly job: JobId;
  readonly hold: "pending" | "unfinished" | "period";
  readonly until: number | null;
  readonly since: number | null;
}

/** Answers those that are due at another time than they asked for: debounced for as long as that may be. */
async function judgeKeys(
  db: Db,
  tx: Transaction,
  candidates: readonly Candidate[],
  span: Span,
  answers: Map<NewJob, Enqueued>,
): Promise<ReadonlyMap<NewJob, Candidate>> {
  const redated = new Map<NewJob, Candidate>();
  const keyed = candidates.filter(({ job }) => job.unique !== undefined);
  if (keyed.length === 0) return redated;
  const rows = await tx.query<KeyRow>(LOCK_KEYS, [
    textArray(keyed.map(({ job }) => job.lane.tenant)),
    textArray(keyed.map(({ job }) => job.lane.task)),
    textArray(keyed.map(({ job }) => job.unique?.key)),
    plainArray(keyed.map(({ id }) => id)),
    textArray(keyed.map(({ job }) => holdText(job.unique as UniqueRule))),
    plainArray(keyed.map(({ job }) => holdUntil(job.unique as UniqueRule, span))),
    span.now,
  ]);
  const held = new Map(rows.map((row) => [`${row.tenant}\u0001${row.task}\u0001${row.key}`, row]));
  const contested = keyed.filter(({ job, id }) => held.get(uniqueKey(job))?.job !== id);
  const holders = new Map(
    (
      await readFacts(
        tx,
        contested.map(({ job }) => (held.get(uniqueKey(job)) as KeyRow).job),
      )
    ).map((facts) => [facts.id, facts]),
  );
  for (const candidate of contested) {
    const row = held.get(uniqueKey(candidate.job)) as KeyRow;
    const due = debouncedUntil(candidate.job.unique as UniqueRule, row.since ?? span.now, span.now);
    const later = due === undefined ? candidate : { ...candidate, due, id: jobId(clampDue(due, span), candidate.job.tail) };
    const answer = await judgeKeyed(db, tx, { now: candidate, later }, row, holders.get(row.job), span);
    answers.set(candidate.job, answer);
    if (answer.kind === "created" && answer.replaced !== undefined) redated.set(candidate.job, later);
  }
  return redated;
}

async function judgeKeyed(
  db: Db,
  tx: Transaction,
  candidate: { readonly now: Candidate; readonly later: Candidate },
  row: KeyRow,
  facts: Facts | undefined,
  span: Span,
  looks = 1,
): Promise<Enqueued> {
  const rule = candidate.now.job.unique as UniqueRule;
  const verdict = facts === undefined ? ({ kind: "free" } as const) : judgeKey(holderOf(row, facts, span), rule);
  if (verdict.kind === "existing") return { kind: "existing", id: row.job };
  if (verdict.kind === "rejected") return { kind: "rejected", holder: row.job };
  if (verdict.kind === "replace") {
    const [old] = await take(tx, [row.job]);
    if (old === undefined) {
      // Between the look and the take it was claimed (a running job is not replaced), promoted or ended: look again.
      if (looks === MOST_LOOKS) return { kind: "rejected", holder: row.job };
      const [now] = await readFacts(tx, [row.job]);
      return judgeKeyed(db, tx, candidate, row, now, span, looks + 1);
    }
    await end(db, tx, old, "cancelled", "replaced");
  }
  const { job, id } = verdict.kind === "replace" ? candidate.later : candidate.now;
  const since = verdict.kind === "replace" ? (row.since ?? span.now) : span.now;
  await tx.query(MOVE_KEY, [job.lane.tenant, job.lane.task, rule.key, id, holdText(rule), holdUntil(rule, span) ?? null, since]);
  return { kind: "created", id, ...(verdict.kind === "replace" ? { replaced: row.job } : {}) };
}

function holderOf(row: KeyRow, facts: Facts, span: Span): KeyHolder {
  const remaining = (row.until ?? 0) - span.now;
  return { job: row.job, state: facts.state, started: facts.started, remaining, hold: row.hold === "period" ? remaining : row.hold };
}
function holdText(rule: UniqueRule): string {
  return typeof rule.hold === "number" ? "period" : rule.hold;
}
function holdUntil(rule: UniqueRule, span: Span): number | undefined {
  return typeof rule.hold === "number" ? span.now + rule.hold : undefined;
}

// --- the jobs themselves -----------------------------------------------------------------------------------------

const STORE = statement(
  "store_jobs",
  `
  with ${laneCte(2)},
  given as materialized (
    select l.queue, l.band, l.tenant, l.task, g.* from unnest($6::uuid[], $7::int[], $8::text[], $9::text[], $10::float8[], $11::float8[], $12::float8[]) as g(id, lane, input, options, due, expire, deadline)
    join lane l on l.no = g.lane
  ),
  stored as (
    insert into pawl.job (created_at, due_at, id, band, queue, tenant, task, input, options)
    select to_timestamp($1::float8 / 1000), to_timestamp(due / 1000), id, band, queue, tenant, task, input::json, options::json from given
  )
  insert into pawl.timer (at, job, kind)
  select to_timestamp((g.due + t.after) / 1000), g.id, t.kind
  from given g cross join lateral (values ('expire', g.expire), ('deadline', g.deadline)) as t(kind, after) where t.after is not null`,
);

async function storeJobs(tx: Queryable, created: readonly Candidate[], span: Span): Promise<void> {
  if (created.length === 0) return;
  const lanes = new LanesTable();
  const numbers = created.map(({ job }) => lanes.number(job.lane));
  const timed = created.some(({ job }) => job.options?.expire !== undefined || job.options?.deadline !== undefined);
  await tx.query(STORE, [
    span.now,
    ...lanes.parameters(),
    plainArray(created.map(({ id }) => id)),
    plainArray(numbers),
    textArray(created.map(({ job }) => job.input)),
    textArray(created.map(({ job }) => optionsText(job))),
    plainArray(created.map(({ due }) => due)),
    timed ? plainArray(created.map(({ job }) => job.options?.expire)) : ALL_NULL,
    timed ? plainArray(created.map(({ job }) => job.options?.deadline)) : ALL_NULL,
  ]);
}

// --- dependencies ------------------------------------------------------------------------------------------------

async function readParents(tx: Queryable, candidates: readonly Candidate[]): Promise<ReadonlyMap<JobId, Facts>> {
  const ids = new Set(candidates.flatMap(({ job }) => job.dependsOn?.parents ?? []));
  return new Map((await readFacts(tx, [...ids])).map((facts) => [facts.id, facts]));
}

const TIE = statement(
  "tie",
  "insert into pawl.dependency (parent, child, on_death) select * from unnest($1::uuid[], $2::uuid[], $3::text[]) on conflict do nothing",
);

/** Where each new job goes: ready or scheduled by its time, blocked while a parent is not done, dead if one dooms it. */
async function placeJobs(db: Db, tx: Transaction, created: readonly Candidate[], parents: ReadonlyMap<JobId, Facts>, span: Span): Promise<void> {
  const ties: { parent: JobId; child: JobId; onDeath: string }[] = [];
  const placements = created.map(({ job, id, due }): Placement => {
    const base = { id, lane: job.lane, spent: 0, crashes: 0, runAt: due };
    const { parents: ids = [], onDeath = "die" } = job.dependsOn ?? {};
    const judged = ids.map((parent) => ({ parent, release: releaseOf((parents.get(parent) as Facts).state, onDeath) }));
    const killer = judged.find(({ release }) => release === "doomed");
    if (killer !== undefined) return { ...base, to: "dead", failure: doomedBy(killer.parent) };
    const waits = judged.filter(({ release }) => release === "waits");
    for (const { parent } of waits) ties.push({ parent, child: id, onDeath });
    if (waits.length > 0) return { ...base, to: "blocked" };
    return { ...base, to: due <= span.now ? "ready" : "scheduled" };
  });
  if (ties.length > 0)
    await tx.query(TIE, [
      plainArray(ties.map((tie) => tie.parent)),
      plainArray(ties.map((tie) => tie.child)),
      textArray(ties.map((tie) => tie.onDeath)),
    ]);
  await put(db, tx, placements);
  const stillborn = placements.filter((job) => job.to === "dead");
  await markDead(db, tx, stillborn);
  await count(
    tx,
    placements.map((job) => ({ lane: job.lane, from: undefined, to: job.to as State })),
  );
}

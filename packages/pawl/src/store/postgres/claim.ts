import type { JobId, LeaseId } from "../../core/id.js";
import type { Intent, JobOptions } from "../../core/job.js";
import { type Lane, laneKey } from "../../core/lane.js";
import type { Quota } from "../../core/offer.js";
import type { Claimed, ClaimedJob, ClaimRequest } from "../port.js";
import { plainArray, textArray } from "./arrays.js";
import { type Db, ms, NOW, statement } from "./db.js";
import { readKept } from "./kept.js";
import type { LaneBounds } from "./lane-bounds.js";
import { laneOf } from "./pending.js";
import type { Workers } from "./workers.js";

/**
 * Takes the next rows of each offered lane, from the lane's lower bound on, under one new lease.
 * - `pick` is materialized, or the planner may run its LIMIT more than once;
 * - the limit stops the lateral scans early, so nothing is locked that is not taken;
 * - rows are deleted by an array of their addresses: a join might scan the table;
 * - one row is answered per job, left-joined to its facts: a missing row dies alone. Its lane is named only where
 *   more than one was offered.
 */
const CLAIM = statement(
  "claim",
  `
  with offered as materialized (
    select * from unnest($5::text[], $6::int2[], $7::text[], $8::text[], $9::bigint[], $10::int[]) with ordinality as o(queue, band, tenant, task, bound, quota, no)
    where not exists (select from pawl.pause p where (p.kind = 'queue' and p.name = o.queue) or (p.kind = 'task' and p.name = o.task))
  ),
  pick as materialized (
    select p.tid from offered o cross join lateral (
      select r.ctid as tid from pawl.ready r
      where r.queue = o.queue and r.band = o.band and r.tenant = o.tenant and r.task = o.task and r.seq >= o.bound
      order by r.seq limit o.quota for update skip locked
    ) p limit $4
  ),
  taken as materialized (
    delete from pawl.ready where ctid = any(array(select tid from pick)) returning id, seq, spent, crashes, queue, band, tenant, task
  ),
  leased as (
    insert into pawl.lease (claimed_at, until, worker, open, alone, jobs)
    select ${NOW}, ${NOW} + $3 * interval '1 millisecond', $2, count(*), false, array_agg(id) from taken having count(*) > 0
    returning id
  ),
  counted as (
    insert into pawl.delta (queue, task, ready, running) select queue, task, -count(*), count(*) from taken group by queue, task
  )
  select l.id::text as lease, ${ms(NOW)} as now, t.id, t.seq::text, t.spent, t.crashes,
    case when $11 then t.queue end as queue, case when $11 then t.band end as band, case when $11 then t.tenant end as tenant, case when $11 then t.task end as task,
    j.input::text, j.options::text, ${ms("j.due_at")} as due_at, i.kind as intent
  from taken t cross join leased l left join pawl.job j on j.id = t.id left join pawl.intent i on i.job = t.id
  order by t.seq`,
);

type Nullable<T> = { readonly [K in keyof T]: T[K] | null };

interface ClaimRow extends Nullable<Lane> {
  readonly lease: LeaseId;
  readonly now: number;
  readonly id: JobId;
  readonly seq: string;
  readonly spent: number;
  readonly crashes: number;
  readonly input: string | null;
  readonly options: string | null;
  readonly due_at: number | null;
  readonly intent: Intent | null;
}

export async function claim(db: Db, workers: Workers, bounds: LaneBounds, request: ClaimRequest): Promise<Claimed | undefined> {
  const { quotas } = request;
  if (quotas.length === 0 || request.limit <= 0) return undefined;
  const worker = await workers.id(request.worker);
  for (let sweep = false; ; sweep = true) {
    // All of them, or two lanes would send each other round for ever.
    if (sweep) for (const { lane } of quotas) bounds.wake(lane);
    const from = quotas.map(({ lane }) => bounds.from(lane));
    const offers = await take(
      db,
      worker,
      request,
      from.map(({ seq }) => seq),
    );
    const taken = offers.reduce((sum, offer) => sum + offer.rows.length, 0);
    let more: true | undefined;
    offers.forEach((offer, index) => {
      const last = offer.rows.at(-1);
      if (last !== undefined) bounds.claimed(offer.lane, Number(last.seq));
      if (taken >= request.limit || offer.rows.length >= offer.quota || from[index]?.sure) return;
      // It gave less than asked for from where rows were likely, not from where they may be.
      bounds.wake(offer.lane);
      more = true;
    });
    if (taken > 0 || more === undefined || sweep) return claimedOf(db, offers, more);
  }
}

async function take(db: Db, worker: number, { quotas, limit, duration }: ClaimRequest, from: readonly number[]): Promise<readonly Offer[]> {
  const several = quotas.length > 1;
  const rows = await db.query<ClaimRow>(CLAIM, [
    db.now(),
    worker,
    duration,
    limit,
    textArray(quotas.map(({ lane }) => lane.queue)),
    plainArray(quotas.map(({ lane }) => lane.band)),
    textArray(quotas.map(({ lane }) => lane.tenant)),
    textArray(quotas.map(({ lane }) => lane.task)),
    plainArray(from),
    plainArray(quotas.map(({ quota }) => quota)),
    several,
  ]);
  const offers = quotas.map((quota): Offer => ({ ...quota, rows: [] }));
  const byLane = several ? new Map(offers.map((offer) => [laneKey(offer.lane), offer])) : undefined;
  for (const row of rows) ((byLane === undefined ? offers[0] : byLane.get(laneKey(row as Lane))) as Offer).rows.push(row);
  return offers;
}

/** An offered lane and what was taken of it, in order. */
interface Offer extends Quota {
  readonly rows: ClaimRow[];
}

const CLAIM_SUSPECT = statement(
  "claim_suspect",
  `
  with pick as materialized (
    select p.tid from unnest($4::text[]) o(task) cross join lateral (
      select u.ctid as tid, u.seq from pawl.suspect u
      where u.task = o.task and ($5::text[] is null or u.queue = any($5::text[]))
        and not exists (select from pawl.pause p where (p.kind = 'queue' and p.name = u.queue) or (p.kind = 'task' and p.name = u.task))
      order by u.seq limit 1 for update skip locked
    ) p order by p.seq limit 1
  ),
  taken as materialized (
    delete from pawl.suspect u using pick where u.ctid = pick.tid returning u.id, u.seq, u.spent, u.crashes, u.queue, u.band, u.tenant, u.task
  ),
  leased as (
    insert into pawl.lease (claimed_at, until, worker, open, alone, jobs)
    select ${NOW}, ${NOW} + $3 * interval '1 millisecond', $2, 1, true, array[id] from taken returning id
  ),
  counted as (insert into pawl.delta (queue, task, ready, running) select queue, task, -1, 1 from taken)
  select l.id::text as lease, ${ms(NOW)} as now, t.id, t.seq::text, t.spent, t.crashes, t.queue, t.band, t.tenant, t.task,
    j.input::text, j.options::text, ${ms("j.due_at")} as due_at, i.kind as intent
  from taken t cross join leased l left join pawl.job j on j.id = t.id left join pawl.intent i on i.job = t.id`,
);

export async function claimSuspect(
  db: Db,
  workers: Workers,
  request: { worker: ClaimRequest["worker"]; queues: readonly string[] | undefined; tasks: readonly string[]; duration: number },
): Promise<Claimed | undefined> {
  const worker = await workers.id(request.worker);
  const queues = request.queues === undefined ? null : textArray(request.queues);
  const rows = await db.query<ClaimRow & Lane>(CLAIM_SUSPECT, [db.now(), worker, request.duration, textArray(request.tasks), queues]);
  return claimedOf(
    db,
    rows.map((row) => ({ lane: laneOf(row), quota: 1, rows: [row] })),
  );
}

async function claimedOf(db: Db, offers: readonly Offer[], more?: true): Promise<Claimed | undefined> {
  const rows = offers.length === 1 ? (offers[0] as Offer).rows : offers.flatMap((offer) => offer.rows);
  const [first] = rows;
  if (first === undefined) return undefined;
  const missing = rows.filter((row) => row.input === null);
  const kept =
    missing.length === 0
      ? undefined
      : await readKept(
          db,
          missing.map((row) => row.id),
        );
  const jobs: ClaimedJob[] = [];
  for (const offer of offers) for (const row of offer.rows) jobs.push(claimedJob(row, offer.lane));
  return { lease: first.lease, now: first.now, jobs, ...(more === undefined ? {} : { more }) };

  function claimedJob(row: ClaimRow, lane: Lane): ClaimedJob {
    const facts = row.input === null ? kept?.get(row.id) : row;
    return {
      id: row.id,
      lane,
      input: facts?.input ?? undefined,
      options: facts?.options == null ? undefined : (JSON.parse(facts.options) as JobOptions),
      dueAt: facts?.due_at ?? row.now,
      spent: row.spent,
      crashes: row.crashes,
      ...(row.intent === null ? {} : { intent: row.intent }),
    };
  }
}

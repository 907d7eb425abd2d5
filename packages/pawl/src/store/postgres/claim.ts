import type { JobId, LeaseId } from "../../core/id.js";
import type { Intent, JobOptions } from "../../core/job.js";
import type { Lane } from "../../core/lane.js";
import type { Claimed, ClaimedJob, ClaimRequest } from "../port.js";
import { plainArray, textArray } from "./arrays.js";
import { type Db, ms, NOW, statement } from "./db.js";
import type { LaneBook } from "./lane-book.js";
import { readKept } from "./kept.js";
import type { Workers } from "./workers.js";

/**
 * Takes the next rows of each offered lane, from the lane's lower bound on, under one new lease.
 * - `pick` is materialized, or the planner may run its LIMIT more than once;
 * - the limit stops the lateral scans early, so nothing is locked that is not taken;
 * - one row is answered per job, left-joined to its facts: a missing row dies alone.
 */
const CLAIM = statement(
  "claim",
  `
  with offered as materialized (
    select * from unnest($5::text[], $6::int2[], $7::text[], $8::text[], $9::bigint[], $10::int[]) with ordinality as o(queue, band, tenant, task, bound, quota, no)
    where not exists (select from pawl.pause p where (p.kind = 'queue' and p.name = o.queue) or (p.kind = 'task' and p.name = o.task))
  ),
  pick as materialized (
    select p.tid, o.no from offered o cross join lateral (
      select r.ctid as tid from pawl.ready r
      where r.queue = o.queue and r.band = o.band and r.tenant = o.tenant and r.task = o.task and r.seq >= o.bound
      order by r.seq limit o.quota for update skip locked
    ) p limit $4
  ),
  taken as materialized (
    delete from pawl.ready r using pick where r.ctid = pick.tid
    returning r.id, r.seq, r.spent, r.crashes, pick.no, r.queue, r.task
  ),
  leased as (
    insert into pawl.lease (claimed_at, until, worker, open, alone, jobs)
    select ${NOW}, ${NOW} + $3 * interval '1 millisecond', $2, count(*), false, array_agg(id) from taken having count(*) > 0
    returning id
  ),
  counted as (
    insert into pawl.delta (queue, task, ready, running) select queue, task, -count(*), count(*) from taken group by queue, task
  )
  select l.id::text as lease, ${ms(NOW)} as now, t.id, t.seq::text, t.no::int, t.spent, t.crashes,
    j.input::text, j.options::text, ${ms("j.due_at")} as due_at, i.kind as intent
  from taken t cross join leased l left join pawl.job j on j.id = t.id left join pawl.intent i on i.job = t.id
  order by t.no, t.seq`,
);

interface ClaimRow {
  readonly lease: LeaseId;
  readonly now: number;
  readonly id: JobId;
  readonly seq: string;
  readonly no: number;
  readonly spent: number;
  readonly crashes: number;
  readonly input: string | null;
  readonly options: string | null;
  readonly due_at: number | null;
  readonly intent: Intent | null;
}

export async function claim(db: Db, workers: Workers, book: LaneBook, request: ClaimRequest): Promise<Claimed | undefined> {
  const { quotas } = request;
  if (quotas.length === 0 || request.limit <= 0) return undefined;
  const worker = await workers.id(request.worker);
  const bounds = quotas.map(({ lane }) => book.bound(lane));
  const rows = await db.query<ClaimRow>(CLAIM, [
    db.now(),
    worker,
    request.duration,
    request.limit,
    textArray(quotas.map(({ lane }) => lane.queue)),
    plainArray(quotas.map(({ lane }) => lane.band)),
    textArray(quotas.map(({ lane }) => lane.tenant)),
    textArray(quotas.map(({ lane }) => lane.task)),
    plainArray(bounds),
    plainArray(quotas.map(({ quota }) => quota)),
  ]);
  const taken = new Array<number>(quotas.length).fill(0);
  for (const row of rows) {
    taken[row.no - 1] = (taken[row.no - 1] as number) + 1;
    book.claimed((quotas[row.no - 1] as (typeof quotas)[number]).lane, Number(row.seq));
  }
  if (rows.length < request.limit) quotas.forEach(({ lane, quota }, index) => (taken[index] as number) < quota && book.cameShort(lane));
  return claimedOf(db, rows, (row) => (quotas[row.no - 1] as (typeof quotas)[number]).lane);
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
  select l.id::text as lease, ${ms(NOW)} as now, t.id, t.seq::text, 0 as no, t.spent, t.crashes, t.queue, t.band, t.tenant, t.task,
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
  return claimedOf(db, rows, (row) => ({ queue: row.queue, band: row.band, tenant: row.tenant, task: row.task }));
}

async function claimedOf<R extends ClaimRow>(db: Db, rows: readonly R[], laneOf: (row: R) => Lane): Promise<Claimed | undefined> {
  const [first] = rows;
  if (first === undefined) return undefined;
  const missing = rows.filter((row) => row.input === null);
  const kept = missing.length === 0 ? undefined : await readKept(db, missing.map((row) => row.id));
  const jobs = rows.map((row): ClaimedJob => {
    const facts = row.input === null ? kept?.get(row.id) : row;
    return {
      id: row.id,
      lane: laneOf(row),
      input: facts?.input ?? undefined,
      options: facts?.options == null ? undefined : (JSON.parse(facts.options) as JobOptions),
      dueAt: facts?.due_at ?? first.now,
      spent: row.spent,
      crashes: row.crashes,
      ...(row.intent === null ? {} : { intent: row.intent }),
    };
  });
  return { lease: first.lease, now: first.now, jobs };
}

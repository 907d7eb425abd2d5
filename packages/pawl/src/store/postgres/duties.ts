import type { JobId } from "../../core/id.js";
import { isFinished } from "../../core/job.js";
import type { Lane } from "../../core/lane.js";
import type { GateKey } from "../../core/limit.js";
import { SUSPECT_FROM } from "../../core/outcome.js";
import { type DueTimer, dueTimer, lateFailure } from "../../core/timer.js";
import type { Pulse } from "../port.js";
import { plainArray } from "./arrays.js";
import { end } from "./control.js";
import { count } from "./counts.js";
import { type Db, ms, NOW, statement } from "./db.js";
import type { Transaction } from "./drivers/driver.js";
import { readFacts } from "./facts.js";
import { linedUp } from "./line-up.js";
import type { LowWaters } from "./low-water.js";
import { markDead, type PendingJob, type Placement, put, take } from "./pending.js";
import { release } from "./release.js";
import { readSpan } from "./span.js";
import { vacate } from "./tickets.js";
import { watchHolders } from "./watch.js";

const PULSE = statement(
  "pulse",
  `
  select ${ms(NOW)} as now,
    (select ${ms("run_at")} from pawl.scheduled where run_at >= to_timestamp($2::float8 / 1000) order by run_at limit 1) as scheduled,
    (select ${ms("until")} from pawl.lease where until >= to_timestamp($3::float8 / 1000) order by until limit 1) as lease,
    (select ${ms("at")} from pawl.timer where at >= to_timestamp($4::float8 / 1000) order by at limit 1) as timer,
    (select ${ms("looks_at")} from pawl.schedule where looks_at >= to_timestamp($6::float8 / 1000) order by looks_at limit 1) as tick,
    (select ${ms("at")} from pawl.knock where at >= to_timestamp($7::float8 / 1000) order by at limit 1) as knock,
    (select id::float8 from pawl.delta where id >= $5::float8::bigint order by id limit 1) as delta,
    (select last_value::float8 from pawl.delta_id_seq) as last_delta,
    ${ms("statement_timestamp()")} - ${ms("pg_postmaster_start_time()")} as up_for,
    exists (select from pawl.intent) as intents,
    exists (select from pawl.dependency where not verified) as unverified,
    w.epoch, ${ms("w.until")} - ${ms(NOW)} as watched_for,
    pg_snapshot_xmin(s)::text as xmin, pg_snapshot_xmax(s)::text as xmax
  from pg_current_snapshot() s left join pawl.watch w on w.until > ${NOW}`,
);

interface PulseRow {
  readonly now: number;
  readonly scheduled: number | null;
  readonly lease: number | null;
  readonly timer: number | null;
  readonly tick: number | null;
  readonly knock: number | null;
  readonly intents: boolean;
  readonly unverified: boolean;
  readonly delta: number | null;
  readonly last_delta: number;
  readonly up_for: number;
  readonly epoch: string | null;
  readonly watched_for: number;
  readonly xmin: string;
  readonly xmax: string;
}

export async function pulse(db: Db, low: LowWaters): Promise<Pulse> {
  const [found] = await db.query<PulseRow>(PULSE, [
    db.now(),
    low.scheduled.value,
    low.lease.value,
    low.timer.value,
    low.delta.value,
    low.tick.value,
    low.knock.value,
  ]);
  const row = found as PulseRow;
  const [xmin, xmax] = [Number(row.xmin), Number(row.xmax)];
  low.scheduled.saw(row.now, row.scheduled ?? undefined, xmin, xmax);
  low.lease.saw(row.now, row.lease ?? undefined, xmin, xmax);
  low.timer.saw(row.now, row.timer ?? undefined, xmin, xmax);
  low.tick.saw(row.now, row.tick ?? undefined, xmin, xmax);
  low.knock.saw(row.now, row.knock ?? undefined, xmin, xmax);
  low.delta.saw(row.last_delta, row.delta ?? undefined, xmin, xmax);
  return {
    now: row.now,
    intents: row.intents,
    unverified: row.unverified,
    deltas: row.delta !== null,
    upFor: row.up_for,
    ...(row.epoch === null ? {} : { watched: { epoch: row.epoch, for: row.watched_for } }),
    ...(row.scheduled === null ? {} : { scheduledIn: row.scheduled - row.now }),
    ...(row.lease === null ? {} : { leaseIn: row.lease - row.now }),
    ...(row.timer === null ? {} : { timerIn: row.timer - row.now }),
    ...(row.tick === null ? {} : { tickIn: row.tick - row.now }),
    ...(row.knock === null ? {} : { admitIn: row.knock - row.now }),
  };
}

/**
 * Moves what is due, oldest first; several processes share the work by skipping each other's rows. A job with a pause
 * asked of it is parked. ready.seq is drawn after the delete, which assigns the transaction's id (see SafePoint).
 */
const PROMOTE = statement(
  "promote",
  `
  with due as materialized (
    select id from pawl.scheduled where run_at >= to_timestamp($3::float8 / 1000) and run_at <= ${NOW} order by run_at limit $2 for update skip locked
  ),
  taken as materialized (delete from pawl.scheduled s using due where s.id = due.id returning s.*),
  paused as materialized (select i.job from pawl.intent i join taken t on t.id = i.job where i.kind = 'pause'),
  forgotten as (delete from pawl.intent i using paused where i.job = paused.job),
  ${linedUp("taken", "g.id not in (select job from paused)", "order by g.run_at")},
  r as (insert into pawl.ready (id, band, spent, crashes, queue, tenant, task)
    select id, band, spent, crashes, queue, tenant, task from taken
    where crashes < ${SUSPECT_FROM} and id not in (select job from paused) and id not in (select id from lined) order by run_at),
  u as (insert into pawl.suspect (id, band, spent, crashes, queue, tenant, task)
    select id, band, spent, crashes, queue, tenant, task from taken
    where crashes >= ${SUSPECT_FROM} and id not in (select job from paused) and id not in (select id from lined) order by run_at),
  p as (insert into pawl.parked (run_at, id, band, spent, crashes, reason, queue, tenant, task)
    select null, id, band, spent, crashes, 'paused', queue, tenant, task from taken where id in (select job from paused)),
  counted as (insert into pawl.delta (queue, task, scheduled, ready, parked)
    select queue, task, -count(*), count(*) filter (where id not in (select job from paused)), count(*) filter (where id in (select job from paused)) from taken group by queue, task)
  select queue, band, tenant, task, count(*)::int as jobs, null as gate from taken group by queue, band, tenant, task
  union all select null, null, null, null, 0, gate from knocked_at`,
);

const NEXT_DUE = statement(
  "next_due",
  `select ${ms("run_at")} - ${ms(NOW)} as next from pawl.scheduled where run_at >= to_timestamp($2::float8 / 1000) order by run_at limit 1`,
);

export async function promote(
  db: Db,
  low: LowWaters,
  limit: number,
): Promise<{ readonly count: number; readonly nextIn?: number; readonly lanes: readonly Lane[] }> {
  const answer = await db.query<Lane & { jobs: number; gate: GateKey | null }>(PROMOTE, [db.now(), limit, low.scheduled.value]);
  const gates = answer.flatMap(({ gate }) => gate ?? []);
  if (gates.length > 0) await db.onKnock?.(new Set(gates));
  const rows = answer.filter(({ gate }) => gate === null);
  const promoted = rows.reduce((sum, row) => sum + row.jobs, 0);
  const [next] = await db.query<{ next: number }>(NEXT_DUE, [db.now(), low.scheduled.value]);
  return {
    count: promoted,
    lanes: rows.map((row) => ({ queue: row.queue, band: row.band, tenant: row.tenant, task: row.task })),
    ...(next === undefined ? {} : { nextIn: next.next }),
  };
}

const DUE_TIMERS = statement(
  "due_timers",
  `delete from pawl.timer where (job, kind) in (select job, kind from pawl.timer where at >= to_timestamp($3::float8 / 1000) and at <= ${NOW} and job <> all($4::uuid[]) order by at limit $2 for update skip locked) returning job`,
);
const LOOK_AGAIN = statement(
  "timer_again",
  `insert into pawl.timer (at, job, kind) select ${NOW}, g.job, 'deadline' from unnest($2::uuid[]) as g(job) on conflict do nothing`,
);

interface Expired {
  readonly readied: readonly Lane[];
  readonly finished: readonly JobId[];
}

/**
 * A timer kills a job that waits. One that runs is stopped by its worker, and looked at again until it is. Most timers
 * are of jobs that ended in time: they take up nothing of the limit.
 */
export async function expire(db: Db, low: LowWaters, limit: number): Promise<Expired> {
  const readied: Lane[] = [];
  const finished: JobId[] = [];
  const running = new Set<JobId>();
  for (;;) {
    const asked = limit - finished.length;
    const some = await expireSome(db, low, asked, running);
    readied.push(...some.readied);
    finished.push(...some.finished);
    if (some.seen < asked || finished.length >= limit) return { readied, finished };
    for (const job of some.again) running.add(job);
  }
}

interface SomeExpired extends Expired {
  /** how many timers were due */
  readonly seen: number;
  /** jobs to be looked at again, the next time */
  readonly again: readonly JobId[];
}

/** One batch of timers, but not of jobs that were looked at just now. */
function expireSome(db: Db, low: LowWaters, limit: number, except: ReadonlySet<JobId>): Promise<SomeExpired> {
  return db.transaction(async (tx) => {
    const due = await tx.query<{ job: JobId }>(DUE_TIMERS, [db.now(), limit, low.timer.value, plainArray([...except])]);
    if (due.length === 0) return { readied: [], finished: [], seen: 0, again: [] };
    const { now } = await readSpan(db, tx);
    const doomed = new Map<JobId, DueTimer["kind"]>();
    const running: JobId[] = [];
    for (const job of await readFacts(tx, [...new Set(due.map((timer) => timer.job))])) {
      const timer = dueTimer(job.dueAt, job.options, job.started);
      if (timer === undefined || timer.at > now || isFinished(job.state)) continue;
      if (job.state === "running") running.push(job.id);
      else doomed.set(job.id, timer.kind);
    }
    const victims = await take(tx, [...doomed.keys()]);
    await die(db, tx, victims, (job) => lateFailure(doomed.get(job.id) as DueTimer["kind"]));
    // Some may have been claimed or promoted since they were looked at: their timers must not be lost.
    const taken = new Set(victims.map((job) => job.id));
    const again = [...running, ...[...doomed.keys()].filter((id) => !taken.has(id))];
    if (again.length > 0) await tx.query(LOOK_AGAIN, [db.now(), plainArray(again)]);
    const readied = await release(
      db,
      tx,
      victims.map((job) => ({ id: job.id, state: "dead" as const })),
    );
    return { readied, finished: victims.map((job) => job.id), seen: due.length, again };
  });
}

const FORGET_TIES = statement("forget_ties_of", "delete from pawl.dependency where child = any($1::uuid[])");
const FORGET_INTENTS = statement("forget_intents_of", "delete from pawl.intent where job = any($1::uuid[])");

async function die(db: Db, tx: Transaction, victims: readonly PendingJob[], why: (job: PendingJob) => Placement["failure"]): Promise<void> {
  if (victims.length === 0) return;
  const placements = victims.map((job): Placement => {
    const reason = why(job);
    return { id: job.id, lane: job.lane, to: "dead", spent: job.spent, crashes: job.crashes, ...(reason === undefined ? {} : { failure: reason }) };
  });
  await tx.query(FORGET_TIES, [plainArray(victims.map((job) => job.id))]);
  await tx.query(FORGET_INTENTS, [plainArray(victims.map((job) => job.id))]);
  await vacate(
    db,
    tx,
    victims.map((job) => job.id),
    { finished: true },
  );
  await put(db, tx, placements);
  await markDead(db, tx, placements);
  await count(
    tx,
    victims.map((job) => ({ lane: job.lane, from: job.state, to: "dead" as const })),
  );
}

const UNVERIFIED = statement("unverified", "select parent, child from pawl.dependency where not verified order by child, parent limit $1");
const LOCK_WAITING = statement(
  "lock_waiting",
  ["ready", "suspect", "scheduled", "parked", "blocked"]
    .map((table) => `select id from (select id from pawl.${table} where id = any($1::uuid[]) order by id for share) ${table}`)
    .join(" union all "),
);
const VERIFY = statement(
  "verify_ties",
  "update pawl.dependency d set verified = true from unnest($1::uuid[], $2::uuid[]) as g(parent, child) where d.parent = g.parent and d.child = g.child",
);

/**
 * A parent may have ended while its dependent was being enqueued, neither seeing the other. This looks at each new tie
 * once, after its commit: it waits for whoever is about to end the parent (they hold its lease, or the row it waits
 * in), so that whatever ends later sees the tie, and whatever ended before is seen here. Leases first, then children,
 * then ties: the order in which a settlement locks them, or both would wait in a circle.
 */
export function unblock(db: Db, limit: number): Promise<{ count: number; readied: readonly Lane[] }> {
  return db.transaction(async (tx) => {
    const ties = await tx.query<{ parent: JobId; child: JobId }>(UNVERIFIED, [limit]);
    if (ties.length === 0) return { count: 0, readied: [] };
    const parents = [...new Set(ties.map((tie) => tie.parent))];
    await watchHolders(tx, parents);
    await tx.query(LOCK_WAITING, [plainArray(parents)]);
    const known = new Map((await readFacts(tx, parents)).map((job) => [job.id, job.state]));
    const ended = parents.map((id) => ({ id, state: known.get(id) ?? ("cancelled" as const) }));
    const readied = await release(
      db,
      tx,
      ended.filter((job) => job.state === "succeeded" || job.state === "dead" || job.state === "cancelled"),
    );
    await tx.query(VERIFY, [plainArray(ties.map((tie) => tie.parent)), plainArray(ties.map((tie) => tie.child))]);
    return { count: ties.length, readied };
  });
}

const ASKED = statement("asked", "select job, kind, reason from pawl.intent where job > $2::uuid order by job limit $1 for update skip locked");
const FORGET = statement("forget_asked", "delete from pawl.intent where job = any($1::uuid[])");

/** Intents whose jobs no worker holds: a settlement passed by while they were being written. */
export async function carryOut(db: Db, limit: number): Promise<{ count: number; readied: readonly Lane[] }> {
  const readied: Lane[] = [];
  let carried = 0;
  let after = "00000000-0000-0000-0000-000000000000";
  for (;;) {
    const asked = await db.transaction(async (tx) => {
      const rows = await tx.query<{ job: JobId; kind: "cancel" | "pause"; reason: string | null }>(ASKED, [limit, after]);
      const facts = new Map(
        (
          await readFacts(
            tx,
            rows.map((row) => row.job),
          )
        ).map((job) => [job.id, job]),
      );
      const over: JobId[] = [];
      for (const row of rows) {
        const state = facts.get(row.job)?.state;
        if (state === "running" || (state === "blocked" && row.kind === "pause")) continue;
        over.push(row.job);
        if (state === undefined || state === "succeeded" || state === "dead" || state === "cancelled") continue;
        const [job] = await take(tx, [row.job]);
        if (job === undefined) {
          over.pop();
          continue;
        }
        if (row.kind === "cancel") readied.push(...(await end(db, tx, job, "cancelled", row.reason ?? "cancelled")));
        else {
          await vacate(db, tx, [job.id], { finished: false });
          await put(db, tx, [{ ...job, to: "parked" }]);
          await count(tx, [{ lane: job.lane, from: job.state, to: "parked" }]);
        }
        carried++;
      }
      await tx.query(FORGET, [plainArray(over)]);
      return rows;
    });
    if (asked.length < limit) return { count: carried, readied };
    after = (asked.at(-1) as { job: JobId }).job;
  }
}

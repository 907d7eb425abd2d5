import type { JobId } from "../../../core/jobs/id.js";
import { isFinished } from "../../../core/jobs/job.js";
import type { ExportedJob } from "../../port/duties/duties.js";
import type { PruneCounts, PruneRules } from "../../port/duties/prune.js";
import { forgetWorkers } from "../claim/worker-ids.js";
import { plainArray } from "../connection/arrays.js";
import { stateCode } from "../connection/codes.js";
import { NOW, renameSchema, type StoreDb, statement } from "../connection/db.js";
import { exclusively, type HeldDuty } from "../connection/exclusive-duty.js";
import type { DriverTransaction } from "../drivers/driver.js";
import { deleteJobs } from "../jobs/control.js";
import { count } from "../jobs/counters.js";
import { readFacts, withoutStarted } from "../jobs/job-state.js";
import { history } from "../jobs/read.js";
import { existingMonths, firstId, makePartitions, monthOf, PARTITIONED, startOf, storeNow } from "../schema/partitions.js";
import { holding, takeOutOfHistory } from "../settle/history.js";
import { touchLeases } from "../settle/touch-leases.js";
import { forget } from "./forget.js";

/**
 * Keeps the store at its size: months made ahead, old ones let go, and everything that has a time to live forgotten
 * when it is over. Every step is small, may be interrupted anywhere, and is taken up by the next call. Jobs are let go
 * by one process at a time, so that each is exported once.
 */
export async function prune(db: StoreDb, rules: PruneRules): Promise<PruneCounts> {
  const madePartitions = await makePartitions(db);
  const letGo = await exclusively(db, "prune", async (duty) => {
    const { dropped, droppedPartitions } = await dropOldMonths(db, rules, duty);
    return { droppedPartitions, dropped: dropped + (await dropKept(db, rules, duty)) + (await dropDead(db, rules, duty)) };
  });
  const { dropped = 0, droppedPartitions = 0 } = letGo ?? {};
  const workers = droppedPartitions === 0 ? 0 : await forgetWorkers(db);
  return { madePartitions: madePartitions.length, droppedPartitions, dropped, forgotten: workers + (await forget(db, rules.limit)) };
}

// --- whole months ------------------------------------------------------------------------------------------------

const RAISE_FLOOR = statement("raise_floor", "update pawl.partition_range set floor = $1::uuid, floor_ms = $2::float8 where floor < $1::uuid");

async function dropOldMonths(db: StoreDb, rules: PruneRules, duty: HeldDuty): Promise<{ dropped: number; droppedPartitions: number }> {
  const now = await storeNow(db, db);
  let [dropped, droppedPartitions] = [0, 0];
  for (const name of await existingMonths(db)) {
    const month = monthOf(startOf(name));
    if (month.to > now - rules.finished) break;
    // From here on, new attempts of its jobs go to history_kept.
    await db.query(RAISE_FLOOR, [firstId(month.to), month.to]);
    const keep: Keep = { name, limit: rules.limit, since: now - rules.finished };
    while ((await db.transaction((tx) => keepSome(tx, keep))) === keep.limit);
    if (rules.exportFinished !== undefined) await exportMonth(db, name, rules, duty);
    const jobs = await detach(db, keep, duty);
    if (jobs === undefined) break;
    dropped += jobs;
    droppedPartitions++;
  }
  return { dropped, droppedPartitions };
}

const UNFINISHED_TABLES = ["ready", "suspect", "scheduled", "parked", "blocked", "dead"];

/** What of a month is kept, in batches: also jobs that ended after `since` (ms). */
interface Keep {
  readonly name: string;
  readonly limit: number;
  readonly since: number;
}

/** The newest attempt of a job `j` of the month. */
function lastOf(name: string): string {
  return `select coalesce((select h.outcomes[at + 2] from generate_series(1, cardinality(h.outcomes), 5) as at where h.outcomes[at] = h.index), ${stateCode("succeeded")}) as next,
      case when h.jobs is null then h.ended else h.since + h.finished[h.index] * interval '1 microsecond' end as finished_at
    from (
      select h.*, case when h.jobs is null then 1 else array_position(h.jobs, j.id) end as index from pawl.history_${name} h where ${holding("h")} order by h.lease desc limit 1
    ) h`;
}

/**
 * Jobs that wait, run, are dead or ended only lately outlive their month: their facts and history move to the *_kept
 * tables. So does what was written of such jobs later, whichever side of the floor the writer saw.
 */
async function keepSome(tx: DriverTransaction, { name, limit, since }: Keep): Promise<number> {
  const waits = UNFINISHED_TABLES.map((table) => `exists (select from pawl.${table} w where w.id = j.id)`).join(" or ");
  const find = statement(
    `unfinished_${name}`,
    `(select j.id from pawl.job_${name} j
      left join lateral (${lastOf(name)}) a on true
      where ${waits} or coalesce(a.next, ${stateCode("running")}) not in (${stateCode("succeeded")}, ${stateCode("cancelled")}) or a.finished_at > to_timestamp($2::float8 / 1000)
        or exists (select from pawl.history_kept k where k.first = j.id)
      limit $1)
     union (select j.id from pawl.job_kept j where j.id >= $3::uuid and j.id < $4::uuid
       and exists (select from pawl.history_${name} h where ${holding("h")})  -- guard: late-history-is-kept
       limit $1)
     union select l.job from pawl.log_${name} l where not exists (select from pawl.job_${name} j where j.id = l.job)
     limit $1`,
  );
  const { from, to } = monthOf(startOf(name));
  const ids = (await tx.query<{ id: JobId }>(find, [limit, since, firstId(from), firstId(to)])).map((row) => row.id);
  // Settlements that look for their attempts in the month would not find them there.
  await touchLeases(tx, ids);
  await takeOutOfHistory(tx, ids, { keep: true });
  for (const table of ids.length === 0 ? [] : (["job", "log"] as const)) {
    const move = statement(
      `keep_${table}_${name}`,
      `with gone as (delete from pawl.${table}_${name} where ${table === "job" ? "id" : "job"} = any($1::uuid[]) returning *) insert into pawl.${table}_kept select * from gone ${table === "log" ? "" : "on conflict do nothing"}`,
    );
    await tx.query(move, [plainArray(ids)]);
  }
  return ids.length;
}

/** In order of ids, from where the last one who was at it got to: what was seen is not shown again. */
async function exportMonth(db: StoreDb, name: string, rules: PruneRules, duty: HeldDuty): Promise<void> {
  const next = statement(`export_${name}`, `select id from pawl.job_${name} where id > $1::uuid order by id limit $2`);
  const [month, seen] = duty.progress?.split(" ") ?? [];
  let after = month === name && seen !== undefined ? seen : "00000000-0000-0000-0000-000000000000";
  for (;;) {
    const rows = await db.query<{ id: JobId }>(next, [after, rules.limit]);
    const last = rows.at(-1);
    if (last === undefined) return;
    await exportJobs(
      db,
      rows.map((row) => row.id),
      rules,
    );
    after = last.id;
    await duty.saveProgress(`${name} ${after}`);
  }
}

async function exportJobs(db: StoreDb, ids: readonly JobId[], rules: PruneRules): Promise<void> {
  const batch: ExportedJob[] = [];
  for (const facts of await readFacts(db, ids)) batch.push({ job: withoutStarted(facts), history: await history(db, "everyone", facts.id) });
  await rules.exportFinished?.(batch);
}

/** ms to wait for the parents' locks: what queues up behind a waiting detach waits no longer than this. */
const LOCK_PATIENCE = 50;

/** Lets go of a month, or answers undefined if somebody holds its tables: the next call tries again. */
async function detach(db: StoreDb, keep: Keep, duty: HeldDuty): Promise<number | undefined> {
  const { name } = keep;
  const lost = statement(
    `month_${name}`,
    `select j.queue, j.priority, j.tenant, j.task, j.id, a.next from pawl.job_${name} j left join lateral (${lastOf(name)}) a on true`,
  );
  const counter = statement(
    `counter_${name}`,
    `insert into pawl.counter_delta (queue, task, succeeded, cancelled)
     select queue, task, -count(*) filter (where next = ${stateCode("succeeded")}), -count(*) filter (where next = ${stateCode("cancelled")}) from (${lost.text}) gone group by queue, task`,
  );
  const size = statement(`size_${name}`, `select count(*)::int as jobs from pawl.job_${name}`);
  try {
    return await db.transaction(async (tx) => {
      await duty.lock(tx);
      await tx.run(`set local lock_timeout = ${LOCK_PATIENCE}`);
      // From here on nobody writes into the month; whoever did since the last look, unaware of the floor, is looked after.
      await tx.run(
        renameSchema(
          `lock table ${PARTITIONED.map((table) => `pawl.${table}_${name}`).join(", ")}
        in share mode  -- guard: month-locked`,
          db.schema,
        ),
      );
      while ((await keepSome(tx, keep)) === keep.limit);
      const [row] = await tx.query<{ jobs: number }>(size);
      await tx.query(counter);
      for (const table of [...PARTITIONED].reverse()) {
        await tx.run(renameSchema(`alter table pawl.${table} detach partition pawl.${table}_${name}`, db.schema));
        await tx.run(renameSchema(`drop table pawl.${table}_${name}`, db.schema));
      }
      return row?.jobs ?? 0;
    });
  } catch (error) {
    if ((error as { code?: string }).code === "55P03") return undefined;
    throw error;
  }
}

// --- single jobs -------------------------------------------------------------------------------------------------

const OLD_KEPT = statement(
  "old_kept",
  `select j.id from pawl.job_kept j
   where ${UNFINISHED_TABLES.map((table) => `not exists (select from pawl.${table} w where w.id = j.id)`).join(" and ")}
     and exists (select from (select a.next, a.finished_at from pawl.any_attempt a where a.job = j.id order by a.lease desc limit 1) l
       where l.next in (${stateCode("succeeded")}, ${stateCode("cancelled")}) and l.finished_at <= ${NOW} - $2::float8 * interval '1 millisecond')
   limit $3`,
);

function dropKept(db: StoreDb, rules: PruneRules, duty: HeldDuty): Promise<number> {
  return dropInBatches(db, rules, duty, () => db.query<{ id: JobId }>(OLD_KEPT, [db.now(), rules.finished, rules.limit]));
}

const OLD_DEAD = statement(
  "old_dead",
  `select id from pawl.dead where died_at <= ${NOW} - $2::float8 * interval '1 millisecond' order by died_at limit $3`,
);

function dropDead(db: StoreDb, rules: PruneRules, duty: HeldDuty): Promise<number> {
  return dropInBatches(db, rules, duty, () => db.query<{ id: JobId }>(OLD_DEAD, [db.now(), rules.dead, rules.limit]));
}

const LOCK_DEAD = statement(
  "lock_dead",
  `select id from pawl.dead where id = any($1::uuid[]) order by id
  for update  -- guard: dead-locked`,
);

async function dropInBatches(db: StoreDb, rules: PruneRules, duty: HeldDuty, next: () => Promise<readonly { id: JobId }[]>): Promise<number> {
  let dropped = 0;
  for (;;) {
    const ids = (await next()).map((row) => row.id);
    if (ids.length === 0) return dropped;
    if (rules.exportFinished !== undefined) await exportJobs(db, ids, rules);
    dropped += await db.transaction(async (tx) => {
      await duty.lock(tx);
      // What somebody redrives or drops meanwhile is no longer ours to let go.
      await tx.query(LOCK_DEAD, [plainArray(ids)]);
      const facts = (await readFacts(tx, ids)).filter((job) => isFinished(job.state));
      const gone = await deleteJobs(
        tx,
        facts.map((job) => job.id),
      );
      await count(
        tx,
        facts.filter((job) => gone.has(job.id)).map((job) => ({ lane: job.lane, from: job.state, to: undefined })),
      );
      return gone.size;
    });
    if (ids.length < rules.limit) return dropped;
  }
}

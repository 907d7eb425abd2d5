import type { JobId } from "../../../core/jobs/id.js";
import { isFinished } from "../../../core/jobs/job.js";
import type { Lane } from "../../../core/jobs/lane.js";
import { limitKeyRange } from "../../../core/limits/limit-rule.js";
import type { PurgedJobs, TenantStore } from "../../port/access/tenants.js";
import type { Wakeup } from "../../port/index.js";
import { plainArray } from "../connection/arrays.js";
import { NOW, type StoreDb, statement, type WriteTransaction } from "../connection/db.js";
import { deleteJobs } from "../jobs/control.js";
import { count } from "../jobs/counters.js";
import { readFacts } from "../jobs/job-state.js";
import { takeWaiting } from "../jobs/waiting-jobs.js";
import { releaseSlots } from "../limits/job-limits.js";
import { releaseDependents } from "../settle/release-dependents.js";
import { deleteCounted, deleting, deletingOfTenant } from "./delete-of-tenant.js";

/** jobs of whomever that one statement looks at */
const MAX_JOBS_READ = 10_000;

/**
 * By the primary key, onward from where the last one ended: there is no index by tenant, so what is looked at is bounded and not
 * what is found. No further than it takes to find enough: `looked` is read as far as it is asked for, in its order.
 */
const NEXT = statement(
  "next_purged",
  `
  with looked as materialized (
    select id, tenant from pawl.any_job where id > coalesce($2::uuid, '00000000-0000-0000-0000-000000000000') order by id limit $4
  ),
  mine as materialized (select id from looked where tenant = $1 limit $3),
  last as (
    select id, (select count(*) from looked) = $4::int as more from looked where (select count(*) from mine) < $3::int order by id desc limit 1
  )
  select id, null::uuid as last, false as more from mine union all select null, id, more from last order by id`,
);
/** As a redrive and a prune do: whoever is first has the job. */
const LOCK_DEAD = statement("lock_purged_dead", "select id from pawl.dead where id = any($1::uuid[]) order by id for update");
const UNTIE = statement("untie_purged", "delete from pawl.dependency where child = any($1::uuid[])");
const STOP = statement(
  "stop_purged",
  `insert into pawl.intent as i (job, kind, reason, requested_at) select u.id, 'cancel', 'purged', ${NOW} from unnest($2::uuid[]) as u(id) order by u.id
   on conflict (job) do update set kind = excluded.kind, reason = excluded.reason where i.kind <> 'cancel'`,
);

const OF_TENANT = ["idempotency_key", "idempotent_batch", "unique_key", "breaker"].map(deletingOfTenant);
/** Pushers hear of it by the version. */
const TARGETS = statement(
  "purge_targets",
  `with gone as (delete from pawl.target where ctid = any(array(select ctid from pawl.target where tenant = $1 limit $2)) returning task),
   secrets as (delete from pawl.target_secret where tenant = $1 and task in (select task from gone)),
   raised as (insert into pawl.policy_version as m (version) select 1 where exists (select from gone) on conflict (only_one) do update set version = m.version + 1)
   select count(*)::int as n from gone`,
);
const OF_LIMIT_KEYS = ["limit_check", "limit_key"].map((table) =>
  deleting(
    `purge_${table}`,
    `delete from pawl.${table} where ctid = any(array(select ctid from pawl.${table} where key >= $1 and key < $3 limit $2))`,
  ),
);

/** One row for each that was found; and, if those are not enough, one for the last that was looked at. */
interface Looked {
  readonly id: JobId | null;
  readonly last: JobId | null;
  /** whether there may be others after the last */
  readonly more: boolean;
}

export function postgresTenants(db: StoreDb, sendWakeup: (wakeup: Wakeup) => void): TenantStore {
  return {
    async purgeJobs(tenant, { limit, after }) {
      const rows = await db.query<Looked>(NEXT, [tenant, after ?? null, limit, MAX_JOBS_READ]);
      const ids = rows.flatMap(({ id }) => id ?? []);
      const { readied, ...report } = await db.transaction((tx) => purge(db, tx, ids));
      if (readied.length > 0) sendWakeup({ kind: "ready", lanes: readied });
      if (report.running > 0) sendWakeup({ kind: "intent" });
      const next = ids.length === limit ? ids.at(-1) : rows.find(({ more }) => more)?.last;
      return { ...report, ...(next == null ? {} : { next }) };
    },
    async purgeRest(tenant, limit) {
      const { from, to } = limitKeyRange({ tenant });
      let sum = await deleteCounted(db, TARGETS, [tenant, limit]);
      for (const one of OF_TENANT) sum += await deleteCounted(db, one, [tenant, limit]);
      for (const one of OF_LIMIT_KEYS) sum += await deleteCounted(db, one, [from, limit, to]);
      return sum;
    },
  };
}

/** Waiting jobs are taken out of where they wait, as by a cancel; jobs that a worker took first are asked to stop. */
async function purge(db: StoreDb, tx: WriteTransaction, ids: readonly JobId[]): Promise<PurgedJobs & { readonly readied: readonly Lane[] }> {
  if (ids.length === 0) return { deleted: 0, running: 0, readied: [] };
  await tx.query(LOCK_DEAD, [plainArray(ids)]);
  const waiting = await takeWaiting(tx, ids);
  const taken = new Set(waiting.map(({ id }) => id));
  const others = await readFacts(
    tx,
    ids.filter((id) => !taken.has(id)),
  );
  const finished = others.filter(({ state }) => isFinished(state));
  const leased = others.filter(({ state }) => !isFinished(state)).map(({ id }) => id);
  const leaving = [...waiting, ...finished];
  const all = leaving.map(({ id }) => id);
  await tx.query(UNTIE, [plainArray(all)]);
  await releaseSlots(db, tx, all, { finished: true });
  const dropped = await deleteJobs(tx, all);
  await count(
    tx,
    leaving.filter(({ id }) => dropped.has(id)).map(({ lane, state }) => ({ lane, from: state, to: undefined })),
  );
  const readied = await releaseDependents(
    db,
    tx,
    all.map((id) => ({ id, state: "cancelled" })),
  );
  if (leased.length > 0) await tx.query(STOP, [db.now(), plainArray(leased)]);
  return { deleted: dropped.size, running: leased.length, readied };
}

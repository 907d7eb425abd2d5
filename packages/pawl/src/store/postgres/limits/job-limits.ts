import type { JobId } from "../../../core/jobs/id.js";
import { type JobLimit, type LimitKeyId, type LimitRule, limitKeyId, requirementsOf } from "../../../core/limits/limit-rule.js";
import { plainArray, textArray } from "../connection/arrays.js";
import { type Db, NOW, statement, type WriteTransaction } from "../connection/db.js";

const SAVE_JOB_LIMITS = statement(
  "save_job_limits",
  `insert into pawl.job_limits (job, limit_keys, serial, limits)
   select g.job, array(select json_array_elements_text(g.limit_keys::json)), g.serial, g.limits::json
   from unnest($1::uuid[], $2::text[], $3::bool[], $4::text[]) as g(job, limit_keys, serial, limits) on conflict do nothing`,
);

/** Whoever lets jobs in writes the limit keys; the limit check brings the rule, so that no caller's transaction holds a limit key. */
const ADD_LIMIT_CHECKS = statement(
  "limit_check_with_rules",
  `insert into pawl.limit_check (at, key, rule) select ${NOW}, g.key, g.rule::json from unnest($2::text[], $3::text[]) as g(key, rule)`,
);

export interface LimitedJob {
  readonly id: JobId;
  readonly tenant: string;
  readonly limits: readonly JobLimit[];
}

/** What jobs under limits need as long as they are unfinished. */
export async function saveJobLimits(db: Db, on: WriteTransaction, jobs: readonly LimitedJob[]): Promise<void> {
  if (jobs.length === 0) return;
  const rules = new Map<LimitKeyId, LimitRule>();
  const rows = jobs.map(({ id, tenant, limits }) => {
    const requirements = requirementsOf(tenant, limits);
    for (const { limitKey, rule } of requirements) rules.set(limitKey, rule);
    const byLimitKey = new Map(limits.map((limit) => [limitKeyId(tenant, limit), limit]));
    return { id, requirements, limits: requirements.map(({ limitKey }) => byLimitKey.get(limitKey)) };
  });
  await on.query(SAVE_JOB_LIMITS, [
    plainArray(rows.map(({ id }) => id)),
    textArray(rows.map(({ requirements }) => JSON.stringify(requirements.map(({ limitKey }) => limitKey)))),
    plainArray(rows.map(({ requirements }) => requirements[0]?.rule.serial === true)),
    textArray(rows.map(({ limits }) => JSON.stringify(limits))),
  ]);
  await on.query(ADD_LIMIT_CHECKS, [db.now(), textArray([...rules.keys()]), textArray([...rules.values()].map((rule) => JSON.stringify(rule)))]);
  for (const limitKey of rules.keys()) on.limitChecks.add(limitKey);
}

/**
 * A job leaves: what it holds is free for others, but for its serial slot, which it keeps until it is
 * finished. Limits on lanes need no limit check: their jobs are ready all along.
 */
const RELEASE_SLOTS = statement(
  "vacate",
  `
  with freed as (
    delete from pawl.slot where job = any($2::uuid[])
      and ($3::bool or kind <> 'serial')  -- guard: serial-slot-is-kept
    returning kind, key
  ),
  deleted_limits as (delete from pawl.job_limits where $3::bool and job = any($2::uuid[])),
  limit_keys as materialized (select distinct key from freed where kind in ('key', 'serial', 'rate')),
  limit_checks as (insert into pawl.limit_check (at, key) select ${NOW}, key from limit_keys)
  select key from limit_keys`,
);

export async function releaseSlots(db: Db, on: WriteTransaction, jobs: readonly JobId[], how: { readonly finished: boolean }): Promise<void> {
  if (jobs.length === 0) return;
  const rows = await on.query<{ key: LimitKeyId }>(RELEASE_SLOTS, [db.now(), plainArray(jobs), how.finished]);
  for (const { key } of rows) on.limitChecks.add(key);
}

const PAUSE_LIMIT_KEYS = statement(
  "limit_check_paused",
  `insert into pawl.limit_check (at, key, paused_until) select ${NOW}, g.key, ${NOW} + g.duration * interval '1 millisecond' from unnest($2::text[], $3::float8[]) as g(key, duration)`,
);

/** Nobody is let in for so many ms; 0 opens it. */
export async function pauseLimitKeys(
  db: Db,
  on: WriteTransaction,
  pauses: readonly { readonly limitKey: LimitKeyId; readonly for: number }[],
): Promise<void> {
  if (pauses.length === 0) return;
  await on.query(PAUSE_LIMIT_KEYS, [db.now(), textArray(pauses.map(({ limitKey }) => limitKey)), plainArray(pauses.map((pause) => pause.for))]);
  for (const { limitKey } of pauses) on.limitChecks.add(limitKey);
}

import { SERIAL_HOLDER_RANK } from "../../../core/limits/limit-rule.js";
import { NOW } from "../connection/db.js";

/**
 * CTEs for a statement that makes jobs ready: those of `source` (as `g`) that are under limits are parked in the limit queue of
 * their first limit key instead. `queuedAtLimit` has their ids, `keys_to_check` the limit keys to look at, and the counts are set right. One
 * that keeps its serial slot goes to the head of it. The first parameter is the store's clock.
 *
 * Most stores have no such job: then there is nothing to look for. (The limit keeps the planner from reading all job limits.)
 */
export function queueAtLimit(source: string, condition: string, order: string): string {
  return `queued_at_limit as materialized (
    select g.id, g.priority, g.attempts, g.crashes, g.queue, g.tenant, g.task, t.limit_key, t.kind,
      case when not t.serial then 9 - g.priority when exists (select from pawl.slot s where s.kind = 'serial' and s.job = g.id) then ${SERIAL_HOLDER_RANK} else 0 end as rank
    from ${source} g cross join lateral (
      select t.limit_keys[1] as limit_key, t.serial, case when t.serial then 'serial' when t.limits->0->'rule'->'concurrency' is not null then 'concurrency' else 'rate' end as kind
      from pawl.job_limits t where t.job = g.id limit 1
    ) t
    where ${condition} and (select exists (select from pawl.job_limits)) ${order}
  ),
  parked_in_limit_queue as (
    insert into pawl.parked (id, priority, attempts, crashes, reason, queue, tenant, task, limit_key, rank, seq)
    select id, priority, attempts, crashes, kind, queue, tenant, task, limit_key, rank, nextval('pawl.limit_queue_seq') from queued_at_limit
  ),
  keys_to_check as materialized (select distinct limit_key from queued_at_limit),
  limit_checks as (insert into pawl.limit_check (at, key) select ${NOW}, limit_key from keys_to_check),
  recounted as (insert into pawl.counter_delta (queue, task, ready, parked) select queue, task, -count(*), count(*) from queued_at_limit group by queue, task)`;
}

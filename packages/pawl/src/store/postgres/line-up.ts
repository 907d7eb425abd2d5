import { TURN_RANK } from "../../core/limit.js";
import { NOW } from "./db.js";

/**
 * CTEs for a statement that makes jobs ready: those of `source` (as `g`) that are under limits are parked in the line of
 * their first gate instead. `lined` has their ids, `knocked_at` the gates to look at, and the counts are set right. One
 * that keeps its turn in a serial line goes to the head of it. The first parameter is the store's clock.
 *
 * Most stores have no such job: then there is nothing to look for. (The limit keeps the planner from reading all tickets.)
 */
export function linedUp(source: string, condition: string, order: string): string {
  return `lined as materialized (
    select g.id, g.band, g.spent, g.crashes, g.queue, g.tenant, g.task, t.gate, t.kind,
      case when not t.serial then 9 - g.band when exists (select from pawl.slot s where s.kind = 'serial' and s.job = g.id) then ${TURN_RANK} else 0 end as rank
    from ${source} g cross join lateral (
      select t.gates[1] as gate, t.serial, case when t.serial then 'serial' when t.limits->0->'rule'->'concurrency' is not null then 'concurrency' else 'rate' end as kind
      from pawl.ticket t where t.job = g.id limit 1
    ) t
    where ${condition} and (select exists (select from pawl.ticket)) ${order}
  ),
  parked_in_line as (
    insert into pawl.parked (id, band, spent, crashes, reason, queue, tenant, task, gate, rank, place)
    select id, band, spent, crashes, kind, queue, tenant, task, gate, rank, nextval('pawl.line_seq') from lined
  ),
  knocked_at as materialized (select distinct gate from lined),
  knocked as (insert into pawl.knock (at, key) select ${NOW}, gate from knocked_at),
  recounted as (insert into pawl.delta (queue, task, ready, parked) select queue, task, -count(*), count(*) from lined group by queue, task)`;
}

import { SUSPECT_FROM } from "../../../core/jobs/outcome.js";
import { ADMITTED_SECTION_START } from "../claim/lane-starts.js";
import { NOW } from "../connection/db.js";

/**
 * In a statement that frees slots (`freed`): those of a limit key that only counts slots go to the first of its queue, at once. What is
 * left of them, and all of other limit keys, is to be looked at under the lock of the limit key (`limit_keys`).
 *
 * It takes no lock of the limit key: as many slots are taken as are given up, so that whoever holds the lock counts the same
 * before and after. What it reads of the limit key may be a moment old, which admits nobody who could not have been admitted in that
 * moment before. It leaves to the lock what is more than that:
 * - a rate, a serial slot, a pause; and another rule or a pause of a limit check that is not in the limit key yet: a job in the queue may be
 *   stored under it;
 * - more slots held than there are: the limit was lowered, and each that is given up is one less;
 * - a limit key that was open when it was last looked at, so that it is not known which jobs of its queue have waited;
 * - a job in the queue that needs other limit keys as well, or goes to the suspects.
 */
export const PASS_SLOTS_ON = `freed_slots as materialized (
    select key, count(*)::int as freed, (count(*) filter (where kind = 'key'))::int as count from freed where kind in ('key', 'serial', 'rate') group by key
  ),
  plain as materialized (
    select p.key, p.count from freed_slots p join pawl.limit_key g on g.key = p.key
    where g.closed and g.rule->'rate' is null and coalesce(g.paused_until <= ${NOW}, true)
      and (select count(*) from pawl.slot s where s.kind in ('key', 'serial') and s.key = g.key) <= (g.rule->>'concurrency')::float8
      and not exists (select from pawl.limit_check k where k.key = g.key and (k.rule::text <> g.rule::text or k.paused_until is not null))
  ),
  next as materialized (
    select p.key, h.* from plain p cross join lateral (
      select h.id, h.rank, h.seq, h.crashes from pawl.parked h where h.limit_key = p.key order by h.rank, h.seq limit p.count for update skip locked
    ) h
  ),
  barred as materialized (
    select n.key from next n where n.crashes >= ${SUSPECT_FROM} or (select cardinality(t.limit_keys) from pawl.job_limits t where t.job = n.id) <> 1
  ),
  passed_on as (
    delete from pawl.parked p using next n where p.id = n.id and not n.key = any(array(select key from barred))
    returning p.id, p.priority, p.attempts, p.crashes, p.queue, p.tenant, p.task, n.key, n.rank, n.seq
  ),
  sorted as materialized (select * from passed_on order by rank, seq),
  admitted_rows as (
    insert into pawl.ready (seq, id, priority, attempts, crashes, queue, tenant, task)
    select nextval('pawl.ready_seq') + ${ADMITTED_SECTION_START}, id, priority, attempts, crashes, queue, tenant, task from sorted
  ),
  held as (insert into pawl.slot (kind, key, job) select 'key', key, id from passed_on),
  let_in as (insert into pawl.counter_delta (queue, task, parked, ready) select queue, task, -count(*), count(*) from passed_on group by queue, task),
  limit_keys as materialized (select p.key from freed_slots p where p.freed > (select count(*) from passed_on h where h.key = p.key))`;

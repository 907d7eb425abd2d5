import { SUSPECT_FROM } from "../../core/outcome.js";
import { NOW } from "./db.js";
import { FRONT } from "./lane-bounds.js";

/**
 * In a statement that frees places (`freed`): those of a gate that only counts places go to the first of its line, at once. What is
 * left of them, and all of other gates, is to be looked at under the gate's lock (`gates`).
 *
 * It takes no lock of the gate: as many places are taken as are given up, so that whoever holds the lock counts the same
 * before and after. What it reads of the gate may be a moment old, which lets in nobody who could not have come in that
 * moment before. It leaves to the lock what is more than that:
 * - a rate, a turn, a pause; and another rule or a pause that was knocked with, and is not in the gate yet: who is in line may be
 *   stored under it;
 * - more places held than there are: the limit was lowered, and each that is given up is one less;
 * - a gate that was open when it was last looked at, so that it is not known who of its line has waited;
 * - one in line who has other gates to pass, or goes to the suspects.
 */
export const HAND_OVER = `places as materialized (
    select key, count(*)::int as freed, (count(*) filter (where kind = 'key'))::int as count from freed where kind in ('key', 'serial', 'rate') group by key
  ),
  plain as materialized (
    select p.key, p.count from places p join pawl.gate g on g.key = p.key
    where g.closed and g.rule->'rate' is null and coalesce(g.paused_until <= ${NOW}, true)
      and (select count(*) from pawl.slot s where s.kind in ('key', 'serial') and s.key = g.key) <= (g.rule->>'concurrency')::float8
      and not exists (select from pawl.knock k where k.key = g.key and (k.rule::text <> g.rule::text or k.paused_until is not null))
  ),
  next as materialized (
    select p.key, h.* from plain p cross join lateral (
      select h.id, h.rank, h.place, h.crashes from pawl.parked h where h.gate = p.key order by h.rank, h.place limit p.count for update skip locked
    ) h
  ),
  barred as materialized (
    select n.key from next n where n.crashes >= ${SUSPECT_FROM} or (select cardinality(t.gates) from pawl.ticket t where t.job = n.id) <> 1
  ),
  handed as (
    delete from pawl.parked p using next n where p.id = n.id and not n.key = any(array(select key from barred))
    returning p.id, p.band, p.spent, p.crashes, p.queue, p.tenant, p.task, n.key, n.rank, n.place
  ),
  sorted as materialized (select * from handed order by rank, place),
  fronted as (
    insert into pawl.ready (seq, id, band, spent, crashes, queue, tenant, task)
    select nextval('pawl.ready_seq') + ${FRONT}, id, band, spent, crashes, queue, tenant, task from sorted
  ),
  held as (insert into pawl.slot (kind, key, job) select 'key', key, id from handed),
  let_in as (insert into pawl.delta (queue, task, parked, ready) select queue, task, -count(*), count(*) from handed group by queue, task),
  gates as materialized (select p.key from places p where p.freed > (select count(*) from handed h where h.key = p.key))`;

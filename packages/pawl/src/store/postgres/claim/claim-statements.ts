import { hotStatement, ms, NOW, statement } from "../connection/db.js";
import { withNames } from "../connection/named-statement.js";
import { SEPARATOR } from "../enqueue/ready-rows.js";
import { FIELD_SEPARATOR, RECORD_SEPARATOR } from "./claim-answer.js";

/** Bytes from which on an input is read apart, so that the facts of a claim stay one text of a modest size. */
const LARGE_INPUT_BYTES = 65_536;

/** Above all numbers of ready rows. */
const MAX_SEQ = "9223372036854775807";

const PARAMETERS = [
  /** see `NOW` */
  "now",
  "worker",
  /** of the lease, in ms */
  "duration",
  /** true: the caller has seen to the limits that the lanes are under; otherwise lanes under limits give nothing */
  "limits_checked",
  /** The offers: an array each, with an element for every lane. */
  "queue",
  "priority",
  "tenant",
  "task",
  /** where the lane's admitted section begins (numbers below zero), or null: it is not to be asked */
  "admitted_section",
  /** from where on the rest is asked */
  "bound",
  /** how many jobs at most, of the admitted section and the rest together */
  "quota",
] as const;

/**
 * Takes the next jobs of each offered lane under one new lease: those in its admitted section first, then the others from the bound on.
 *
 * - `row`: a row is locked when it is pulled, and `generate_series` under LIMIT pulls just the rows that hold the jobs asked for.
 *   The inner LIMIT keeps a plan that locks before it sorts within as many rows as jobs are asked for. Rows come in the order lanes
 *   were offered and their numbers, and so does all that is made of them: `row` and `taken` are joined with nothing.
 * - `cut`: only the last row of a lane can have more jobs than are asked for. Looked up as one object: a join could change the order.
 * - What is locked is materialized, or the planner may run its LIMIT more than once.
 * - Rows are deleted by an array of their addresses: a join might scan the table. They are never updated: the address of a version
 *   that is newer than the snapshot would lead nowhere (and Postgres 18 has been seen to crash where it judges a row again in a
 *   statement that prunes partitions).
 * - `remainder`: what was not taken of a row is put back with its inputs and options, and begins at the index of its first job.
 * - `locked`: lanes that gave less than they were asked for and have a row of several jobs that is not taken here. Another claim holds
 *   it, and what that one puts back is not in this statement's snapshot.
 * - The answer is one row. It has a text of one entry for each row of `taken`, one for each job, and the facts of jobs whose rows do
 *   not carry them. Those are looked up by a sorted array of ids between its ends: one walk through the index of the partitions that
 *   can hold them, where a join would look into every partition for each job. A job whose facts are missing dies alone.
 */
const CLAIM_TEXT = `
  with offer as materialized (
    select * from unnest(:queue::text[], :priority::int2[], :tenant::text[], :task::text[], :admitted_section::bigint[], :bound::bigint[], :quota::int[])
      with ordinality as o(queue, priority, tenant, task, admitted_section, bound, quota, no)
    where not ${appliesTo("pawl.pause", "o")}
      and case when :limits_checked::bool then true when exists (select from pawl.lane_limit) then not ${appliesTo("pawl.lane_limit", "o")} else true end
  ),
  row as materialized (
    select p.* from (
      select o.no, o.quota, r.* from offer o cross join lateral (
        select r.*, generate_series(1, r.size) as nth
        from (values (o.admitted_section, 0), (o.bound, ${MAX_SEQ})) as s(low, below) cross join lateral (
          select r.ctid as tid, r.seq, r.size, r.attempts, r.crashes, r.id, r.jobs, r.inputs, r.options from pawl.ready r
          where r.queue = o.queue and r.priority = o.priority and r.tenant = o.tenant and r.task = o.task and r.seq >= s.low and r.seq < s.below
          order by r.seq limit o.quota for update skip locked
        ) r
        limit o.quota
      ) r
    ) p where nth = 1
  ),
  many as materialized (select coalesce(max(size), 0) > 1 as found from row),
  cut as materialized (
    select jsonb_object_agg(seq, extra) as extra from (
      select max(seq) as seq, sum(size) - max(quota) as extra from row where (select found from many) group by no having sum(size) > max(quota)
    ) c
  ),
  taken as materialized (
    select *, case when size = 1 then 1 else size - coalesce(((select extra from cut) ->> seq::text)::int, 0) end as taken_count from row
  ),
  deleted as (delete from pawl.ready where ctid = any(array(select tid from taken))),
  remainder as (
    insert into pawl.ready (seq, size, priority, queue, tenant, task, id, jobs, inputs, options)
    select seq + taken_count, size - taken_count, (:priority::int2[])[no], (:queue::text[])[no], (:tenant::text[])[no], (:task::text[])[no],
      case when size - taken_count = 1 then jobs[size] end, case when size - taken_count > 1 then jobs[taken_count + 1 :] end,
      array_to_string((string_to_array(inputs, E'${SEPARATOR}'))[taken_count + 1 :], E'${SEPARATOR}'),
      array_to_string((string_to_array(options, E'${SEPARATOR}'))[taken_count + 1 :], E'${SEPARATOR}')
    from taken where taken_count < size
  ),
  claimed as materialized (
    select coalesce(sum(taken_count), 0)::int as count,
      case when (select found from many) then array(select unnest(case when id is null then jobs[1 : taken_count] else array[id] end) from taken)
        else array(select id from taken) end as jobs,
      case when bool_or(inputs is null) then
        array(select unnest(case when id is null then jobs[1 : taken_count] else array[id] end) as id from taken where inputs is null order by 1) end as without_inputs,
      string_agg(seq::text, ',') as seqs,
      case when max(taken_count) > 1 then string_agg(taken_count::text, ',') end as counts,
      case when max(no) > 1 then string_agg(no::text, ',') end as lanes,
      case when max(attempts) > 0 then string_agg(attempts::text, ',') end as attempts,
      case when max(crashes) > 0 then string_agg(crashes::text, ',') end as crashes,
      case when bool_or(inputs is not null) then string_agg(
        case when inputs is null then repeat(E'${SEPARATOR}', taken_count - 1) when taken_count = size then inputs
          else array_to_string((string_to_array(inputs, E'${SEPARATOR}'))[1 : taken_count], E'${SEPARATOR}') end, E'${SEPARATOR}') end as inputs,
      case when bool_or(options is not null) then string_agg(
        case when options is null then repeat(E'${SEPARATOR}', taken_count - 1) when taken_count = size then options
          else array_to_string((string_to_array(options, E'${SEPARATOR}'))[1 : taken_count], E'${SEPARATOR}') end, E'${SEPARATOR}') end as options
    from taken
  ),
  lease as (
    insert into pawl.lease (claimed_at, until, worker, unsettled, alone, jobs)
    select ${NOW}, ${NOW} + :duration::float8 * interval '1 millisecond', :worker::int, count, false, jobs from claimed where count > 0
    returning id
  ),
  counters as (
    insert into pawl.counter_delta (queue, task, ready, running)
    select (:queue::text[])[no], (:task::text[])[no], -sum(count), sum(count) from (select no, sum(taken_count) as count from taken group by no) t group by 1, 2
  )
  select l.id::text as lease, ${ms(NOW)} as now, array_to_string(o.jobs, ',') as jobs, o.seqs, o.counts, o.lanes, o.attempts, o.crashes, o.inputs, o.options,
    case when o.without_inputs is not null then (
      select string_agg(j.id::text || j.home || E'${FIELD_SEPARATOR}' || j.input::text || case when j.options is null then '' else E'${FIELD_SEPARATOR}' || ${ms("j.due_at")} || E'${FIELD_SEPARATOR}' || j.options::text end, E'${RECORD_SEPARATOR}')
      from pawl.job j where j.id = any(o.without_inputs) and j.id >= o.without_inputs[1] and j.id <= o.without_inputs[cardinality(o.without_inputs)] and pg_column_size(j.input) < ${LARGE_INPUT_BYTES}
    ) end as details,
    case when exists (select from pawl.intent) then (select json_object_agg(i.job, i.kind)::text from pawl.intent i where i.job = any(o.jobs)) end as intents,
    case when o.count < (select sum(quota) from offer) then (
      select string_agg(f.no::text, ',') from offer f
      where case when f.no in (select no from taken group by no having sum(taken_count) >= max(quota)) then false else true end and exists (
        select from pawl.ready r
        where r.queue = f.queue and r.priority = f.priority and r.tenant = f.tenant and r.task = f.task and r.seq >= f.bound and r.size > 1
          and case when r.seq in (select seq from taken) then false else true end
      )
    ) end as locked
  from claimed o left join lease l on true`;

export const CLAIM = withNames(PARAMETERS, CLAIM_TEXT, (text) => hotStatement("claim", "claim", text));

/** One of `table` (paused or limited ones) that the lane `of` belongs to. */
export function appliesTo(table: string, of: string): string {
  return `exists (select from ${table} p where (p.kind = 'queue' and p.name = ${of}.queue) or (p.kind = 'task' and p.name = ${of}.task) or (p.kind = 'tenant' and p.name = ${of}.tenant))`;
}

/** One job that has taken workers down, alone in its lease. $8 and $9: the limits that have room for it. */
export const CLAIM_SUSPECT = statement(
  "claim_suspect",
  `
  with pick as materialized (
    select p.tid from unnest($4::text[]) o(task) cross join lateral (
      select u.ctid as tid, u.seq from pawl.suspect u
      where u.task = o.task and ($5::text[] is null or u.queue = any($5::text[]))
        and ($6::int2[] is null or u.priority = any($6::int2[])) and ($7::text[] is null or u.tenant = any($7::text[]))
        and not ${appliesTo("pawl.pause", "u")}
        and not ${appliesTo("(select * from pawl.lane_limit l where (l.kind, l.name) not in (select * from unnest($8::text[], $9::text[])))", "u")}
      order by u.seq limit 1 for update skip locked
    ) p order by p.seq limit 1
  ),
  taken as materialized (
    delete from pawl.suspect u using pick where u.ctid = pick.tid returning u.id, u.attempts, u.crashes, u.queue, u.priority, u.tenant, u.task
  ),
  lease as (
    insert into pawl.lease (claimed_at, until, worker, unsettled, alone, jobs)
    select ${NOW}, ${NOW} + $3 * interval '1 millisecond', $2, 1, true, array[id] from taken
    returning id
  ),
  counters as (insert into pawl.counter_delta (queue, task, ready, running) select queue, task, -1, 1 from taken)
  select l.id::text as lease, ${ms(NOW)} as now, t.id as job, t.attempts, t.crashes, t.queue, t.priority, t.tenant, t.task,
    (select i.kind from pawl.intent i where i.job = t.id limit 1) as intent
  from taken t cross join lease l`,
);

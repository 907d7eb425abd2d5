import type { JobId, LeaseId } from "../../../core/jobs/id.js";
import type { Lane } from "../../../core/jobs/lane.js";
import { FIELD_SEPARATOR } from "../claim/claim-answer.js";
import { appliesTo } from "../claim/claim-statements.js";
import { hotStatement, ms, NOW, SERVER, statement } from "../connection/db.js";
import { SEQ_STEP } from "../enqueue/ready-rows.js";

/** The newest rows, which are all that an enqueue looks at: however many dead rows a pinned snapshot keeps, it passes by no more. */
const NEWEST_CHECKED = 32;
/** Of those, how many it looks at closely. If none of them will do, the job is ready. */
const MAX_CANDIDATES = 3;
/** bytes; NOTIFY takes less than 8,000 */
const MAX_MESSAGE_BYTES = 7_900;

/**
 * Registers an idle worker in place of its earlier row ($2), and answers the lease that came of that one. If it is not the one that is known ($9), there is
 * no new row, and none either at another server than the one that gave the number ($13). $8: the number up to which all jobs that became ready were seen. $12: of the next lease, unless that of the earlier
 * row is left over. Its commit need not wait for the disk: the table does not outlive a crash.
 */
export const REGISTER_IDLE_WORKER = hotStatement(
  "claim",
  "register_idle_worker",
  `
  with earlier as (delete from pawl.idle_worker where id = $2::bigint and worker = $4::int returning lease, lease_number),
  made as (
    insert into pawl.idle_worker (until, worker, listener, channel, duration_ms, seen_up_to, queues, tasks, lease_number)
    select ${NOW} + $3 * interval '1 millisecond', $4::int, $5::int, $6::text, $7::float8, $8::bigint, $10::text[], $11::text[],
      coalesce((select lease_number from earlier where lease is null), $12::bigint)
    where not exists (select from earlier where lease <> coalesce($9::bigint, 0)) and ${SERVER} = $13::text
    returning id, lease_number
  )
  select (select id::text from made) as id, (select lease_number::text from made) as number, (select lease::text from earlier) as lease, ${ms(NOW)} as now, set_config('synchronous_commit', 'off', true)`,
);

/**
 * Numbers of leases to be. An enqueue that uses one is begun before it is on disk, so the number must be there already: or a
 * server that crashed would give it out once more, and two jobs were under one lease. A sequence alone does not see to that, since
 * of most of its numbers it writes nothing: hence the message, with which all that was written before goes to the disk. A standby
 * that is promoted may not know of it, and would give them out: so they are good at that server only.
 */
export const DRAW_NUMBERS = statement(
  "draw_numbers",
  `with drawn as materialized (select array_agg(nextval('pawl.lease_seq')::text) as numbers from generate_series(1, $1::int))
   select numbers, ${SERVER} as server, pg_logical_emit_message(true, 'pawl', 'numbers')::text from drawn`,
);

/** Waits for an enqueue that is just taking it. */
export const UNREGISTER_IDLE_WORKER = hotStatement(
  "claim",
  "unregister_idle_worker",
  "with gone as (delete from pawl.idle_worker where id = $1::bigint and worker = $2::int returning lease) select lease::text, set_config('synchronous_commit', 'off', true) from gone",
);

/** What was handed over under a lease, read by one who has not heard of it. */
export const READ_HANDOFF = statement(
  "read_handoff",
  `
  select j.id as job, j.home::float8, ${ms("l.claimed_at")} as now, j.queue, j.priority, j.tenant, j.task, (select i.kind from pawl.intent i where i.job = j.id limit 1) as intent
  from pawl.lease l cross join lateral (select * from pawl.any_job j where j.id = l.jobs[1] limit 1) j
  where l.id = $1::bigint and l.worker = $2::int`,
);

/**
 * The job's lane has no ready row that came after what the idle worker has seen. As a value, by the index from there on: as a
 * condition it would be a join, which walks over all that the lane ever had.
 */
const NOTHING_READY_SINCE = `(select r.seq from pawl.ready r where r.queue = $2::text and r.priority = $3::int2 and r.tenant = $4::text and r.task = $5::text
        and r.seq > s.seen_up_to - ${SEQ_STEP} order by r.seq limit 1) is null`;

/** In the statement that stores one job ($2 to $5: its lane; `stored`): the idle worker it takes, if it may ($12), and its lease. */
export const TAKE_IDLE_WORKER = `
  near as materialized (
    select s.id from pawl.idle_worker s where $12::bool and s.id > (select last_value - ${NEWEST_CHECKED} from pawl.idle_worker_seq) and s.lease is null and s.until > ${NOW}
      and $5::text = any(s.tasks) and (s.queues is null or $2::text = any(s.queues))
      and (select not ${appliesTo("pawl.pause", "o")} and not ${appliesTo("pawl.lane_limit", "o")} from (values ($2::text, $4::text, $5::text)) as o(queue, tenant, task))
    order by s.id limit ${MAX_CANDIDATES}
  ),
  chosen as materialized (
    select s.id, s.lease_number, s.worker, s.channel, s.duration_ms from pawl.idle_worker s
    where s.id = any(array(select id from near)) and s.lease is null and ${NOTHING_READY_SINCE}
      and exists (select from pg_stat_get_activity(s.listener))
    order by s.id limit 1 for update of s skip locked
  ),
  leased as (
    insert into pawl.lease (id, claimed_at, until, worker, unsettled, alone, jobs)
    select s.lease_number, t.created_at, t.created_at + s.duration_ms * interval '1 millisecond', s.worker, 1, false, array[t.id] from chosen s cross join stored t
    returning id
  ),
  taken as (update pawl.idle_worker s set lease = l.id from leased l where s.id = (select id from chosen)),
  message as (
    select s.channel, json_build_object('registration', s.id::text, 'worker', s.worker, 'lease', l.id::text, 'now', ${ms("t.created_at")}, 'job', t.id, 'home', t.home,
      'lane', json_build_object('queue', $2::text, 'priority', $3::int2, 'tenant', $4::text, 'task', $5::text))::text as head,
      E'${FIELD_SEPARATOR}' || $7::json::text || E'${FIELD_SEPARATOR}' || coalesce($8::json::text, '') as facts
    from chosen s cross join leased l cross join stored t
  )`;
/** Tells the idle worker. What is too long for a message is read by whoever hears of it. */
export const NOTIFY_IDLE_WORKER = `(select pg_notify(channel, case when octet_length(head) + octet_length(facts) < ${MAX_MESSAGE_BYTES} then head || facts else head end)::text from message)`;

export interface RegisteredRow {
  readonly id: string | null;
  /** of the lease that will come of it */
  readonly number: string | null;
  readonly lease: LeaseId | null;
  readonly now: number;
}

export interface HandoffRow extends Lane {
  readonly job: JobId;
  readonly home: number;
  readonly now: number;
  readonly intent: "cancel" | "pause" | null;
}

/** How a message begins. */
export interface HandoffMessage {
  /** of a message: the idle worker it was handed to */
  readonly registration?: string;
  readonly worker: number;
  readonly lease: LeaseId;
  readonly now: number;
  readonly job: JobId;
  /** the job's number, which never changes */
  readonly home: number;
  readonly lane: Lane;
}

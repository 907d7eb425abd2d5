-- Stores one job as `enqueue-one.sql` does, with its wakeup (:channel, :payload). If an idle worker waits for such a job, it is that one's
-- instead, who begins it at once: the statement makes its lease, and tells that worker alone. The process that enqueued it waits
-- for the disk after that (CommitFlusher), instead of both.
--
--   :may_hand_off   false: no idle worker is looked for
--
-- It locks the row of the idle worker that it takes, and waits for none.
with stored as (
  insert into pawl.job (created_at, due_at, id, priority, queue, tenant, task, input, options, home)
  select at.now, at.now,
    (lpad(to_hex(floor(greatest(floor_ms, least((extract(epoch from at.now) * 1000)::float8, ceiling_ms - 1)))::bigint), 12, '0') || :id_suffix::text)::uuid,
    :priority::int2, :queue::text, :tenant::text, :task::text, :input::json, :options::json,
    case when pg_current_xact_id() is not null then nextval('pawl.ready_seq') end
  from pawl.partition_range, (select coalesce(to_timestamp(:now::float8 / 1000), statement_timestamp()) as now) at limit 1
  returning home, id, created_at
),
-- The newest 32 rows are all that is looked at: however many dead rows a pinned snapshot keeps, it passes by no more. At most 3 of them
-- are looked at closely. If none will do, the job is ready.
near as materialized (
  select s.id from pawl.idle_worker s
  where :may_hand_off::bool and s.id > (select last_value - 32 from pawl.idle_worker_seq) and s.lease is null
    and s.until > coalesce(to_timestamp(:now::float8 / 1000), statement_timestamp())
    and :task::text = any(s.tasks) and (s.queues is null or :queue::text = any(s.queues))
    and (
      select not exists (
          select from pawl.pause p
          where (p.kind = 'queue' and p.name = o.queue) or (p.kind = 'task' and p.name = o.task) or (p.kind = 'tenant' and p.name = o.tenant)
        ) and not exists (
          select from pawl.lane_limit p
          where (p.kind = 'queue' and p.name = o.queue) or (p.kind = 'task' and p.name = o.task) or (p.kind = 'tenant' and p.name = o.tenant)
        )
      from (values (:queue::text, :tenant::text, :task::text)) as o(queue, tenant, task)
    )
  order by s.id limit 3
),
chosen as materialized (
  select s.id, s.lease_number, s.worker, s.channel, s.duration_ms from pawl.idle_worker s
  where s.id = any(array(select id from near)) and s.lease is null
    -- The job's lane has no ready row that came after what the idle worker has seen. As a value, by the index from there on: as a
    -- condition it would be a join, which walks over all that the lane ever had.
    and (
      select r.seq from pawl.ready r
      where r.queue = :queue::text and r.priority = :priority::int2 and r.tenant = :tenant::text and r.task = :task::text
        and r.seq > s.seen_up_to - {{seq_step}} order by r.seq limit 1
    ) is null
    and exists (select from pg_stat_get_activity(s.listener))
  order by s.id limit 1 for update of s skip locked
),
leased as (
  insert into pawl.lease (id, claimed_at, until, worker, unsettled, alone, jobs)
  select s.lease_number, t.created_at, t.created_at + s.duration_ms * interval '1 millisecond', s.worker, 1, false, array[t.id]
  from chosen s cross join stored t
  returning id
),
taken as (update pawl.idle_worker s set lease = l.id from leased l where s.id = (select id from chosen)),
message as (
  select s.channel,
    json_build_object('registration', s.id::text, 'worker', s.worker, 'lease', l.id::text, 'now', (extract(epoch from t.created_at) * 1000)::float8,
      'job', t.id, 'home', t.home,
      'lane', json_build_object('queue', :queue::text, 'priority', :priority::int2, 'tenant', :tenant::text, 'task', :task::text))::text as head,
    {{field_separator}} || :input::json::text || {{field_separator}} || coalesce(:options::json::text, '') as facts
  from chosen s cross join leased l cross join stored t
),
readied as (
  insert into pawl.ready (seq, id, priority, queue, tenant, task, inputs, options)
  select home, id, :priority::int2, :queue::text, :tenant::text, :task::text,
    case when :carries::bool then :input::json::text end, case when :carries::bool then :options::json::text end
  from stored where not exists (select from chosen)
),
counted as (
  insert into pawl.counter_delta (queue, task, ready, running)
  select :queue::text, :task::text, 1 - n, n from (select count(*) as n from chosen) s
)
select id, (extract(epoch from created_at) * 1000)::float8 as now, exists (select from chosen) as handed_off,
  case when exists (select from chosen) then set_config('synchronous_commit', 'off', true) end as lazily,
  -- NOTIFY takes less than 8,000 bytes. If the facts make the message too long, the worker reads them.
  case when exists (select from chosen) then (
      select pg_notify(channel, case when octet_length(head) + octet_length(facts) < 7900 then head || facts else head end)::text from message
    ) else pg_notify(:channel::text, :payload::text)::text end as notified
from stored

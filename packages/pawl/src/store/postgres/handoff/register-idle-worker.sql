-- Registers an idle worker in place of its earlier row, and answers the lease that came of that one. If that lease is not the one that is
-- known, there is no new row, and none either at another server than the one that gave the number.
--
--   :earlier        its row before, or null
--   :registered_for in ms
--   :duration       of the lease to be, in ms
--   :seen_up_to     the number up to which all jobs that became ready were seen
--   :known_lease    the last lease that was reported, or null
--   :number         of the next lease, unless that of the earlier row is left over
--   :server         the one that gave the number
--
-- Its commit need not wait for the disk: the table does not outlive a crash.
with earlier as (delete from pawl.idle_worker where id = :earlier::bigint and worker = :worker::int returning lease, lease_number),
made as (
  insert into pawl.idle_worker (until, worker, listener, channel, duration_ms, seen_up_to, queues, tasks, lease_number)
  select coalesce(to_timestamp(:now::float8 / 1000), statement_timestamp()) + :registered_for::float8 * interval '1 millisecond',
    :worker::int, :listener::int, :channel::text, :duration::float8, :seen_up_to::bigint, :queues::text[], :tasks::text[],
    coalesce((select lease_number from earlier where lease is null), :number::bigint)
  where not exists (select from earlier where lease <> coalesce(:known_lease::bigint, 0))
    and extract(epoch from pg_postmaster_start_time())::text = :server::text
  returning id, lease_number
)
select (select id::text from made) as id, (select lease_number::text from made) as number, (select lease::text from earlier) as lease,
  (extract(epoch from coalesce(to_timestamp(:now::float8 / 1000), statement_timestamp())) * 1000)::float8 as now,
  set_config('synchronous_commit', 'off', true)

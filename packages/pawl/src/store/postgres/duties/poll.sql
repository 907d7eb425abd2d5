-- One cheap look at the store: what is due next of each kind, and whether there is other work for duties. It locks nothing.
--
--   :scheduled_from, :lease_from, :timer_from, :tick_from, :limit_check_from   nothing live is before them (LowWatermarks), in ms
--   :delta_from          the same for numbers of `counter_delta`
--   :draws_transaction   true: a transaction's id is drawn, by which a later poll knows how far all was seen
select (extract(epoch from coalesce(to_timestamp(:now::float8 / 1000), statement_timestamp())) * 1000)::float8 as now,
  (select (extract(epoch from run_at) * 1000)::float8 from pawl.scheduled where run_at >= to_timestamp(:scheduled_from::float8 / 1000) order by run_at limit 1) as scheduled,
  (select (extract(epoch from until) * 1000)::float8 from pawl.lease where until >= to_timestamp(:lease_from::float8 / 1000) order by until limit 1) as lease,
  (select (extract(epoch from at) * 1000)::float8 from pawl.timer where at >= to_timestamp(:timer_from::float8 / 1000) order by at limit 1) as timer,
  (select (extract(epoch from due_at) * 1000)::float8 from pawl.schedule where due_at >= to_timestamp(:tick_from::float8 / 1000) order by due_at limit 1) as tick,
  (select (extract(epoch from at) * 1000)::float8 from pawl.limit_check where at >= to_timestamp(:limit_check_from::float8 / 1000) order by at limit 1) as limit_check,
  (select id::float8 from pawl.counter_delta where id >= :delta_from::float8::bigint order by id limit 1) as delta,
  (select last_value::float8 from pawl.counter_delta_id_seq) as last_delta,
  -- A sequence that has given out no number says 1 all the same.
  (select case when is_called then last_value else 0 end from pawl.ready_seq)::float8 as last_ready,
  (extract(epoch from statement_timestamp()) * 1000)::float8 - (extract(epoch from pg_postmaster_start_time()) * 1000)::float8 as up_for,
  exists (select from pawl.intent) as intents,
  exists (select from pawl.dependency where not verified) as unverified,
  w.epoch,
  (extract(epoch from w.until) * 1000)::float8
    - (extract(epoch from coalesce(to_timestamp(:now::float8 / 1000), statement_timestamp())) * 1000)::float8 as watched_for,
  extract(epoch from pg_postmaster_start_time())::text as server, pg_snapshot_xmin(s)::text as xmin,
  case when :draws_transaction::bool then pg_current_xact_id()::text end as xact
from pg_current_snapshot() s
left join pawl.event_watch w on w.until > coalesce(to_timestamp(:now::float8 / 1000), statement_timestamp())

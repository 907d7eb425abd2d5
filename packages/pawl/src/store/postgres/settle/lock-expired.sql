-- Locks expired leases, those that expired first; several processes share the work by skipping each other's. `settled` is as it is after the
-- lock: what was settled before it was had is there.
--
--   :from   no lease ends before it (LowWatermarks), in ms
select id::text, worker, alone, array_to_string(jobs, ',') as jobs,
  settled::text  -- guard: settled-after-lock
  , (extract(epoch from claimed_at) * 1000)::float8 as claimed_at,
  (extract(epoch from coalesce(to_timestamp(:now::float8 / 1000), statement_timestamp())) * 1000)::float8 as now
from pawl.lease
where until >= to_timestamp(:from::float8 / 1000)  -- stop: lock-expired-snapshot
  and until <= coalesce(to_timestamp(:now::float8 / 1000), statement_timestamp())  -- guard: lease-is-expired
order by until limit :limit::int  -- guard: first-expired-first
for update skip locked  -- guard: expired-lease-locked

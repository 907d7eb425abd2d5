-- Makes leases last longer, and answers those that the worker still holds. It never shortens one: answers may overtake each other. It locks
-- them in the order of their numbers.
update pawl.lease
set until = greatest(until, coalesce(to_timestamp(:now::float8 / 1000), statement_timestamp()) + :duration::float8 * interval '1 millisecond')
where id in (
  select id from pawl.lease
  where id = any(:leases::bigint[]) and worker = :worker::int  -- stop: renew-snapshot
  order by id for update
)
returning id::text

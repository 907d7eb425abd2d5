-- Numbers of leases to be. An enqueue that uses one is begun before it is on disk, so the number must be there already: or a server that
-- crashed would give it out once more, and two jobs were under one lease. A sequence alone does not see to that, since of most of its
-- numbers it writes nothing: hence the message, with which all that was written before goes to the disk. A standby that is promoted may
-- not know of it, and would give them out: so they are good at that server only.
with drawn as materialized (select array_agg(nextval('pawl.lease_seq')::text) as numbers from generate_series(1, :count::int))
select numbers, extract(epoch from pg_postmaster_start_time())::text as server, pg_logical_emit_message(true, 'pawl', 'numbers')::text from drawn

-- oldest: 18
-- Seats of workers with empty hands: the next job that is theirs is given to one by its enqueue, under a lease, and need not be
-- claimed. Unlogged: a seat outlives no crash of the server, and none is meant to.
create sequence pawl.seat_seq as bigint;
create unlogged table pawl.seat (
  id bigint primary key default nextval('pawl.seat_seq'),
  until timestamptz not null,
  worker int not null,
  -- of the server process by which the worker's process hears: it ends with that one
  listener int not null,
  channel text not null,
  duration_ms float8 not null,
  queues text[],
  tasks text[] not null,
  -- what was ready up to here was seen to be taken
  bound bigint not null,
  -- of the lease that will be made of it: on disk before anybody could use it
  number bigint not null,
  -- the same, once it is taken
  lease bigint
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);

-- Who knows the name of a worker's channel could tell it to run anything: not for those who only read (roles.ts).
do $$ declare reader name := (select n.nspname || '_readonly' from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = 'pawl.seat'::regclass); begin if exists (select from pg_roles where rolname = reader) then execute format('revoke all on pawl.seat from %I', reader); end if; end $$;

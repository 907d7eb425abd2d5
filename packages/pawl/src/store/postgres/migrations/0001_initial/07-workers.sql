-- Workers: who they are, what they serve, and those that are idle.

-- One life of one worker process.
create table pawl.worker (
  id int generated always as identity primary key,
  instance uuid not null unique,
  name text not null,
  started_at timestamptz not null,
  seen_at timestamptz not null default now()
);

-- What live workers serve. A row is a sign of life: it is believed until its time is over, and says why jobs wait, never who may run them.
create table pawl.live_worker (
  worker int primary key,
  since timestamptz not null,
  until timestamptz not null,
  serves json not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- Idle workers: the enqueue of a job that one of them serves gives it the job under a lease, and no claim is needed. Unlogged: a row does not
-- outlive a crash of the server, and none is meant to.
create sequence pawl.idle_worker_seq as bigint;
create unlogged table pawl.idle_worker (
  id bigint primary key default nextval('pawl.idle_worker_seq'),
  until timestamptz not null,
  worker int not null,
  -- the server process by which the worker's process receives notifications: the row ends with it
  listener int not null,
  channel text not null,
  duration_ms float8 not null,
  queues text[],
  tasks text[] not null,
  -- all that was ready up to this number was seen to be taken
  seen_up_to bigint not null,
  -- the number of the lease that will be made of it: on disk before anybody could use it
  lease_number bigint not null,
  -- the same, once a job was given to it
  lease bigint
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);

-- A program that knows the name of a worker's channel could make it run anything: not for those who only read (roles.ts).
do $$ declare reader name := (select n.nspname || '_readonly' from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = 'pawl.idle_worker'::regclass); begin if exists (select from pg_roles where rolname = reader) then execute format('revoke all on pawl.idle_worker from %I', reader); end if; end $$;

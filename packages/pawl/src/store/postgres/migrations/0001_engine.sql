-- The engine's tables. Which table holds a job's row is its state; nothing on the hot path is updated in place.
-- A job is in exactly one of ready, suspect, scheduled, parked, blocked, dead; if in none, its newest attempt says
-- whether it succeeded or was cancelled; if that says neither, a lease holds it: it is running.

create schema if not exists pawl;

-- Order inside lanes, and the fence. Sequences are not MVCC: they never bloat and never go back.
create sequence pawl.ready_seq;
create sequence pawl.lease_seq;

-- ids below `floor` belong to partitions that are going or gone: their rows live in the *_kept tables.
-- `ceiling_ms` is the end of the last partition: later due times are clamped to it in the id (never in due_at).
create table pawl.span (
  one bool primary key default true check (one),
  floor uuid not null,
  floor_ms float8 not null,
  ceiling_ms float8 not null
);

-- Immutable facts, written once. Partitioned by id, which is by due time.
create table pawl.job (
  created_at timestamptz not null,
  due_at timestamptz not null,
  id uuid not null primary key,
  band int2 not null,
  queue text collate "C" not null,
  tenant text collate "C" not null,
  task text collate "C" not null,
  input json not null,
  options json
) partition by range (id);

-- Append-only: the insert is the acknowledgement and the history. spent and crashes are the counts after it.
create table pawl.attempt (
  lease bigint not null,
  started_at timestamptz not null,
  finished_at timestamptz not null,
  job uuid not null,
  worker int,
  outcome int2 not null,
  next int2 not null,
  spent int2 not null,
  crashes int2 not null,
  output json,
  failure json,
  primary key (job, lease)
) partition by range (job);

create table pawl.log (
  at timestamptz not null,
  lease bigint not null,
  job uuid not null,
  level int2 not null,
  message text not null,
  data json
) partition by range (job);
create index log_job on pawl.log (job, at);

create table pawl.job_kept (like pawl.job including all);
create table pawl.attempt_kept (like pawl.attempt including all);
create table pawl.log_kept (like pawl.log including all);

-- For reads that do not mind looking twice.
create view pawl.any_job as select * from pawl.job union all select * from pawl.job_kept;
create view pawl.any_attempt as select * from pawl.attempt union all select * from pawl.attempt_kept;
create view pawl.any_log as select * from pawl.log union all select * from pawl.log_kept;

-- Waiting to be claimed, by lane. Narrow; insert and delete only.
create table pawl.ready (
  seq bigint not null default nextval('pawl.ready_seq'),
  id uuid not null,
  band int2 not null,
  spent int2 not null,
  crashes int2 not null,
  queue text collate "C" not null,
  tenant text collate "C" not null,
  task text collate "C" not null,
  primary key (queue, band, tenant, task, seq)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0, autovacuum_vacuum_insert_threshold = -1);
create unique index ready_id on pawl.ready (id);

-- Ready too, but it has taken workers down: claimed one at a time, alone in its lease.
create table pawl.suspect (
  seq bigint not null default nextval('pawl.ready_seq'),
  id uuid not null unique,
  band int2 not null,
  spent int2 not null,
  crashes int2 not null,
  queue text collate "C" not null,
  tenant text collate "C" not null,
  task text collate "C" not null,
  primary key (queue, task, seq)
);

create table pawl.scheduled (
  run_at timestamptz not null,
  id uuid not null primary key,
  band int2 not null,
  spent int2 not null,
  crashes int2 not null,
  queue text collate "C" not null,
  tenant text collate "C" not null,
  task text collate "C" not null
);
create index scheduled_run_at on pawl.scheduled (run_at);

create table pawl.parked (
  run_at timestamptz,
  id uuid not null primary key,
  band int2 not null,
  spent int2 not null,
  crashes int2 not null,
  reason text not null,
  queue text collate "C" not null,
  tenant text collate "C" not null,
  task text collate "C" not null
);

create table pawl.blocked (
  run_at timestamptz not null,
  id uuid not null primary key,
  band int2 not null,
  queue text collate "C" not null,
  tenant text collate "C" not null,
  task text collate "C" not null
);

-- verified: the parent was looked at after this row could be seen by everybody who might finish it.
create table pawl.dependency (
  parent uuid not null,
  child uuid not null,
  on_death text not null,
  verified bool not null default false,
  primary key (parent, child)
);
create index dependency_child on pawl.dependency (child);
create index dependency_unverified on pawl.dependency (child) where not verified;

create table pawl.dead (
  died_at timestamptz not null,
  id uuid not null primary key,
  band int2 not null,
  queue text collate "C" not null,
  tenant text collate "C" not null,
  task text collate "C" not null,
  kind text not null,
  name text not null
);
create index dead_died_at on pawl.dead (died_at);

-- Asked of a job a worker holds; carried out where the job next passes.
create table pawl.intent (
  job uuid primary key,
  kind text not null check (kind in ('cancel', 'pause')),
  reason text,
  asked_at timestamptz not null
);

-- One life of one worker process.
create table pawl.worker (
  id int generated always as identity primary key,
  boot uuid not null unique,
  name text not null,
  started_at timestamptz not null
);

-- One row per claimed batch. `open` counts the jobs not settled yet. `watched`: something was written that a settlement
-- of one of them must see, whatever its snapshot is; only what is read after the lock tells it (settle.ts).
create table pawl.lease (
  id bigint primary key default nextval('pawl.lease_seq'),
  claimed_at timestamptz not null,
  until timestamptz not null,
  worker int not null,
  open int not null,
  alone bool not null,
  watched bool not null default false,
  jobs uuid[] not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
alter table pawl.lease alter column jobs set storage external;
create index lease_until on pawl.lease (until);

-- When a waiting job must have started (expire) or ended (deadline).
create table pawl.timer (
  at timestamptz not null,
  job uuid not null,
  kind text not null check (kind in ('expire', 'deadline')),
  primary key (job, kind)
);
create index timer_at on pawl.timer (at);

-- Who holds a key; judged when somebody asks for it.
create table pawl.key (
  tenant text collate "C" not null,
  task text collate "C" not null,
  key text collate "C" not null,
  job uuid not null,
  hold text not null,
  until timestamptz,
  primary key (tenant, task, key)
);
create index key_job on pawl.key (job);

create table pawl.request (
  tenant text collate "C" not null,
  id text collate "C" not null,
  job uuid not null,
  until timestamptz not null,
  primary key (tenant, id)
);
create index request_until on pawl.request (until);

-- Recorded side effects (ctx.once).
create table pawl.effect (
  job uuid not null,
  name text not null,
  value json not null,
  until timestamptz not null,
  primary key (job, name)
);
create index effect_until on pawl.effect (until);

create table pawl.pause (
  kind text not null check (kind in ('queue', 'task')),
  name text collate "C" not null,
  primary key (kind, name)
);

-- Counters: one delta row per batch, queue and task, folded into tally in the background.
create table pawl.delta (
  id bigint generated always as identity primary key,
  blocked int not null default 0,
  scheduled int not null default 0,
  ready int not null default 0,
  parked int not null default 0,
  running int not null default 0,
  succeeded int not null default 0,
  dead int not null default 0,
  cancelled int not null default 0,
  queue text collate "C" not null,
  task text collate "C" not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);

create table pawl.tally (
  queue text collate "C" not null,
  task text collate "C" not null,
  blocked bigint not null default 0,
  scheduled bigint not null default 0,
  ready bigint not null default 0,
  parked bigint not null default 0,
  running bigint not null default 0,
  succeeded bigint not null default 0,
  dead bigint not null default 0,
  cancelled bigint not null default 0,
  primary key (queue, task)
);

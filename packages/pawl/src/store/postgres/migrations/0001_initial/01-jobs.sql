-- Jobs, and the tables they wait in. Which table holds a job's row is its state: one of ready, suspect, scheduled, parked, blocked and
-- dead, or none. In none, the newest attempt says whether the job succeeded or was cancelled; if it says neither, a lease holds the job:
-- it is running. Nothing on the hot path is updated in seq.

create schema if not exists pawl;

-- The order inside lanes. Sequences are not MVCC: they never bloat and never go back. Up to 1,024 jobs of one row share a number's step.
create sequence pawl.ready_seq increment by 1024;

-- The months that partitions exist for. Ids below `floor` belong to partitions that are going or gone: their rows are in the *_kept
-- tables. `ceiling_ms` is the end of the last partition: later due times are clamped to it in the id, never in due_at.
create table pawl.partition_range (
  only_one bool primary key default true check (only_one),
  floor uuid not null,
  floor_ms float8 not null,
  ceiling_ms float8 not null
);

-- The facts of a job, written once. The id begins with the due time, so partitions by id are months of due times. `home` is drawn at the
-- enqueue and never changes: jobs of one row have consecutive ones, and history is found by it.
create table pawl.job (
  created_at timestamptz not null,
  due_at timestamptz not null,
  id uuid not null primary key,
  priority int2 not null,
  queue text collate "C" not null,
  tenant text collate "C" not null,
  task text collate "C" not null,
  input json not null,
  options json,
  home bigint not null
) partition by range (id);

-- Jobs that outlived their month.
create table pawl.job_kept (like pawl.job including all);

-- All jobs. A caller sees through it what it may see of the tables.
create view pawl.any_job with (security_invoker = true) as select * from pawl.job union all select * from pawl.job_kept;

-- Jobs that are due later.
create table pawl.scheduled (
  run_at timestamptz not null,
  id uuid not null primary key,
  priority int2 not null,
  attempts int2 not null,
  crashes int2 not null,
  queue text collate "C" not null,
  tenant text collate "C" not null,
  task text collate "C" not null
);
create index scheduled_run_at on pawl.scheduled (run_at);

-- Jobs that are paused, or wait at a limit on a key: then `limit key` is the key, and they are admitted by rank, then by seq.
create sequence pawl.limit_queue_seq;
create table pawl.parked (
  run_at timestamptz,
  id uuid not null primary key,
  priority int2 not null,
  attempts int2 not null,
  crashes int2 not null,
  reason text not null,
  queue text collate "C" not null,
  tenant text collate "C" not null,
  task text collate "C" not null,
  limit_key text collate "C",
  rank int2,
  seq bigint
);
create index parked_limit_key on pawl.parked (limit_key, rank, seq) where limit_key is not null;

-- Jobs that wait for others.
create table pawl.blocked (
  run_at timestamptz not null,
  id uuid not null primary key,
  priority int2 not null,
  queue text collate "C" not null,
  tenant text collate "C" not null,
  task text collate "C" not null
);

-- Which job waits for which. `verified`: the parent was looked at after this row could be seen by every transaction that might finish it.
create table pawl.dependency (
  parent uuid not null,
  child uuid not null,
  on_dependency_death text not null,
  verified bool not null default false,
  primary key (parent, child)
);
create index dependency_child on pawl.dependency (child);
create index dependency_unverified on pawl.dependency (child) where not verified;

-- Jobs that failed for good. `fingerprint` groups those of one cause (core/jobs/fingerprint.ts); it is null until somebody asks for it, since
-- deaths are written on the hot path and read by people.
create table pawl.dead (
  died_at timestamptz not null,
  id uuid not null primary key,
  priority int2 not null,
  queue text collate "C" not null,
  tenant text collate "C" not null,
  task text collate "C" not null,
  kind text not null,
  name text not null,
  fingerprint text collate "C"
);
create index dead_died_at on pawl.dead (died_at);
create index dead_fingerprint on pawl.dead (fingerprint, id);

-- A cancel or pause of a job that a worker holds. It is carried out where the job next passes.
create table pawl.intent (
  job uuid primary key,
  kind text not null check (kind in ('cancel', 'pause')),
  reason text,
  requested_at timestamptz not null
);

-- When a waiting job must have started (expire) or ended (deadline).
create table pawl.timer (
  at timestamptz not null,
  job uuid not null,
  kind text not null check (kind in ('expire', 'deadline')),
  primary key (job, kind)
);
create index timer_at on pawl.timer (at);

-- The job that holds a unique key. Whether it still does is decided when the key is asked for. `since`: when the first of a chain of
-- debounced jobs asked for the key.
create table pawl.unique_key (
  tenant text collate "C" not null,
  task text collate "C" not null,
  key text collate "C" not null,
  job uuid not null,
  hold text not null,
  until timestamptz,
  since timestamptz,
  primary key (tenant, task, key)
);
create index unique_key_job on pawl.unique_key (job);

-- The job that was stored under a request id, and a digest of the task and the input that were asked for.
create table pawl.idempotency_key (
  tenant text collate "C" not null,
  id text collate "C" not null,
  job uuid not null,
  until timestamptz not null,
  digest text,
  primary key (tenant, id)
);
create index idempotency_key_until on pawl.idempotency_key (until);

-- Many jobs that were stored under one request id, for as long as it may be repeated. `kinds` has a letter for each job, and is null
-- where all were created; `replaced` are the jobs they replaced.
create table pawl.idempotent_batch (
  tenant text collate "C" not null,
  id text collate "C" not null,
  digest text not null,
  until timestamptz not null,
  jobs uuid[],
  kinds text,
  replaced uuid[],
  note text,
  primary key (tenant, id)
) with (fillfactor = 50);
create index idempotent_batch_until on pawl.idempotent_batch (until);
-- Ids are as good as random: compressing them costs more than it saves.
alter table pawl.idempotent_batch alter column jobs set storage external;

-- Policies of queues, tasks and tenants; pauses; limits on lanes and on keys; limits on enqueues; breakers.

-- What is set for queues, tasks and tenants at run time. `version` is that of `policy_version` at its last change.
create table pawl.policy (
  kind text not null check (kind in ('queue', 'task', 'tenant')),
  name text collate "C" not null,
  policy json not null,
  version bigint not null,
  primary key (kind, name)
);
-- Producers look for these, and not for all policies.
create index policy_ingest on pawl.policy (kind, name) where (policy->'ingest') is not null;

-- One row that counts the changes of policies, so that workers see that there was one.
create table pawl.policy_version (
  only_one bool primary key default true check (only_one),
  version bigint not null
);

-- Queues, tasks and tenants whose jobs are not claimed.
create table pawl.pause (
  kind text not null check (kind in ('queue', 'task', 'tenant')),
  name text collate "C" not null,
  primary key (kind, name)
);

-- The part of policies that limits claims. A claim of such lanes locks their rows, counts the slots and takes tokens; other claims leave
-- these lanes alone. `tat` is when the bucket of tokens will be full again.
create table pawl.lane_limit (
  kind text not null check (kind in ('queue', 'task', 'tenant')),
  name text collate "C" not null,
  concurrency int,
  rate_limit int,
  rate_per float8,
  rate_burst int,
  tat float8,
  primary key (kind, name)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- Jobs that count under a limit: ready or running ones, and those that keep a serial key until they end. `kind` is 'key' (concurrency),
-- 'serial' or 'rate' of a limit on a key; 'queue', 'task' or 'tenant' of a limit on lanes. Inserted under the lock of the limit, deleted in
-- the transaction in which the job leaves: nothing counts down, so nothing leaks.
create table pawl.slot (
  job uuid not null,
  kind text collate "C" not null,
  key text collate "C" not null,
  primary key (kind, key, job)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
create index slot_job on pawl.slot (job);

-- One key of one limit of one tenant. Admission locks its row; nothing else writes to it. `full_at` is when the bucket of its rate is full
-- again. `closed`: when it was last looked at no other job could pass, so the next one that is admitted has waited.
create table pawl.limit_key (
  key text collate "C" primary key,
  rule json not null,
  full_at timestamptz,
  paused_until timestamptz,
  closed bool not null default false
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);

-- The keys that an unfinished job must be admitted by, the serial one first, and the limits they belong to, in the same order.
create table pawl.job_limits (
  job uuid primary key,
  limit_keys text[] collate "C" not null,
  serial bool not null,
  limits json not null
);

-- A key to look at, and from when on: a job waits there (with the rule it brings), a slot is free, a token is there.
create table pawl.limit_check (
  id bigint generated always as identity primary key,
  at timestamptz not null,
  key text collate "C" not null,
  rule json,
  paused_until timestamptz
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
create index limit_check_at on pawl.limit_check (at);
create index limit_check_key on pawl.limit_check (key, id);

-- The state of a limit on enqueues. An enqueue locks its row. `full_at` is when the bucket of its rate is full again; `depth` is what was
-- counted to wait, `since` what was stored after that, `drain` the jobs per ms that left meanwhile.
create table pawl.ingest (
  kind text collate "C" not null,
  name text collate "C" not null,
  full_at float8,
  depth bigint not null default 0,
  since bigint not null default 0,
  counted_at float8,
  count_again_at float8,
  drain float8,
  primary key (kind, name)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- Breakers of tenants and tasks that have seen failures, as core/limits/breaker.ts decides them, under the row's lock. `until`: when it is deleted
-- unless somebody reports on it; null if a person forced it.
create table pawl.breaker (
  tenant text collate "C" not null,
  task text collate "C" not null,
  state text not null,
  forced bool not null,
  opening int not null,
  since timestamptz not null,
  probe_at timestamptz,
  step int,
  counts json not null,
  rule json not null,
  until timestamptz,
  primary key (tenant, task)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
create index breaker_open_state on pawl.breaker (tenant, task) where state <> 'closed';

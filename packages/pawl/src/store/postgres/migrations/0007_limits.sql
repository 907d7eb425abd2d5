-- oldest: 7
-- Who holds a place under a limit: a job that is ready or running, or that keeps a serial key until it ends. `kind` says
-- of what: 'key' (concurrency), 'serial' and 'rate' of a gate; 'queue', 'task' and 'tenant' of a whole lane. Inserted under
-- the lock of what is limited, deleted in the transaction in which the job leaves: nothing counts down, so nothing leaks.
create table pawl.slot (
  job uuid not null,
  kind text collate "C" not null,
  key text collate "C" not null,
  primary key (kind, key, job)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
create index slot_job on pawl.slot (job);

-- One key of one limit of one tenant. Whoever lets jobs in locks its row; nobody else writes to it. `full_at` is when the
-- bucket of its rate is full again.
create table pawl.gate (
  key text collate "C" primary key,
  rule json not null,
  full_at timestamptz,
  paused_until timestamptz
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);

-- The gates that an unfinished job must pass, the serial one first, and the limits that they are of, in the same order.
create table pawl.ticket (
  job uuid primary key,
  gates text[] collate "C" not null,
  serial bool not null,
  limits json not null
);

-- A gate to look at, and from when on: a job lines up (with the rule it brings), a slot is free, a token is there.
create table pawl.knock (
  id bigint generated always as identity primary key,
  at timestamptz not null,
  key text collate "C" not null,
  rule json,
  paused_until timestamptz
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
create index knock_at on pawl.knock (at);
create index knock_key on pawl.knock (key, id);

-- Jobs that wait at a gate are parked in a line of it: by rank, then in the order they came.
create sequence pawl.line_seq;
alter table pawl.parked add column gate text collate "C", add column rank int2, add column place bigint;
create index parked_gate on pawl.parked (gate, rank, place) where gate is not null;

-- When the first of a chain of jobs asked for the key that each took over from the one before (debounce).
alter table pawl.key add column since timestamptz;

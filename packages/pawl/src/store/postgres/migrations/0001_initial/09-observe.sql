-- Counters, the series made of them, and events.

-- Changes of counters: one row per statement, queue and task, folded into `counter` and `series` in the background. `restored`: the jobs came
-- back from an export, and were not enqueued or finished now.
create table pawl.counter_delta (
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
  task text collate "C" not null,
  restored bool not null default false
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);

-- How many jobs are in each state, by queue and task. `starts`: recent starts, each worth less the longer ago it was (core/limits/start-rate.ts), as they
-- were at `starts_at`, counted from `starts_since` on.
create table pawl.counter (
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
  starts float8 not null default 0,
  starts_at timestamptz,
  starts_since timestamptz,
  primary key (queue, task)
);

-- What happens to jobs, minute by minute (from 1970 on), by queue and task. The changes are by how much each state has more jobs than
-- before, so the counts of any minute follow from the counts of now.
create table pawl.series (
  minute int not null,
  enqueued int not null default 0,
  started int not null default 0,
  succeeded int not null default 0,
  retried int not null default 0,
  died int not null default 0,
  cancelled int not null default 0,
  blocked_change int not null default 0,
  scheduled_change int not null default 0,
  ready_change int not null default 0,
  parked_change int not null default 0,
  running_change int not null default 0,
  dead_change int not null default 0,
  queue text collate "C" not null,
  task text collate "C" not null,
  primary key (minute, queue, task)
) with (fillfactor = 80);

-- Whether anybody reads the events of all processes, and until when: while nobody does, none are recorded. `epoch` changes whenever
-- recording begins anew; `forgotten` is the last batch of events that is no longer kept.
create table pawl.event_watch (
  one bool primary key default true check (one),
  epoch text not null,
  until timestamptz not null,
  forgotten bigint not null
);

-- Events, in batches of one process each. Numbers are drawn under a lock that is held until the commit: a reader that has seen one has seen
-- all before it.
create sequence pawl.event_seq;
create table pawl.event (
  seq bigint primary key,
  at timestamptz not null,
  size int not null,
  entries json not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

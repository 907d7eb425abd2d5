-- oldest: 11
-- What happens to jobs, minute by minute, by queue and task: folded out of the same deltas as the counts. `minute` counts
-- from 1970 on. The changes are by how much each state has more jobs than before, so that what stood at any minute follows
-- from what stands now.
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

-- Jobs brought back from an export are there again, and were not enqueued or finished now.
alter table pawl.delta add column restored bool not null default false;

-- Who wants to hear what happens in every process, and for how long yet: while nobody does, nothing is recorded. `epoch` is
-- another one whenever that began anew; `forgotten` is the last batch of events that is no longer kept.
create table pawl.watch (
  one bool primary key default true check (one),
  epoch text not null,
  until timestamptz not null,
  forgotten bigint not null
);

-- What happened, in batches of one process each. Numbers are drawn under a lock that is held until the commit: whoever has
-- seen one has seen all before it.
create sequence pawl.event_seq;
create table pawl.event (
  seq bigint primary key,
  at timestamptz not null,
  size int not null,
  entries json not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

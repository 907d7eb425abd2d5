-- Ready jobs, and the leases of those that were claimed.

-- Jobs to be claimed. A row holds 1 to 64 jobs of one lane, which stand there one after the other; `seq` is the number of the first. The id of
-- one job is in `id`, those of several are in `jobs`. `inputs` and `options` are those of its jobs in their order, as JSON texts with a record
-- separator (U+001E) between them, and an empty text where a job has no options. Without `inputs` a claim looks the jobs up. Insert and
-- delete only: a claim that takes some of a row's jobs puts the others back as a new row. Numbers below zero are of jobs that waited at a limit
-- on a key: they are before all others of their lane.
create table pawl.ready (
  seq bigint not null default nextval('pawl.ready_seq'),
  size int not null default 1,
  priority int2 not null,
  attempts int2 not null default 0,
  crashes int2 not null default 0,
  queue text collate "C" not null,
  tenant text collate "C" not null,
  task text collate "C" not null,
  id uuid,
  jobs uuid[],
  inputs text,
  options text,
  primary key (queue, priority, tenant, task, seq)
) with (toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0, autovacuum_vacuum_insert_threshold = -1);
alter table pawl.ready alter column jobs set storage external;
alter table pawl.ready alter column inputs set storage external;
alter table pawl.ready alter column options set storage external;
create unique index ready_id on pawl.ready (id) where id is not null;

-- Jobs that were lost with their workers before: claimed one at a time, each alone in its lease.
create table pawl.suspect (
  seq bigint not null default nextval('pawl.ready_seq'),
  id uuid not null unique,
  priority int2 not null,
  attempts int2 not null,
  crashes int2 not null,
  queue text collate "C" not null,
  tenant text collate "C" not null,
  task text collate "C" not null,
  primary key (queue, task, seq)
);

-- All ready jobs, one a row: for reads that may look at all of them.
create view pawl.any_ready with (security_invoker = true) as
  select r.seq + u.index - 1 as seq, u.id, r.priority, r.queue, r.tenant, r.task
    from pawl.ready r cross join lateral unnest(coalesce(r.jobs, array[r.id])) with ordinality as u(id, index)
  union all select seq, id, priority, queue, tenant, task from pawl.suspect;

-- The numbers of leases only grow: they are the fence.
create sequence pawl.lease_seq;

-- One row per claimed batch. `unsettled` counts the jobs that are not settled yet; `settled` are their indexes in `jobs`, from 1, and make each
-- be settled once. `changed_by` is the transaction that last wrote something that a settlement of one of the jobs must see: a settlement
-- whose snapshot is older is made again.
create table pawl.lease (
  id bigint primary key default nextval('pawl.lease_seq'),
  claimed_at timestamptz not null,
  until timestamptz not null,
  worker int not null,
  unsettled int not null,
  alone bool not null,
  jobs uuid[] not null,
  settled int4multirange not null default '{}',
  changed_by xid8
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
alter table pawl.lease alter column jobs set storage external;
create index lease_until on pawl.lease (until);

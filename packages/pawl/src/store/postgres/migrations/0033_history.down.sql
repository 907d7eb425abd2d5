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
do $$ declare month record; begin for month in select c.relname as name, pg_get_expr(c.relpartbound, c.oid) as bound from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = 'pawl.history'::regclass loop execute format('create table pawl.%I (like pawl.attempt including defaults including constraints including indexes)', replace(month.name, 'history', 'attempt')); execute format('alter table pawl.attempt attach partition pawl.%I %s', replace(month.name, 'history', 'attempt'), month.bound); end loop; end $$;
create table pawl.attempt_kept (like pawl.attempt including all);
insert into pawl.attempt (lease, started_at, finished_at, job, worker, outcome, next, spent, crashes, output, failure)
  select lease, started_at, finished_at, job, worker, outcome, next, spent, crashes, output, failure from pawl.any_attempt where job >= (select floor from pawl.span);
insert into pawl.attempt_kept (lease, started_at, finished_at, job, worker, outcome, next, spent, crashes, output, failure)
  select lease, started_at, finished_at, job, worker, outcome, next, spent, crashes, output, failure from pawl.any_attempt where job < (select floor from pawl.span);
drop view pawl.any_attempt;
drop table pawl.history;
drop table pawl.history_kept;
create table pawl.bundle (
  seq bigint primary key,
  lease bigint not null,
  since timestamptz not null,
  worker int not null,
  first uuid not null,
  jobs uuid[] not null,
  started int[] not null,
  finished int[] not null
);
create index bundle_first on pawl.bundle (first);
alter table pawl.bundle alter column jobs set storage external;
create view pawl.any_attempt with (security_invoker = true) as
  select * from pawl.attempt
  union all select * from pawl.attempt_kept
  union all select b.lease, b.since + b.started[b.place] * interval '1 microsecond', b.since + b.finished[b.place] * interval '1 microsecond',
      j.id, b.worker, 0::int2, 5::int2, 1::int2, 0::int2, null::json, null::json
    from pawl.job j cross join lateral (
      select *, array_position(b.jobs, j.id) as place from pawl.bundle b where b.seq > j.home - 1024 and b.seq <= j.home and j.id = any(b.jobs) limit 1
    ) b;
alter table pawl.lease alter column settled drop not null;
alter table pawl.lease alter column settled drop default;
alter table pawl.lease drop column watched;
alter table pawl.lease add column watched bool not null default false;

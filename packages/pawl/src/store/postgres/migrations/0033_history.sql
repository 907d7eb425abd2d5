-- oldest: 33
-- One table of history in place of `attempt` and `bundle`. A row holds an attempt of one job (`jobs` null, begun at `since` and ended at
-- `ended`), or those of up to 64 jobs of one lane that stood one after the other in a lease: `started` and `finished` are then
-- microseconds after `since`. `home` and `last` are the smallest and the largest number of its jobs, by which they are found; `first` is
-- one of them, in the month of all. `odd` has five numbers for each attempt that was not a first one that succeeded: its place in the
-- row, outcome, next state, spent and crashes; `failures` has one entry for each of those. `outputs` are by place. Insert and delete only.
create table pawl.history (
  home bigint not null,
  last bigint not null,
  lease bigint not null,
  since timestamptz not null,
  ended timestamptz,
  first uuid not null,
  worker int,
  jobs uuid[],
  started int[],
  finished int[],
  odd int[],
  failures json[],
  outputs json[]
) partition by range (first);
alter table pawl.history alter column jobs set storage external;
alter table pawl.history alter column started set storage external;
alter table pawl.history alter column finished set storage external;
create index history_home on pawl.history (home);
do $$ declare month record; begin for month in select c.relname as name, pg_get_expr(c.relpartbound, c.oid) as bound from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = 'pawl.attempt'::regclass loop execute format('create table pawl.%I (like pawl.history including defaults including constraints including indexes including storage)', replace(month.name, 'attempt', 'history')); execute format('alter table pawl.%I set (toast_tuple_target = 8160)', replace(month.name, 'attempt', 'history')); execute format('alter table pawl.history attach partition pawl.%I %s', replace(month.name, 'attempt', 'history'), month.bound); end loop; end $$;
-- Of jobs that outlived their month: one attempt a row.
create table pawl.history_kept (like pawl.history including defaults including constraints including storage);
create index history_kept_first on pawl.history_kept (first);

-- Places in `jobs` of those settled under the lease, from 1: what makes each be settled once.
update pawl.lease l set settled = coalesce((
  select range_agg(int4range(u.place::int, u.place::int, '[]')) from unnest(l.jobs) with ordinality as u(job, place)
  where exists (select from pawl.any_attempt a where a.job = u.job and a.lease = l.id)
), '{}') where settled is null;
alter table pawl.lease alter column settled set default '{}';
alter table pawl.lease alter column settled set not null;
-- The transaction that last wrote something that a settlement of one of the jobs must see. A settlement whose snapshot is older is
-- made again.
alter table pawl.lease drop column watched;
alter table pawl.lease add column watched xid8;

insert into pawl.history (home, last, lease, since, ended, first, worker, odd, failures, outputs)
  select j.home, j.home, a.lease, a.started_at, a.finished_at, a.job, a.worker,
    case when o.odd then array[1, a.outcome, a.next, a.spent, a.crashes]::int[] end, case when o.odd then array[a.failure] end, case when a.output is not null then array[a.output] end
  from pawl.any_attempt a join pawl.any_job j on j.id = a.job
  cross join lateral (select a.failure is not null or (a.outcome, a.next, a.spent, a.crashes) <> (0, 5, 1, 0) as odd) o
  where j.id >= (select floor from pawl.span);
insert into pawl.history_kept (home, last, lease, since, ended, first, worker, odd, failures, outputs)
  select j.home, j.home, a.lease, a.started_at, a.finished_at, a.job, a.worker, array[1, a.outcome, a.next, a.spent, a.crashes]::int[], array[a.failure], array[a.output]
  from pawl.any_attempt a join pawl.any_job j on j.id = a.job where j.id < (select floor from pawl.span);

drop view pawl.any_attempt;
drop table pawl.bundle;
drop table pawl.attempt_kept;
drop table pawl.attempt;

-- Every attempt as a row of its own, for reads that are not on the hot path. It begins at the job: history of jobs that were dropped stays away.
-- (Behind the wall of a tenant, an index is used with values only, not with sums: hence `below`.)
create view pawl.any_attempt with (security_invoker = true) as
  select h.lease,
    case when h.jobs is null then h.since else h.since + h.started[h.place] * interval '1 microsecond' end as started_at,
    case when h.jobs is null then h.ended else h.since + h.finished[h.place] * interval '1 microsecond' end as finished_at,
    j.id as job, h.worker,
    coalesce(h.odd[o.at + 1], 0)::int2 as outcome, coalesce(h.odd[o.at + 2], 5)::int2 as next, coalesce(h.odd[o.at + 3], 1)::int2 as spent, coalesce(h.odd[o.at + 4], 0)::int2 as crashes,
    h.outputs[h.place] as output, h.failures[(o.at + 4) / 5] as failure
  from pawl.job j cross join lateral (select j.home - 65536 as home offset 0) below cross join lateral (
    select r.*, case when r.jobs is null then 1 else array_position(r.jobs, j.id) end as place
    from pawl.history r where r.home <= j.home and r.home > below.home and r.last >= j.home and (r.first = j.id or j.id = any(r.jobs))
  ) h left join lateral (select at from generate_series(1, cardinality(h.odd), 5) as at where h.odd[at] = h.place) o on true
  union all
  select h.lease, h.since, h.ended, h.first, h.worker, coalesce(h.odd[2], 0)::int2, coalesce(h.odd[3], 5)::int2, coalesce(h.odd[4], 1)::int2, coalesce(h.odd[5], 0)::int2,
    h.outputs[1], h.failures[1]
  from pawl.history_kept h;

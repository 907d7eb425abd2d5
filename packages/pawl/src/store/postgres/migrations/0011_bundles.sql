-- oldest: 11
-- Attempts of jobs that came in one parcel and succeeded at the first try with nothing to record but the times, as one
-- row: a settlement then writes a row per hundreds of jobs. `seq` is the place of its first job in the lane, so that the
-- parcel a job was enqueued in leads to it. `started` and `finished` are microseconds after `since`. Insert and delete
-- only. Whoever wants to change the history of one of its jobs opens it: all become rows of `attempt`.
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

create or replace view pawl.any_attempt as
  select * from pawl.attempt
  union all select * from pawl.attempt_kept
  union all select b.lease, b.since + b.started[b.place] * interval '1 microsecond', b.since + b.finished[b.place] * interval '1 microsecond',
      j.id, b.worker, 0::int2, 5::int2, 1::int2, 0::int2, null::json, null::json
    from pawl.job j cross join lateral (
      select *, array_position(b.jobs, j.id) as place from pawl.bundle b where b.seq >= j.parcel and b.seq < j.parcel + 1024 and j.id = any(b.jobs) limit 1
    ) b;

-- Places in `jobs` of those settled under the lease: null where none of its jobs came in a parcel, and nothing can be bundled.
alter table pawl.lease add column settled int4multirange;

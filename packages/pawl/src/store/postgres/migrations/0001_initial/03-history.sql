-- What became of jobs: attempts, log lines, recorded effects. Insert and delete only; partitioned with `job`.

-- A row holds an attempt of one job (`jobs` null, begun at `since`, ended at `ended`), or those of up to 64 jobs of one lane that stood one
-- after the other in a lease: `started` and `finished` are then microseconds after `since`. `home` and `last` are the smallest and the
-- largest home number of its jobs, by which they are found; `first` is one of the jobs, in the month of all. `outcomes` has five numbers for each
-- attempt that was not a first one that succeeded: its index in the row, outcome, next state, attempts and crashes. `failures` has one entry
-- for each of those. `outputs` are by index.
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
  outcomes int[],
  failures json[],
  outputs json[]
) partition by range (first);
alter table pawl.history alter column jobs set storage external;
alter table pawl.history alter column started set storage external;
alter table pawl.history alter column finished set storage external;
create index history_home on pawl.history (home);

-- Of jobs that outlived their month: one attempt a row.
create table pawl.history_kept (like pawl.history including defaults including constraints including storage);
create index history_kept_first on pawl.history_kept (first);

-- Every attempt as a row of its own, for reads that are not on the hot path. It begins at the job: history of jobs that are deleted does
-- not show. (For a tenant's role an index is used with values only, not with sums: hence `below`.)
create view pawl.any_attempt with (security_invoker = true) as
  select h.lease,
    case when h.jobs is null then h.since else h.since + h.started[h.index] * interval '1 microsecond' end as started_at,
    case when h.jobs is null then h.ended else h.since + h.finished[h.index] * interval '1 microsecond' end as finished_at,
    j.id as job, h.worker,
    coalesce(h.outcomes[o.at + 1], 0)::int2 as outcome, coalesce(h.outcomes[o.at + 2], 5)::int2 as next, coalesce(h.outcomes[o.at + 3], 1)::int2 as attempts, coalesce(h.outcomes[o.at + 4], 0)::int2 as crashes,
    h.outputs[h.index] as output, h.failures[(o.at + 4) / 5] as failure
  from pawl.job j cross join lateral (select j.home - 65536 as home offset 0) below cross join lateral (
    select r.*, case when r.jobs is null then 1 else array_position(r.jobs, j.id) end as index
    from pawl.history r where r.home <= j.home and r.home > below.home and r.last >= j.home and (r.first = j.id or j.id = any(r.jobs))
  ) h left join lateral (select at from generate_series(1, cardinality(h.outcomes), 5) as at where h.outcomes[at] = h.index) o on true
  union all
  select h.lease, h.since, h.ended, h.first, h.worker, coalesce(h.outcomes[2], 0)::int2, coalesce(h.outcomes[3], 5)::int2, coalesce(h.outcomes[4], 1)::int2, coalesce(h.outcomes[5], 0)::int2,
    h.outputs[1], h.failures[1]
  from pawl.history_kept h;

-- Lines that handlers logged. `line` orders those of one millisecond: it counts up in the order in which they were written.
create sequence pawl.log_line_seq;
create table pawl.log (
  at timestamptz not null,
  lease bigint not null,
  job uuid not null,
  level int2 not null,
  message text not null,
  data json,
  line bigint not null default nextval('pawl.log_line_seq')
) partition by range (job);
create index log_job on pawl.log (job, at);
create table pawl.log_kept (like pawl.log including all);
create view pawl.any_log with (security_invoker = true) as select * from pawl.log union all select * from pawl.log_kept;

-- What `ctx.once` recorded.
create table pawl.effect (
  job uuid not null,
  name text not null,
  value json not null,
  until timestamptz not null,
  primary key (job, name)
);
create index effect_until on pawl.effect (until);

-- oldest: 9
-- How many jobs are let in, and how fast jobs are started: for producers who must wait, and people who ask why a job does.

-- What is remembered of an ingest limit. Whoever lets jobs in locks its row. `full_at` is when the bucket of its rate is full
-- again; `depth` what was counted to wait, `since` what was let in after that, `drain` the jobs per ms that left meanwhile.
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

-- Producers look for these, and not for all policies.
create index policy_ingest on pawl.policy (kind, name) where (policy->'ingest') is not null;

-- Starts of late, each worth less the longer ago it was (core/pace.ts), as they were at `starts_at`, counted from
-- `starts_since` on.
alter table pawl.tally add column starts float8 not null default 0;
alter table pawl.tally add column starts_at timestamptz;
alter table pawl.tally add column starts_since timestamptz;

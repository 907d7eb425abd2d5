-- oldest: 6
-- What is set for queues, tasks and tenants at run time. `version` is the mark of its last change.
create table pawl.policy (
  kind text not null check (kind in ('queue', 'task', 'tenant')),
  name text collate "C" not null,
  policy json not null,
  version bigint not null,
  primary key (kind, name)
);

-- One row that counts the changes of policies, so that whoever looks for work sees that there was one.
create table pawl.policy_mark (
  only_one bool primary key default true check (only_one),
  mark bigint not null
);

-- The part of policies that claims are held to. A claim of such lanes locks their rows, counts the slots and takes
-- tokens; other claims leave these lanes alone. `tat` is when the bucket of tokens will be full again.
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

alter table pawl.pause drop constraint pause_kind_check;
alter table pawl.pause add constraint pause_kind_check check (kind in ('queue', 'task', 'tenant'));

-- Schedules, and what became of each of their ticks.

-- `next` is the first tick that is not accounted for; `due_at` is when the schedule is to be looked at, null while it is paused or over.
-- `open`: jobs of its ticks that may be unfinished. `declared`: what the code says of a schedule that was changed at run time; null: the
-- same.
create table pawl.schedule (
  id bigint generated always as identity primary key,
  next timestamptz,
  due_at timestamptz,
  created_at timestamptz not null,
  changed_at timestamptz not null,
  undeclared_since timestamptz,
  paused_since timestamptz,
  revision int not null,
  keeps bool not null,
  tenant text collate "C" not null,
  name text collate "C" not null,
  app text collate "C",
  open uuid[] not null default '{}',
  definition json not null,
  declared json,
  unique (tenant, name)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
create index schedule_due_at on pawl.schedule (due_at) where due_at is not null;
create index schedule_app on pawl.schedule (app) where app is not null;
create index schedule_keeps on pawl.schedule (id) where keeps;

-- Ticks that have a job; the index makes it the only one. A tick that a person triggered has a time of its own, which may be that of a
-- regular tick. `dropped`: its job is deleted.
create table pawl.tick (
  schedule bigint not null,
  at timestamptz not null,
  fired_at timestamptz not null,
  job uuid not null,
  merged int not null,
  way text not null check (way in ('fired', 'late', 'triggered', 'backfilled')),
  dropped bool not null default false
);
create unique index tick_once on pawl.tick (schedule, at, (way = 'triggered'));
create index tick_fired_at on pawl.tick (fired_at);

-- Ticks that have no job: one row for those that follow each other.
create table pawl.tick_gap (
  schedule bigint not null,
  from_at timestamptz not null,
  to_at timestamptz not null,
  seen_at timestamptz not null,
  merged_into timestamptz,
  count int not null,
  skipped text
);
create index tick_gap_schedule on pawl.tick_gap (schedule, to_at);
create index tick_gap_seen_at on pawl.tick_gap (seen_at);

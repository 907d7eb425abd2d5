-- oldest: 7
-- What live workers serve. A row is a sign of life: it is believed until its time is over, and says why jobs wait, never
-- who may run them.
create table pawl.serving (
  worker int primary key,
  since timestamptz not null,
  until timestamptz not null,
  serves json not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- Breakers of tenants and tasks that have seen failures. What follows from what is decided in core/breaker.ts, under the
-- row's lock. `until`: when it is forgotten unless somebody reports on it; null if a person forced it.
create table pawl.breaker (
  tenant text collate "C" not null,
  task text collate "C" not null,
  state text not null,
  forced bool not null,
  turn int not null,
  since timestamptz not null,
  probe_at timestamptz,
  step int,
  counts json not null,
  rule json not null,
  until timestamptz,
  primary key (tenant, task)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
create index breaker_standing on pawl.breaker (tenant, task) where state <> 'closed';

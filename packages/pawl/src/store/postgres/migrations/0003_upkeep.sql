-- oldest: 1
-- What keeps the store in shape over years: duties for one process at a time, migrations that move data in batches,
-- and when a worker's boot was last heard of.

-- A duty that must not be done by two at once. `until` frees it where its holder vanished; `progress` says where the
-- next one goes on.
create table pawl.duty (
  name text primary key,
  holder uuid,
  until timestamptz not null,
  progress text
);

-- A migration whose rows are not all moved yet: there from its first step to its last batch.
create table pawl.backfill (
  number int primary key,
  name text not null,
  cursor text,
  moved bigint not null default 0
);

alter table pawl.worker add column seen_at timestamptz not null default now();

-- What keeps the store in shape: duties that one process at a time carries out, and migrations that move rows.

-- `until` frees a duty whose holder vanished; `progress` is where the next one goes on.
create table pawl.duty (
  name text primary key,
  holder uuid,
  until timestamptz not null,
  progress text
);

-- Migrations whose rows are not all moved yet.
create table pawl.backfill (
  number int primary key,
  name text not null,
  cursor text,
  moved bigint not null default 0
);

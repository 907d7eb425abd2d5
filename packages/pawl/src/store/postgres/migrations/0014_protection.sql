-- oldest: 11
-- What protects what jobs hold. A tenant's data keys, each wrapped by a master key that is not in the store: the newest one
-- seals, all of them open, and without their rows nothing that was sealed can be read again.
create table pawl.data_key (
  id text collate "C" primary key,
  tenant text collate "C" not null,
  version int not null,
  master text collate "C" not null,
  wrapped text not null,
  created_at timestamptz not null,
  unique (tenant, version)
);

-- Purges that were asked for and are not done. The job that carries one out knows its id only, so that no name outlives it.
create table pawl.purge (
  id uuid primary key,
  tenant text collate "C" not null,
  asked_at timestamptz not null
);

-- oldest: 11
-- Batches of jobs that were stored under one request id: what became of each of them, for as long as it may be repeated.
-- `fates` has a letter for each job, and is null where all were created; `replaced` are the jobs they took the place of.
create table pawl.batch (
  tenant text collate "C" not null,
  id text collate "C" not null,
  digest text not null,
  until timestamptz not null,
  jobs uuid[],
  fates text,
  replaced uuid[],
  note text,
  primary key (tenant, id)
) with (fillfactor = 50);
create index batch_until on pawl.batch (until);
-- Ids are as good as random: to look for what they have in common costs more than it saves.
alter table pawl.batch alter column jobs set storage external;

-- oldest: 1
-- What is known of tasks to those who have their names and not their code. Written when a process that has the code
-- opens the store, and only where it differs.
create table pawl.task (
  name text collate "C" primary key,
  defaults json not null,
  published_at timestamptz not null
);

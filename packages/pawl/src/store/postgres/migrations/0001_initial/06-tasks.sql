-- Tasks as processes without their code know them, and where jobs are pushed to.

-- Written when a process that has the code opens the store, and only where it differs.
create table pawl.task (
  name text collate "C" primary key,
  defaults json not null,
  published_at timestamptz not null
);

-- The URL that jobs of a task of a tenant are sent to, registered at run time.
create table pawl.target (
  tenant text collate "C" not null,
  task text collate "C" not null,
  url text not null,
  concurrency int not null,
  timeout_ms int not null,
  created_at timestamptz not null,
  changed_at timestamptz not null,
  gone_at timestamptz,
  primary key (tenant, task)
) with (fillfactor = 80);

-- Apart from the targets, so that a role can read those without these. Encrypted. `until` null: the newest one.
create table pawl.target_secret (
  tenant text collate "C" not null,
  task text collate "C" not null,
  secret text not null,
  until timestamptz
);
create index target_secret_of on pawl.target_secret (tenant, task);

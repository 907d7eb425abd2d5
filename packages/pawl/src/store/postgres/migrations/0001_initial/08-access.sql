-- Who may do what, and who did: API keys, the audit log, answers kept for idempotency keys, keys that encrypt, purges.

-- `tenant` null: the key acts for the whole store. Rows are never removed: the audit log speaks of them.
create table pawl.api_key (
  id text collate "C" primary key,
  tenant text collate "C",
  name text not null,
  grants json not null,
  created_at timestamptz not null,
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz
) with (fillfactor = 80);
create index api_key_tenant on pawl.api_key (tenant, created_at desc, id desc);

-- Apart from the keys, so that a role can read those without these. `until` null: the newest one. `pepper` tells which pepper the digest was
-- made with, and nothing of it.
create table pawl.api_secret (
  key text collate "C" not null,
  digest text collate "C" not null,
  pepper text collate "C",
  until timestamptz,
  primary key (key, digest)
);

-- One row that counts rotations and revocations, so that a process which knows some keys need not ask for each again.
create table pawl.api_key_version (
  only_one bool primary key default true check (only_one),
  version bigint not null
) with (fillfactor = 50);
insert into pawl.api_key_version (version) values (0);

-- How a process that must not read digests asks for one: whether this key has it, and until when.
create function pawl.is_api_secret_valid(key_id text, presented text) returns table (until timestamptz)
  language sql stable security definer set search_path = ''
  as 'select s.until from pawl.api_secret s where s.key = key_id and s.digest = presented';

-- Append only. `body` is the entry in canonical form; the generated columns are read out of it, and cannot differ. `tenant` is empty for the
-- chain of the store as a whole. `at` is ms.
create table pawl.audit (
  tenant text collate "C" not null,
  seq bigint not null,
  at bigint not null,
  id uuid not null,
  body text not null,
  prev text not null,
  hash text not null,
  actor text collate "C" generated always as (body::jsonb->>'actor') stored,
  action text collate "C" generated always as (body::jsonb->>'action') stored,
  outcome text collate "C" generated always as (body::jsonb->>'outcome') stored,
  subject text collate "C" generated always as (body::jsonb->>'subject') stored,
  primary key (tenant, seq),
  unique (tenant, id)
);
create index audit_actor on pawl.audit (tenant, actor, seq);
create index audit_action on pawl.audit (tenant, action, seq);
create index audit_subject on pawl.audit (tenant, subject, seq) where subject is not null;

-- The newest entry of each chain. An append locks the row, so that a chain has one end.
create table pawl.audit_head (
  tenant text collate "C" primary key,
  seq bigint not null,
  at bigint not null,
  prev text not null,
  hash text not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

create function pawl.append_only() returns trigger language plpgsql
  as 'begin raise exception ''the audit log is append only'' using errcode = ''insufficient_privilege''; end';
create trigger append_only before update or delete or truncate on pawl.audit for each statement execute function pawl.append_only();
create trigger append_only before delete or truncate on pawl.audit_head for each statement execute function pawl.append_only();

-- Answers to requests with an idempotency key. `tenant` is empty for a credential of the whole store. Until it has a status, `until` is when
-- its request is taken for dead; then, when it is deleted.
create table pawl.reply (
  tenant text collate "C" not null,
  credential text collate "C" not null,
  key text collate "C" not null,
  hash text not null,
  token uuid not null,
  until timestamptz not null,
  status int,
  body text,
  headers json,
  primary key (tenant, credential, key)
);
create index reply_until on pawl.reply (until);

-- A tenant's data keys, each encrypted by a master key that is not in the store. The newest one encrypts, all of them decrypt, and without
-- their rows nothing that was encrypted can be read again.
create table pawl.data_key (
  id text collate "C" primary key,
  tenant text collate "C" not null,
  version int not null,
  master text collate "C" not null,
  wrapped text not null,
  created_at timestamptz not null,
  unique (tenant, version)
);

-- Purges of tenants that are not done. The job that carries one out knows its id only, so that no tenant's name outlives it.
create table pawl.purge (
  id uuid primary key,
  tenant text collate "C" not null,
  requested_at timestamptz not null
);

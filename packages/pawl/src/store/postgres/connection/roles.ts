import { checkSchemaName, invalid } from "../../../core/values/option.js";

/** Tables with a column `tenant` whose rows a tenant may be shown. */
const OF_TENANTS = [
  ...["job", "job_kept", "ready", "suspect", "scheduled", "parked", "blocked", "dead"],
  ...["schedule", "target", "api_key", "audit", "audit_head", "breaker"],
];
/** Rows that are whose job they are of, by its id. The jobs of a row of history are of one lane. */
const OF_JOBS: Readonly<Record<string, string>> = {
  history: "first",
  history_kept: "first",
  log: "job",
  log_kept: "job",
  intent: "job",
  dependency: "child",
};
const OF_SCHEDULES = ["tick", "tick_gap"];
const VIEWS = ["any_job", "any_attempt", "any_log"];

/** All tables that the tenant role (tenant-role.ts) shows a part of. */
export const TENANT_TABLES: readonly string[] = [...OF_TENANTS, ...Object.keys(OF_JOBS), ...OF_SCHEDULES];

/** By which a transaction names its tenant, for itself alone, so that it holds through a pooler. */
export const TENANT_SETTING = "pawl.tenant";
/** Once a connection has had the setting, it is empty instead of absent; and the audit of the whole store has no tenant. */
const TENANT = `nullif(current_setting('${TENANT_SETTING}', true), '')`;

export function tenantRole(schema: string): string {
  return `${schema}_tenant`;
}

/** `${schema}_readonly` has to fit into a name of Postgres, which would cut it. */
const LONGEST_SCHEMA = 63 - "_readonly".length;

/**
 * The roles of the database, as a script: docs/access.md has the commands. Run as the owner of the schema, or as a superuser,
 * after every migration; again changes nothing. What it needs is checked by its first statement, which says what is missing
 * before anything is changed.
 *
 * - the owner migrates and does maintenance, which makes and drops partitions;
 * - `pawl_engine` runs APIs and workers: it changes rows, never tables, reads no digest of a secret, and can only append
 *   to the audit log;
 * - `pawl_readonly` reads everything but digests;
 * - `pawl_tenant` reads the rows of the tenant that its transaction names, and without a name none. The others act as it
 *   where they read for one tenant.
 */
export function rolesScript(schema = "pawl"): string {
  checkSchemaName("schema", schema);
  if (schema.length > LONGEST_SCHEMA) throw invalid("schema", `its roles need a name of at most ${LONGEST_SCHEMA} characters`);
  const [engine, readonly, tenant] = [`${schema}_engine`, `${schema}_readonly`, tenantRole(schema)];
  return `${[
    needs(schema, [engine, readonly, tenant], tenant),
    ...[engine, readonly, tenant].map(
      (role) =>
        `do $$ begin if not exists (select from pg_roles where rolname = '${role}') then create role ${role} nologin nosuperuser nobypassrls nocreatedb nocreaterole; end if; end $$`,
    ),
    // Before the policies: where these are there, whoever opens the store counts on being able to act as the tenant's role.
    asOwner(schema, `${missingMembers(engine, tenant)} if members is not null then execute format('grant ${tenant} to %s', members); end if;`),
    `grant usage on schema ${schema} to ${engine}, ${readonly}, ${tenant}`,
    `revoke create on schema ${schema} from public`,
    `grant select, insert, update, delete on all tables in schema ${schema} to ${engine}`,
    `grant usage, select on all sequences in schema ${schema} to ${engine}`,
    `grant select on all tables in schema ${schema} to ${readonly}`,
    // What migrations and maintenance make later: they are run by the owner, whoever runs this.
    ...[
      `grant select, insert, update, delete on tables to ${engine}`,
      `grant usage, select on sequences to ${engine}`,
      `grant select on tables to ${readonly}`,
    ].map((grant) => asOwner(schema, `execute format('alter default privileges for role %I in schema ${schema} ${grant}', owner);`)),
    ...digests(schema, engine, readonly),
    // Encrypted, but nobody who only reads needs them.
    `revoke all on ${schema}.target_secret from ${readonly}`,
    // Who knows the name of a worker's channel could tell it to run anything.
    `revoke all on ${schema}.idle_worker from ${readonly}`,
    `revoke update, delete, truncate on ${schema}.audit from ${engine}`,
    `revoke delete, truncate on ${schema}.audit_head from ${engine}`,
    `revoke insert, update, delete on ${schema}.migration from ${engine}`,
    ...tenantPolicies(schema, [engine, readonly], tenant),
  ].join(";\n")};\n`;
}

/** Left to itself, psql goes on after an error and ends with 0: half of the roles would look like all of them. */
export function rolesScriptForPsql(schema?: string): string {
  return `\\set ON_ERROR_STOP on\n${rolesScript(schema)}`;
}

/** A step that knows who owns the schema. */
function asOwner(schema: string, body: string): string {
  return `do $$ declare
  owner text := (select r.rolname from pg_namespace n join pg_roles r on r.oid = n.nspowner where n.nspname = '${schema}');
  members text;
begin ${body} end $$`;
}

/**
 * Sets `members` to those that cannot act as the tenant's role yet, ready to be granted it. Since Postgres 16, whoever made a role
 * may be a member of it without being able to act as it.
 */
function missingMembers(engine: string, tenant: string): string {
  const may = "case when current_setting('server_version_num')::int < 160000 then 'member' else 'set' end";
  return `select string_agg(format('%I', m.role), ', ' order by m.place) into members from (values (1, '${engine}'), (2, owner)) m(place, role)
    left join pg_roles r on r.rolname = m.role left join pg_roles t on t.rolname = '${tenant}'
    where r.oid is null or t.oid is null or not pg_has_role(r.oid, t.oid, ${may});`;
}

/** What the rest of the script takes for granted. Each refusal says what is missing, and its hint what to do. */
function needs(schema: string, roles: readonly string[], tenant: string): string {
  const refuse = (words: string, values: string, hint: string) => `raise exception '${words}'${values} using hint = ${hint};`;
  const again = "format('run this as a superuser, or first: ";
  return `do $$ declare
  owner text := (select r.rolname from pg_namespace n join pg_roles r on r.oid = n.nspowner where n.nspname = '${schema}');
  super boolean := (select rolsuper from pg_roles where rolname = current_user);
  creates boolean := (select rolsuper or rolcreaterole from pg_roles where rolname = current_user);
  missing text;
  members text;
begin
  if owner is null then
    ${refuse(`there is no schema ${schema} in the database %`, ", current_database()", "'connect to the database of the store, and run pawl migrate there before this'")}
  end if;
  select r.rolname into missing from pg_class c join pg_roles r on r.oid = c.relowner
    where c.relnamespace = '${schema}'::regnamespace and c.relkind in ('r', 'p', 'v', 'S') and not pg_has_role(c.relowner, 'usage') limit 1;
  if not pg_has_role(owner, 'usage') then missing := owner; end if;
  if missing is not null then
    ${refuse(`% owns the schema ${schema}, and % does not act for it`, ", missing, current_user", "format('run this as %I, or as a superuser', missing)")}
  end if;
  select string_agg(t.name, ', ') into missing from unnest('{${[...TENANT_TABLES, "worker", "target_secret", "idle_worker", "api_secret", "migration"].join(",")}}'::text[]) t(name)
    where to_regclass('${schema}.' || t.name) is null;
  if missing is not null then
    ${refuse(`the schema ${schema} has no table %`, ", missing", "'it is behind this release, or not a store: run pawl migrate before this'")}
  end if;
  select string_agg(n.name, ', ' order by n.place) into missing from unnest('{${roles.join(",")}}'::text[]) with ordinality n(name, place)
    where not exists (select from pg_roles r where r.rolname = n.name);
  if missing is not null and not creates then
    ${refuse("the role % may not create roles, and there is no %", ", current_user, missing", `${again}alter role %I createrole', current_user)`)}
  end if;
  ${missingMembers(roles[0] as string, tenant)}
  if members is not null and exists (select from pg_roles where rolname = '${tenant}') and not super
    and not (creates and current_setting('server_version_num')::int < 160000) and not pg_has_role('${tenant}', 'member with admin option') then
    ${refuse(`the role % may not grant ${tenant} to %`, ", current_user, members", `${again}grant ${tenant} to %s', members)`)}
  end if;
end $$`;
}

/** Who checks a secret asks whether it is one; the digests themselves are the owner's. */
function digests(schema: string, engine: string, readonly: string): readonly string[] {
  const secrets = `${schema}.api_secret`;
  return [
    `revoke all on ${secrets} from ${engine}, ${readonly}`,
    `grant select (key, until, pepper), insert, update (until), delete on ${secrets} to ${engine}`,
    `revoke execute on function ${schema}.is_api_secret_valid(text, text) from public`,
    `grant execute on function ${schema}.is_api_secret_valid(text, text) to ${engine}`,
  ];
}

/**
 * What a tenant may see of each table. Those that have no tenant ask for their job by its id, which is under the policy of
 * jobs itself: as a scalar, since an `exists` may be planned as a scan of all jobs.
 */
function tenantPolicies(schema: string, all: readonly string[], tenant: string): readonly string[] {
  const job = (of: string) => ["job", "job_kept"].map((table) => `(select true from ${schema}.${table} j where j.id = ${of})`).join(", ");
  return [
    ...OF_TENANTS.map((table) => policies(table, `tenant = ${TENANT}`)),
    ...Object.entries(OF_JOBS).map(([table, column]) => policies(table, `coalesce(${job(`${table}.${column}`)})`)),
    ...OF_SCHEDULES.map((table) => policies(table, `(select true from ${schema}.schedule s where s.id = ${table}.schedule)`)),
    `grant select on ${[...TENANT_TABLES, ...VIEWS].map((name) => `${schema}.${name}`).join(", ")} to ${tenant}`,
    // Whose handler ran a job is told with its history.
    `grant select (id, name) on ${schema}.worker to ${tenant}`,
  ];

  /**
   * In one step, table by table: without a policy nobody but the owner would see a row, and whoever uses the table waits
   * meanwhile. Where it is done (the comment says as what) nobody waits.
   */
  function policies(table: string, visible: string): string {
    const name = `${schema}.${table}`;
    return `do $$ begin
  if exists (select from pg_policy where polrelid = '${name}'::regclass and polname = 'own' and obj_description(oid, 'pg_policy') = $v$${visible}$v$) then return; end if;
  -- Without a notice for each that is not there.
  perform set_config('client_min_messages', 'warning', true);
  alter table ${name} enable row level security;
  drop policy if exists everything on ${name};
  drop policy if exists own on ${name};
  create policy everything on ${name} to ${all.join(", ")} using (true) with check (true);
  create policy own on ${name} for select to ${tenant} using (${visible});
  comment on policy own on ${name} is $v$${visible}$v$;
end $$`;
  }
}

/** Tables with a column `tenant` whose rows a tenant may be shown. */
const OF_TENANTS = [
  ...["job", "job_kept", "ready", "suspect", "parcel", "scheduled", "parked", "blocked", "dead"],
  ...["schedule", "target", "api_key", "audit", "audit_head", "breaker"],
];
/** Rows that are whose job they are of, by its id. The jobs of a bundle are of one lane. */
const OF_JOBS: Readonly<Record<string, string>> = {
  attempt: "job",
  attempt_kept: "job",
  log: "job",
  log_kept: "job",
  bundle: "first",
  intent: "job",
  dependency: "child",
};
const OF_SCHEDULES = ["tick", "tick_gap"];
const VIEWS = ["any_job", "any_attempt", "any_log"];

/** All tables that the wall (wall.ts) shows a part of. */
export const WALLED: readonly string[] = [...OF_TENANTS, ...Object.keys(OF_JOBS), ...OF_SCHEDULES];

/** By which a transaction names its tenant, for itself alone, so that it holds through a pooler. */
export const TENANT_SETTING = "pawl.tenant";
/** Once a connection has had the setting, it is empty instead of absent; and the audit of the whole store has no tenant. */
const TENANT = `nullif(current_setting('${TENANT_SETTING}', true), '')`;

export function tenantRole(schema: string): string {
  return `${schema}_tenant`;
}

/**
 * The roles of the database, as a script for whoever may create roles: `pawl migrate --roles | psql`. Run as the owner of
 * the schema, after every migration; again changes nothing.
 *
 * - the owner migrates and does maintenance, which makes and drops partitions;
 * - `pawl_engine` runs APIs and workers: it changes rows, never tables, reads no digest of a secret, and can only append
 *   to the audit log;
 * - `pawl_readonly` reads everything but digests;
 * - `pawl_tenant` reads the rows of the tenant that its transaction names, and without a name none. The others act as it
 *   where they read for one tenant.
 */
export function rolesScript(schema = "pawl"): string {
  const [engine, readonly, tenant] = [`${schema}_engine`, `${schema}_readonly`, tenantRole(schema)];
  return `${[
    ...[engine, readonly, tenant].map(
      (role) =>
        `do $$ begin if not exists (select from pg_roles where rolname = '${role}') then create role ${role} nologin nosuperuser nobypassrls nocreatedb nocreaterole; end if; end $$`,
    ),
    `grant usage on schema ${schema} to ${engine}, ${readonly}, ${tenant}`,
    `revoke create on schema ${schema} from public`,
    `grant select, insert, update, delete on all tables in schema ${schema} to ${engine}`,
    `grant usage, select on all sequences in schema ${schema} to ${engine}`,
    `grant select on all tables in schema ${schema} to ${readonly}`,
    // What migrations and maintenance make later, if they are run by whoever runs this.
    `alter default privileges in schema ${schema} grant select, insert, update, delete on tables to ${engine}`,
    `alter default privileges in schema ${schema} grant usage, select on sequences to ${engine}`,
    `alter default privileges in schema ${schema} grant select on tables to ${readonly}`,
    ...digests(schema, engine, readonly),
    // Sealed, but nobody who only reads needs them.
    `revoke all on ${schema}.target_secret from ${readonly}`,
    // Who knows the name of a worker's channel could tell it to run anything.
    `revoke all on ${schema}.seat from ${readonly}`,
    `revoke update, delete, truncate on ${schema}.audit from ${engine}`,
    `revoke delete, truncate on ${schema}.audit_head from ${engine}`,
    `revoke insert, update, delete on ${schema}.migration from ${engine}`,
    ...wall(schema, [engine, readonly], tenant),
    `grant ${tenant} to ${engine}, current_user`,
  ].join(";\n")};\n`;
}

/** Who checks a secret asks whether it is one; the digests themselves are the owner's. */
function digests(schema: string, engine: string, readonly: string): readonly string[] {
  const secrets = `${schema}.api_secret`;
  return [
    `revoke all on ${secrets} from ${engine}, ${readonly}`,
    `grant select (key, until), insert, update (until), delete on ${secrets} to ${engine}`,
    `revoke execute on function ${schema}.api_secret_good(text, text) from public`,
    `grant execute on function ${schema}.api_secret_good(text, text) to ${engine}`,
  ];
}

/**
 * What a tenant may see of each table. Those that have no tenant ask for their job by its id, which is under the policy of
 * jobs itself: as a scalar, since an `exists` may be planned as a scan of all jobs.
 */
function wall(schema: string, all: readonly string[], tenant: string): readonly string[] {
  const job = (of: string) => ["job", "job_kept"].map((table) => `(select true from ${schema}.${table} j where j.id = ${of})`).join(", ");
  return [
    ...OF_TENANTS.map((table) => policies(table, `tenant = ${TENANT}`)),
    ...Object.entries(OF_JOBS).map(([table, column]) => policies(table, `coalesce(${job(`${table}.${column}`)})`)),
    ...OF_SCHEDULES.map((table) => policies(table, `(select true from ${schema}.schedule s where s.id = ${table}.schedule)`)),
    `grant select on ${[...WALLED, ...VIEWS].map((name) => `${schema}.${name}`).join(", ")} to ${tenant}`,
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
  alter table ${name} enable row level security;
  drop policy if exists everything on ${name};
  drop policy if exists own on ${name};
  create policy everything on ${name} to ${all.join(", ")} using (true) with check (true);
  create policy own on ${name} for select to ${tenant} using (${visible});
  comment on policy own on ${name} is $v$${visible}$v$;
end $$`;
  }
}

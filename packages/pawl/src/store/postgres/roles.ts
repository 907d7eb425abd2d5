/** Tables with a column `tenant` whose rows a tenant may be shown. */
const OF_TENANTS = ["job", "job_kept", "schedule", "api_key", "audit", "audit_head", "breaker"] as const;

/**
 * The roles of the database, as a script for whoever may create roles: `pawl migrate --roles | psql`. Run as the owner of
 * the schema, after every migration; again changes nothing.
 *
 * - the owner migrates and does maintenance, which makes and drops partitions;
 * - `pawl_engine` runs APIs and workers: it changes rows, never tables, reads no digest of a secret, and can only append
 *   to the audit log;
 * - `pawl_readonly` reads everything but digests;
 * - `pawl_tenant` reads the rows of the tenant that its transaction names, and without a name none.
 */
export function rolesScript(schema = "pawl"): string {
  const [engine, readonly, tenant] = ["engine", "readonly", "tenant"].map((role) => `${schema}_${role}`) as [string, string, string];
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
    `revoke update, delete, truncate on ${schema}.audit from ${engine}`,
    `revoke delete, truncate on ${schema}.audit_head from ${engine}`,
    `revoke insert, update, delete on ${schema}.migration from ${engine}`,
    ...rows(schema, [engine, readonly], tenant),
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

/** By the transaction's own setting, so that it holds through a pooler: `set_config('pawl.tenant', $1, true)`. */
function rows(schema: string, all: readonly string[], tenant: string): readonly string[] {
  return OF_TENANTS.flatMap((table) => {
    const name = `${schema}.${table}`;
    return [
      `alter table ${name} enable row level security`,
      `drop policy if exists everything on ${name}`,
      `drop policy if exists own on ${name}`,
      `create policy everything on ${name} to ${all.join(", ")} using (true) with check (true)`,
      `create policy own on ${name} for select to ${tenant} using (tenant = current_setting('pawl.tenant', true))`,
      `grant select on ${name} to ${tenant}`,
    ];
  });
}

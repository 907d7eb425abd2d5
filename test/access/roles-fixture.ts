import { randomBytes } from "node:crypto";
import pg from "pg";
import { type EnqueueOptions, NonRetryable, type OpenOptions, open, type Pawl, task } from "../../packages/pawl/src/index.js";
import { startPawl } from "../../packages/pawl/src/pawl.js";
import { serviceOf } from "../../packages/pawl/src/service.js";
import { rolesScript } from "../../packages/pawl/src/store/postgres/connection/roles.js";
import type { Driver, DriverTransaction, Queryable, Statement } from "../../packages/pawl/src/store/postgres/drivers/driver.js";
import { pgDriver } from "../../packages/pawl/src/store/postgres/drivers/pg.js";
import { finish } from "../../packages/pawl/src/store/postgres/open.js";
import { type Address, type Database, freshDatabase, type ServerName } from "../support/servers/servers.js";

export const KEYS = { pepper: "a pepper of sixteen bytes or more" };
export const TENANTS = ["acme", "umbrella"] as const;
export type Tenant = (typeof TENANTS)[number];

/** A job of each kind, a schedule and a key. All that a tenant's holds says whose it is. */
export interface TenantData {
  readonly jobs: Readonly<Record<"ready" | "scheduled" | "succeeded" | "dead" | "parent" | "blocked", string>>;
  readonly key: string;
}

/** Its second job waits for the first, which nobody runs. */
const narrow = task("narrow", { limits: [{ key: (input) => input, concurrency: 1 }] }, async (_: string) => {});

/**
 * A database with roles, jobs of two tenants made by its owner, and a login for an API. Roles belong to the whole server,
 * which other tests share: a schema of its own gives them names of their own.
 */
export class RolesFixture implements AsyncDisposable {
  readonly login: string;
  private constructor(
    readonly database: Database,
    readonly schema: string,
    readonly owner: pg.Client,
  ) {
    this.login = `${schema}_login`;
    owner.on("error", () => {});
  }

  static async open(on: ServerName): Promise<RolesFixture> {
    const database = await freshDatabase(on);
    const schema = `roles_${randomBytes(4).toString("hex")}`;
    await (await open(database.directUrl, { postgres: { schema }, maintenance: false })).close();
    const owner = new pg.Client(database.directConfig);
    await owner.connect();
    const fixture = new RolesFixture(database, schema, owner);
    await owner.query(rolesScript(schema));
    await owner.query(`create role ${fixture.login} login in role ${schema}_engine`);
    return fixture;
  }

  /** `pawl.` in a text is this site's schema. */
  sql(text: string): string {
    return text.replace(/\bpawl\.(?!tenant)/g, `${this.schema}.`);
  }

  async fill(): Promise<Readonly<Record<Tenant, TenantData>>> {
    const fine = task("fine", async (input: string, ctx) => {
      ctx.log.info(input);
      return input;
    });
    const bad = task("bad", async (input: string) => {
      throw new NonRetryable(input);
    });
    const pawl = await open(this.database.directUrl, {
      ...{ postgres: { schema: this.schema }, maintenance: false, apiKeys: KEYS, allowUnknownTasks: true, tasks: [fine, bad] },
    });
    try {
      await serviceOf(pawl).audit.record({ actor: "key:a", action: "jobs.control", outcome: "allowed" });
      await serviceOf(pawl).apiKeys.create({ name: "whole", grants: [{ role: "viewer" }] });
      const made = await Promise.all(TENANTS.map((tenant) => this.#fillFor(pawl, tenant)));
      await pawl.work({ concurrency: 2 });
      for (const { jobs } of made) for (const job of [jobs.succeeded, jobs.dead]) await pawl.jobs.wait(job, "60s");
      return { acme: made[0] as TenantData, umbrella: made[1] as TenantData };
    } finally {
      await pawl.close();
    }
  }

  async #fillFor(pawl: Pawl, tenant: Tenant): Promise<TenantData> {
    const secret = `secret of ${tenant}`;
    const add = async (task: string, more: EnqueueOptions = {}) => (await pawl.enqueue(task, secret, { tenant, ...more })).id;
    const ready = await add("nobody's");
    const jobs = {
      ...{ ready, scheduled: await add("fine", { delay: "1h" }), succeeded: await add("fine"), dead: await add("bad") },
      ...{ parent: ready, blocked: await add("fine", { dependsOn: [ready] }) },
    };
    await pawl.schedules.put("nightly", "fine", { tenant, cron: "0 3 * * *", input: secret });
    await pawl.schedules.put(`only-${tenant[0]}`, "fine", { tenant, cron: "0 3 * * *", input: secret });
    await pawl.schedules.trigger({ name: `only-${tenant[0]}`, tenant });
    await pawl.breakers.open({ tenant, task: "other" });
    for (let place = 0; place < 2; place++) await pawl.enqueue(narrow, secret, { tenant });
    await serviceOf(pawl).audit.record({ tenant, actor: `key:of ${tenant}`, action: "jobs.control", outcome: "allowed" });
    const { key } = await serviceOf(pawl).apiKeys.create({ name: secret, tenant, grants: [{ role: "viewer" }] });
    return { jobs, key: key.id };
  }

  /** What an API has: the engine's role, and whatever is done to its statements. */
  async api(
    change: (driver: Driver) => Driver = (driver) => driver,
    { address = this.database.directConfig, ...options }: OpenOptions & { readonly address?: Address } = {},
  ): Promise<Pawl> {
    const config = { ...address, database: this.database.name, user: this.login, max: 4 };
    const driver = change(
      pgDriver({ config, listenConfig: { ...this.database.directConfig, user: this.login }, prepare: "auto", statementTimeout: 60_000 }),
    );
    const store = await finish(driver, { engine: "postgres", place: "test", durability: "process" }, { schema: this.schema, migrate: false });
    return startPawl(store, { maintenance: false, apiKeys: KEYS, allowUnknownTasks: true, ...options });
  }

  /** What a role may do, or the code of what it is told. */
  async as(role: string, ...texts: readonly string[]): Promise<string | number> {
    await this.owner.query("begin");
    try {
      await this.owner.query(`set local role ${this.schema}_${role}`);
      let rows = 0;
      for (const text of texts) rows = (await this.owner.query(this.sql(text))).rowCount ?? 0;
      return rows;
    } catch (error) {
      return (error as { code: string }).code;
    } finally {
      await this.owner.query("rollback");
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.database.drop();
    const { directConfig } = this.database;
    await this.owner.end().catch(() => {});
    const admin = new pg.Client({ ...directConfig, database: "postgres" });
    await admin.connect();
    for (const role of [this.login, ...["engine", "readonly", "tenant"].map((name) => `${this.schema}_${name}`)])
      await admin.query(`drop role if exists ${role}`);
    await admin.end();
  }
}

/** A driver each of whose statements is changed first. */
export function rewritingStatements(change: (statement: Statement) => Statement): (driver: Driver) => Driver {
  const on = <Q extends Queryable>(inner: Q): Q => ({
    ...inner,
    query: (statement: Statement, values?: readonly unknown[]) => inner.query(change(statement), values),
  });
  return (driver) => ({
    ...on(driver),
    transaction: (work) => driver.transaction((tx: DriverTransaction) => work(on(tx))),
    reading: (work) => driver.reading((one) => work(on(one))),
  });
}

/** The conditions on tenants that reads have. (What `find` holds against its scope is what the facts say.) */
const CONDITIONS: readonly (readonly [RegExp, string])[] = [
  [/j\.tenant, j\.task, j\.input/g, "current_setting('pawl.tenant', true) as tenant, j.task, j.input"],
  [/\((\$\d+)::text is null or (?:\w+\.)?tenant = \1\)/g, "($1::text is null or true)"],
  [/\btenant = (\$\d+)(?!\d)/g, "$1::text is not null"],
  [/p\.limit_key >= \$1 and p\.limit_key < \$2/g, "$1::text is not null and $2::text is not null"],
  [/p\.limit_key > l\.limit_key and p\.limit_key < \$2/g, "p.limit_key > l.limit_key"],
];

/** Every read without its conditions on tenants; without the tenant role too, as if there were no roles, facts claim to be acme's. */
export function withoutTenantConditions({ tenantRole }: { readonly tenantRole: boolean }): (driver: Driver) => Driver {
  return rewritingStatements((statement) => {
    if (!/^(select|with)\b/.test(statement.text)) return statement;
    if (!tenantRole && statement.name.endsWith("find_tenant_role")) return { ...statement, text: "select 0 as tables, $1::text, $2::text, $3::text" };
    const text = CONDITIONS.reduce((left, [condition, instead]) => left.replace(condition, instead), statement.text);
    return { ...statement, text: tenantRole ? text : text.replaceAll("current_setting('pawl.tenant', true) as tenant", "'acme'::text as tenant") };
  });
}

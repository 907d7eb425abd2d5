import { randomBytes } from "node:crypto";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { open, type Pawl, task } from "../../packages/pawl/src/index.js";
import { rolesScript } from "../../packages/pawl/src/store/postgres/roles.js";
import { type Database, describeOn, freshDatabase, type ServerName, urlOf } from "../support/servers.js";

const KEYS = { pepper: "a pepper of sixteen bytes or more" };
// Roles belong to the whole server, which other tests share: a schema of this test's own gives them names of their own.
const SCHEMA = `roles_${randomBytes(4).toString("hex")}`;
const LOGIN = `${SCHEMA}_login`;

/** A database with jobs of two tenants, made by its owner. */
class Site {
  private constructor(
    readonly database: Database,
    readonly owner: pg.Client,
    readonly jobs: Readonly<Record<string, string>>,
  ) {}

  static async open(on: ServerName): Promise<Site> {
    const database = await freshDatabase(on);
    const pawl = await open(database.directUrl, { postgres: { schema: SCHEMA }, maintenance: false, keys: KEYS, anyTask: true });
    const jobs: Record<string, string> = {};
    for (const tenant of ["acme", "umbrella"]) {
      for (let n = 0; n < 50; n++) jobs[tenant] = (await pawl.enqueue("t", `secret of ${tenant}`, { tenant })).id;
      await pawl.audit.record({ tenant, actor: "key:a", action: "jobs.control", outcome: "allowed" });
      await pawl.keys.create({ name: "k", tenant, grants: [{ role: "viewer" }] });
    }
    await pawl.close();
    const owner = new pg.Client(database.directConfig);
    await owner.connect();
    const script = rolesScript(SCHEMA);
    await owner.query(script);
    await owner.query(script);
    await owner.query(`create role ${LOGIN} login in role ${SCHEMA}_engine`);
    return new Site(database, owner, jobs);
  }

  /** What a role may do, or the code of what it is told. */
  async as(role: string, ...texts: readonly string[]): Promise<string | number> {
    await this.owner.query("begin");
    try {
      await this.owner.query(`set local role ${SCHEMA}_${role}`);
      let rows = 0;
      for (const text of texts) rows = (await this.owner.query(text.replace(/\bpawl\.(?!tenant)/g, `${SCHEMA}.`))).rowCount ?? 0;
      return rows;
    } catch (error) {
      return (error as { code: string }).code;
    } finally {
      await this.owner.query("rollback");
    }
  }

  async close(): Promise<void> {
    await this.database.drop();
    const { directConfig } = this.database;
    await this.owner.end().catch(() => {});
    const admin = new pg.Client({ ...directConfig, database: "postgres" });
    await admin.connect();
    for (const role of [LOGIN, ...["engine", "readonly", "tenant"].map((name) => `${SCHEMA}_${name}`)])
      await admin.query(`drop role if exists ${role}`);
    await admin.end();
  }
}

const DENIED = "42501";

for (const server of ["embedded18", "debian15"] as const) {
  describeOn(server, () => {
    let site: Site;
    beforeAll(async () => {
      site = await Site.open(server);
      site.owner.on("error", () => {});
    });
    afterAll(() => site?.close());

    test("the engine's role changes rows, and never tables (S84)", async () => {
      for (const ddl of ["drop table pawl.job", "alter table pawl.job add column x int", "create table pawl.x (a int)", "truncate pawl.ready"])
        expect([ddl, await site.as("engine", ddl)]).toEqual([ddl, DENIED]);
      expect(await site.as("engine", "delete from pawl.migration")).toBe(DENIED);
      expect(await site.as("engine", "select from pawl.job")).toBe(100);
    });

    test("nobody but the owner reads the digest of a secret (S84)", async () => {
      for (const role of ["engine", "readonly", "tenant"]) {
        expect(await site.as(role, "select digest from pawl.api_secret")).toBe(DENIED);
        expect(await site.as(role, "select * from pawl.api_secret")).toBe(DENIED);
      }
      expect(await site.as("readonly", "select from pawl.api_secret_good('a', 'b')")).toBe(DENIED);
      expect(await site.as("readonly", "select id, name from pawl.api_key")).toBe(2);
    });

    test("the audit log is append only: by its grants for the roles, by its triggers for its owner (S70)", async () => {
      for (const change of [
        "update pawl.audit set body = body",
        "delete from pawl.audit",
        "truncate pawl.audit",
        "delete from pawl.audit_head",
        "truncate pawl.audit_head",
      ]) {
        expect([change, await site.as("engine", change)]).toEqual([change, DENIED]);
        await expect(site.owner.query(change.replaceAll("pawl.", `${SCHEMA}.`)), change).rejects.toMatchObject({
          message: "the audit log is append only",
          code: DENIED,
        });
      }
      expect(await site.as("engine", "select from pawl.audit")).toBe(2);
    });

    test("a tenant's reader sees the rows of the tenant its transaction names, and without one none (S18)", async () => {
      for (const table of ["job", "api_key", "audit"]) {
        expect(await site.as("tenant", `select from pawl.${table}`)).toBe(0);
        const named = (tenant: string) => site.as("tenant", `select set_config('pawl.tenant', '${tenant}', true)`, `select from pawl.${table}`);
        expect(await named("acme")).toBe(table === "job" ? 50 : 1);
        expect(await named("nobody")).toBe(0);
      }
      expect(await site.as("tenant", "select from pawl.ready")).toBe(DENIED);
      expect(await site.as("tenant", "update pawl.job set task = 'x'")).toBe(DENIED);
    });

    test("a look by id uses the index it used without the policy (S18)", async () => {
      const plan = async (role: string) => {
        await site.owner.query("begin");
        await site.owner.query(`set local role ${SCHEMA}_${role}`);
        await site.owner.query("select set_config('pawl.tenant', 'acme', true)");
        const { rows } = await site.owner.query(`explain (costs off) select input from ${SCHEMA}.job where id = '${site.jobs.acme}'`);
        await site.owner.query("rollback");
        return rows.map((row) => row["QUERY PLAN"] as string).filter((line) => /Scan|Index Cond/.test(line));
      };
      expect(await plan("tenant")).toEqual(await plan("readonly"));
      expect((await plan("tenant")).join()).toMatch(/Index/);
    });

    test("an API and a worker run as the engine's role: enqueue, claim, settle, keys, audit, replies", async () => {
      const { directConfig, name } = site.database;
      const url = urlOf({ ...directConfig, user: LOGIN }, name);
      const done = task("done", async (input: number) => input + 1);
      const pawl: Pawl = await open(url, { postgres: { schema: SCHEMA }, migrate: false, maintenance: false, keys: KEYS, tasks: [done] });
      try {
        await pawl.work({ concurrency: 2 });
        expect(await (await pawl.enqueue(done, 1, { tenant: "acme" })).result({ timeout: "60s" })).toBe(2);
        const later = await pawl.enqueue(done, 1, { delay: "1h", key: "k" });
        await later.cancel();
        const { key, text } = await pawl.keys.create({ name: "new", grants: [{ role: "viewer" }] });
        expect((await pawl.keys.verify(text)).ok).toBe(true);
        const rotated = await pawl.keys.rotate(key.id);
        expect((await pawl.keys.verify(rotated.text)).ok).toBe(true);
        await pawl.keys.revoke(key.id);
        await pawl.audit.record({ tenant: "acme", actor: "key:a", action: "keys.write", outcome: "denied" });
        expect((await pawl.audit.verify()).ok).toBe(true);
        const turn = await pawl.replies.begin({ tenant: "acme", credential: "a", key: "k", hash: "h" });
        expect(turn.kind === "begun" && (await turn.finish({ status: 200, body: "", headers: {} }))).toBe("kept");
        await pawl.tenants.set("acme", { weight: 2 });
        await pawl.queues.pause("default");
        await pawl.queues.resume("default");
      } finally {
        await pawl.close();
      }
    });
  });
}

describeOn("pgbouncer", () => {
  test("two tenants' readers that share one pooled connection never see each other's rows (S18)", async () => {
    const site = await Site.open("pgbouncer");
    try {
      const { owner, database } = site;
      await owner.query(`grant ${SCHEMA}_tenant to current_user`);
      const clients = await Promise.all(
        ["acme", "umbrella"].map(async (tenant) => {
          const client = new pg.Client(database.config);
          await client.connect();
          return { tenant, client };
        }),
      );
      let leaks = 0;
      let seen = 0;
      await Promise.all(
        clients.map(async ({ tenant, client }) => {
          for (let n = 0; n < 500; n++) {
            await client.query("begin");
            await client.query(`set local role ${SCHEMA}_tenant`);
            const before = await client.query(`select 1 from ${SCHEMA}.job limit 1`);
            leaks += before.rowCount ?? 0;
            await client.query("select set_config('pawl.tenant', $1, true)", [tenant]);
            const { rows } = await client.query(`select tenant, count(*)::int as n from ${SCHEMA}.job group by tenant`);
            await client.query(n % 3 === 0 ? "rollback" : "commit");
            for (const row of rows) {
              if (row.tenant === tenant) seen += row.n;
              else leaks += 1;
            }
          }
        }),
      );
      await Promise.all(clients.map(({ client }) => client.end()));
      expect({ leaks, seen }).toEqual({ leaks: 0, seen: 2 * 500 * 50 });
    } finally {
      site.owner.on("error", () => {});
      await site.close();
    }
  });
});

import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { open, type Pawl, task } from "../../packages/pawl/src/index.js";
import { serviceOf } from "../../packages/pawl/src/service.js";
import { rolesScript, TENANT_TABLES } from "../../packages/pawl/src/store/postgres/connection/roles.js";
import { onceOrAgain } from "../support/again.js";
import { describeOn, urlOf } from "../support/servers/servers.js";
import { KEYS, RolesFixture, TENANTS } from "./roles-fixture.js";

/** A row of every table that is a tenant's: $1 is whose, $2 a job of theirs. Those that have rows already have none here. */
const ROWS = [
  "insert into pawl.job_kept select * from pawl.job where id = $2 and tenant = $1",
  "insert into pawl.suspect (id, priority, attempts, crashes, queue, tenant, task) values ($2, 5, 0, 2, 'q', $1, 't')",
  "insert into pawl.scheduled (run_at, id, priority, attempts, crashes, queue, tenant, task) values (now(), $2, 5, 0, 0, 'q', $1, 't')",
  "insert into pawl.parked (id, priority, attempts, crashes, reason, queue, tenant, task) values ($2, 5, 0, 0, 'paused', 'q', $1, 't')",
  "insert into pawl.blocked (run_at, id, priority, queue, tenant, task) values (now(), $2, 5, 'q', $1, 't')",
  "insert into pawl.dead (died_at, id, priority, queue, tenant, task, kind, name) values (now(), $2, 5, 'q', $1, 't', 'error', 'Error')",
  "insert into pawl.schedule (created_at, changed_at, revision, keeps, tenant, name, definition) select now(), now(), 1, false, $1, 's', '{}' where $2::uuid is not null",
  "insert into pawl.target (tenant, task, url, concurrency, timeout_ms, created_at, changed_at) select $1, 't', 'https://x.example', 1, 1, now(), now() where $2::uuid is not null",
  "insert into pawl.breaker (tenant, task, state, forced, opening, since, counts, rule) select $1, 't', 'open', true, 0, now(), '[]', '{}' where $2::uuid is not null",
  ...["history", "history_kept"].map(
    (table) =>
      `insert into pawl.${table} (home, last, lease, since, ended, first) select j.home, j.home, 1, now(), now(), j.id from pawl.job j where j.id = $2 and j.tenant = $1`,
  ),
  ...["log", "log_kept"].map(
    (table) =>
      `insert into pawl.${table} (at, lease, job, level, message) select now(), 1, j.id, 1, 'm' from pawl.job j where j.id = $2 and j.tenant = $1`,
  ),
  "insert into pawl.intent (job, kind, requested_at) select j.id, 'pause', now() from pawl.job j where j.id = $2 and j.tenant = $1",
  "insert into pawl.dependency (parent, child, on_dependency_death) select j.id, j.id, 'die' from pawl.job j where j.id = $2 and j.tenant = $1",
  "insert into pawl.tick (schedule, at, fired_at, job, merged, way) select s.id, now(), now(), $2, 0, 'fired' from pawl.schedule s where s.tenant = $1",
  "insert into pawl.tick_gap (schedule, from_at, to_at, seen_at, count) select s.id, now(), now(), now(), 1 from pawl.schedule s where s.tenant = $1 and $2::uuid is not null",
];
const JOBS = 50;

/** Two tenants, each with rows in every table there is for them, and what is the store's as a whole. */
async function openSite(
  on: Parameters<typeof RolesFixture.open>[0],
): Promise<{ readonly fixture: RolesFixture; readonly jobs: Readonly<Record<string, string>> }> {
  const fixture = await RolesFixture.open(on);
  const jobs: Record<string, string> = {};
  const pawl = await open(fixture.database.directUrl, {
    postgres: { schema: fixture.schema },
    maintenance: false,
    apiKeys: KEYS,
    allowUnknownTasks: true,
  });
  await serviceOf(pawl).audit.record({ actor: "key:a", action: "jobs.control", outcome: "allowed" });
  await serviceOf(pawl).apiKeys.create({ name: "k", grants: [{ role: "viewer" }] });
  for (const tenant of TENANTS) {
    for (let n = 0; n < JOBS; n++) jobs[tenant] = (await pawl.enqueue("t", `secret of ${tenant}`, { tenant })).id;
    await serviceOf(pawl).audit.record({ tenant, actor: "key:a", action: "jobs.control", outcome: "allowed" });
    await serviceOf(pawl).apiKeys.create({ name: "k", tenant, grants: [{ role: "viewer" }] });
    for (const row of ROWS) expect((await fixture.owner.query(fixture.sql(row), [tenant, jobs[tenant]])).rowCount).toBe(1);
  }
  await pawl.close();
  return { fixture, jobs };
}

const DENIED = "42501";

for (const server of onceOrAgain(["embedded18", "debian15"] as const)) {
  describeOn(server, () => {
    let fixture: RolesFixture;
    let jobs: Readonly<Record<string, string>>;
    beforeAll(async () => {
      ({ fixture, jobs } = await openSite(server));
    });
    afterAll(() => fixture?.[Symbol.asyncDispose]());

    test("the engine's role changes rows, and never tables (S84)", async () => {
      for (const ddl of ["drop table pawl.job", "alter table pawl.job add column x int", "create table pawl.x (a int)", "truncate pawl.ready"])
        expect([ddl, await fixture.as("engine", ddl)]).toEqual([ddl, DENIED]);
      expect(await fixture.as("engine", "delete from pawl.migration")).toBe(DENIED);
      expect(await fixture.as("engine", "select from pawl.job")).toBe(100);
    });

    test("who only reads does not read what deliveries are signed with (S84)", async () => {
      for (const table of ["target_secret", "idle_worker"])
        for (const role of ["readonly", "tenant"]) expect(await fixture.as(role, `select from pawl.${table}`)).toBe(DENIED);
      expect(await fixture.as("readonly", "select url from pawl.target")).toBe(2);
    });

    test("nobody but the owner reads the digest of a secret (S84)", async () => {
      for (const role of ["engine", "readonly", "tenant"]) {
        expect(await fixture.as(role, "select digest from pawl.api_secret")).toBe(DENIED);
        expect(await fixture.as(role, "select * from pawl.api_secret")).toBe(DENIED);
      }
      expect(await fixture.as("readonly", "select from pawl.is_api_secret_valid('a', 'b')")).toBe(DENIED);
      expect(await fixture.as("readonly", "select id, name from pawl.api_key")).toBe(3);
    });

    test("the audit log is append only: by its grants for the roles, by its triggers for its owner (S70)", async () => {
      for (const change of [
        "update pawl.audit set body = body",
        "delete from pawl.audit",
        "truncate pawl.audit",
        "delete from pawl.audit_head",
        "truncate pawl.audit_head",
      ]) {
        expect([change, await fixture.as("engine", change)]).toEqual([change, DENIED]);
        await expect(fixture.owner.query(fixture.sql(change)), change).rejects.toMatchObject({
          message: "the audit log is append only",
          code: DENIED,
        });
      }
      expect(await fixture.as("engine", "select from pawl.audit")).toBe(3);
    });

    const NAMED = (tenant: string) => `select set_config('pawl.tenant', '${tenant}', true)`;

    test.each(TENANT_TABLES)(
      "of %s a tenant's reader sees the rows of the tenant its transaction names, and without one none (S18)",
      async (table) => {
        const look = `select from pawl.${table}`;
        const each = table === "job" || table === "ready" ? JOBS : 1;
        const whole = table.startsWith("audit") || table === "api_key" ? 1 : 0;
        expect(await fixture.as("engine", look)).toBe(2 * each + whole);
        expect(await fixture.as("tenant", look)).toBe(0);
        for (const tenant of TENANTS) expect(await fixture.as("tenant", NAMED(tenant), look)).toBe(each);
        for (const nobody of ["nobody", ""]) expect(await fixture.as("tenant", NAMED(nobody), look)).toBe(0);
        expect(await fixture.as("tenant", NAMED("acme"), `delete from pawl.${table}`)).toBe(DENIED);
      },
    );

    test("a tenant's reader sees nothing else but names of workers, and no more through views (S18)", async () => {
      const { rows } = await fixture.owner.query<{ name: string; kind: string; invoker: boolean; safe: boolean }>(
        `select c.relname as name, c.relkind::text as kind, 'security_invoker=true' = any(c.reloptions) as invoker, c.relrowsecurity as safe
         from pg_class c where c.relnamespace = $1::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'S')
           and (has_table_privilege($2, c.oid, 'select, insert, update, delete') or (c.relkind <> 'S' and has_any_column_privilege($2, c.oid, 'select')))`,
        [fixture.schema, `${fixture.schema}_tenant`],
      );
      const named = (kind: string) => rows.filter((row) => (kind === "v") === (row.kind === "v")).map(({ name }) => name);
      expect(named("r").sort()).toEqual([...TENANT_TABLES, "worker"].sort());
      expect(rows.filter(({ kind, name, safe }) => kind !== "v" && !safe && name !== "worker")).toEqual([]);
      expect(named("v").sort()).toEqual(["any_attempt", "any_job", "any_log"]);
      expect(rows.filter(({ kind, invoker }) => kind === "v" && !invoker)).toEqual([]);
      for (const view of named("v")) {
        expect(await fixture.as("tenant", `select from pawl.${view}`)).toBe(0);
        // An attempt is no other's than that of its job.
        expect(await fixture.as("tenant", NAMED("acme"), `select from pawl.${view}`)).toBe(view === "any_job" ? JOBS + 1 : 2);
      }
      expect(await fixture.as("tenant", "select instance from pawl.worker")).toBe(DENIED);
      expect(await fixture.as("tenant", "select id, name from pawl.worker")).toBe(0);
    });

    test("a connection that has had a tenant and has none now sees nothing, nor what is nobody's (S18)", async () => {
      await fixture.owner.query("begin");
      await fixture.owner.query(NAMED("acme"));
      await fixture.owner.query("commit");
      expect((await fixture.owner.query("select current_setting('pawl.tenant', true) as left")).rows).toEqual([{ left: "" }]);
      for (const table of TENANT_TABLES) expect([table, await fixture.as("tenant", `select from pawl.${table}`)]).toEqual([table, 0]);
    });

    test("the script again takes hold of no table", async () => {
      const other = new pg.Client(fixture.database.directConfig);
      await other.connect();
      try {
        await other.query("begin");
        for (const table of TENANT_TABLES) await other.query(`lock table ${fixture.schema}.${table} in access share mode`);
        // It would wait for the locks above until the time-out ends it.
        await fixture.owner.query("set statement_timeout = '20s'");
        await expect(fixture.owner.query(rolesScript(fixture.schema))).resolves.toBeDefined();
      } finally {
        await other.end();
        await fixture.owner.query("reset statement_timeout");
      }
    });

    test("a look by id uses the index it used without the policy (S18)", async () => {
      const plan = async (role: string) => {
        await fixture.owner.query("begin");
        await fixture.owner.query(`set local role ${fixture.schema}_${role}`);
        await fixture.owner.query(NAMED("acme"));
        // The table has a few rows, or none as far as the planner knows by now: to read all of it may seem cheaper.
        await fixture.owner.query("set local enable_seqscan = off");
        const { rows } = await fixture.owner.query(fixture.sql(`explain (costs off) select input from pawl.job where id = '${jobs.acme}'`));
        await fixture.owner.query("rollback");
        return rows.map((row) => row["QUERY PLAN"] as string).filter((line) => /Scan|Index Cond/.test(line));
      };
      expect(await plan("tenant")).toEqual(await plan("readonly"));
      expect((await plan("tenant")).join()).toMatch(/Index/);
    });

    test("an API and a worker run as the engine's role: enqueue, claim, settle, keys, audit, replies", async () => {
      const { directConfig, name } = fixture.database;
      const url = urlOf({ ...directConfig, user: fixture.login }, name);
      const done = task("done", async (input: number) => input + 1);
      const pawl: Pawl = await open(url, { postgres: { schema: fixture.schema }, migrate: false, maintenance: false, apiKeys: KEYS, tasks: [done] });
      try {
        await pawl.work({ concurrency: 2 });
        expect(await (await pawl.enqueue(done, 1, { tenant: "acme" })).result("60s")).toBe(2);
        const later = await pawl.enqueue(done, 1, { delay: "1h", unique: "k" });
        await later.cancel();
        const { key, secret } = await serviceOf(pawl).apiKeys.create({ name: "new", grants: [{ role: "viewer" }] });
        expect((await serviceOf(pawl).apiKeys.verify(secret)).ok).toBe(true);
        const rotated = await serviceOf(pawl).apiKeys.rotate(key.id);
        expect((await serviceOf(pawl).apiKeys.verify(rotated.secret)).ok).toBe(true);
        await serviceOf(pawl).apiKeys.revoke(key.id);
        await serviceOf(pawl).audit.record({ tenant: "acme", actor: "key:a", action: "apiKeys.write", outcome: "denied" });
        expect((await serviceOf(pawl).audit.verify()).ok).toBe(true);
        const turn = await serviceOf(pawl).idempotency.begin({ tenant: "acme", credential: "a", key: "k", hash: "h" });
        expect(turn.kind === "begun" && (await turn.finish({ status: 200, body: "", headers: {} }))).toBe("kept");
        await pawl.tenants.update("acme", { weight: 2 });
        await pawl.queues.pause("default");
        await pawl.queues.resume("default");
      } finally {
        await pawl.close();
      }
    });
  });
}

describe("settings", () => {
  const SOURCES = ["pawl", "server"].map((name) => resolve(import.meta.dirname, `../../packages/${name}/src`));
  /** What stays on a connection after its transaction reaches whoever a pooler gives it to next. */
  const STAYS = [
    /["'`]\s*set\s+(?!local\b)(?:session\s+)?[\w.]+\s*(?:=|\bto\b)/i,
    /;\s*set\s+(?!local\b)(?:session\s+)?[\w.]+\s*=/i,
    /["'`;]\s*set\s+(?:session\s+)?(?:role|authorization)\b/i,
    /set_config\([^()]*,\s*false\s*\)/i,
  ];
  const stays = (text: string) => STAYS.some((one) => one.test(text));

  test("are made for one transaction, never for a connection (S18)", () => {
    const files = SOURCES.flatMap((folder) => (readdirSync(folder, { recursive: true }) as string[]).map((file) => join(folder, file)));
    const sources = files.filter((file) => /(?<!\.test)\.ts$/.test(file));
    expect(sources.length).toBeGreaterThan(300);
    expect(sources.filter((file) => stays(readFileSync(file, "utf8")))).toEqual([]);
    for (const wrong of ["`set role x`", '"set pawl.tenant = 1"', "`begin; set session x = 1`", "set_config('role', $1, false)"])
      expect([wrong, stays(wrong)]).toEqual([wrong, true]);
    for (const right of ["`set local role x`", "`update a set b = 1`", "set_config('role', $1, true)"])
      expect([right, stays(right)]).toEqual([right, false]);
  });
});

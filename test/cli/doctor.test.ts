import { open, task } from "pawl";
import pg from "pg";
import { describe, expect, test } from "vitest";
import type { InstanceId } from "../../packages/pawl/src/core/jobs/id.js";
import type { Pawl } from "../../packages/pawl/src/index.js";
import type { Finding } from "../../packages/pawl/src/service.js";
import { openPostgres } from "../../packages/pawl/src/store/postgres/open.js";
import { eventually } from "../support/eventually.js";
import { builtPawl, NodeProcess } from "../support/processes/child-process.js";
import { fakeTime } from "../support/processes/faketime.js";
import { runPawl } from "../support/run-cli.js";
import { type Database, describeOn, freshDatabase, migratedDatabase } from "../support/servers/servers.js";

const UNWELL = 5;
const endless = task("endless", () => new Promise<void>(() => {}));

/** What the doctor says of a database, as a script reads it. */
async function findings(url: string): Promise<{ readonly exit: number; readonly findings: readonly Finding[] }> {
  const { exit, out, err } = await runPawl("doctor", "--store", url, "--overdue-after", "200ms", "--json");
  if (out === "") throw new Error(err);
  return { exit, findings: (JSON.parse(out) as { findings: Finding[] }).findings };
}

/** The one finding of a check, when it is there. Time must pass first where the doctor has patience. */
async function finds(url: string, check: Finding["check"]): Promise<Finding> {
  let seen = "";
  const found = await eventually(
    () => `${check}; there is ${seen}`,
    async () => {
      const { exit, findings: all } = await findings(url);
      seen = JSON.stringify(all);
      expect(exit).toBe(all.length === 0 ? 0 : UNWELL);
      return all.find((one) => one.check === check);
    },
  );
  expect(found.costs.length).toBeGreaterThan(10);
  expect(found.mend.length).toBeGreaterThan(10);
  return found;
}

interface DoctorFixture extends AsyncDisposable {
  readonly database: Database;
  readonly pawl: Pawl;
  sql(text: string): Promise<pg.QueryResult>;
  session(): Promise<pg.Client>;
}

/** A store of its own, healthy at first. */
async function doctorFixture(options: { maintenance?: boolean } = {}): Promise<DoctorFixture> {
  const database = await migratedDatabase();
  const opened = await open(database.url, { tasks: [endless], ...options });
  const clients: pg.Client[] = [];
  const session = async () => {
    const client = new pg.Client({ ...database.config, application_name: "somebody" });
    client.on("error", () => {});
    await client.connect();
    clients.push(client);
    return client;
  };
  const own = await session();
  return {
    database,
    pawl: opened,
    sql: (text) => own.query(text),
    session,
    async [Symbol.asyncDispose]() {
      await Promise.all(clients.map((client) => client.end().catch(() => {})));
      await opened.close();
      await database.drop();
    },
  };
}

describeOn("embedded18", () => {
  test("the doctor finds nothing wrong with a store that is well", async () => {
    await using at = await doctorFixture();
    await eventually("a clean bill of health", async () => (await findings(at.database.url)).exit === 0);
  });

  test("the doctor finds a snapshot that is pinned, and who pins it", async () => {
    await using at = await doctorFixture();
    const pinning = await at.session();
    const asleep = pinning.query("select pg_sleep(600)").catch(() => {});
    const { found, mend } = await finds(at.database.url, "horizon");
    expect(found).toMatch(/^session \d+ \(somebody\) holds back the clearing of old rows for /);
    await at.sql(/select (pg_terminate_backend\(\d+\))/.exec(mend)?.[0] ?? "");
    await asleep;
    await eventually("it is well again", async () => (await findings(at.database.url)).exit === 0);
  });

  test("the doctor finds a transaction that is left open", async () => {
    await using at = await doctorFixture();
    const idle = await at.session();
    await idle.query("begin; select 1");
    expect((await finds(at.database.url, "idle_transaction")).found).toMatch(/^session \d+ \(somebody\) has been idle inside a transaction for /);
    await idle.query("rollback");
  });

  test("the doctor finds a table that is bloated", async () => {
    await using at = await doctorFixture();
    const pinning = await at.session();
    await pinning.query("begin isolation level repeatable read; select 1");
    await at.sql("insert into pawl.intent (job, kind, requested_at) select gen_random_uuid(), 'pause', now() from generate_series(1, 60000)");
    await at.sql("delete from pawl.intent");
    expect((await finds(at.database.url, "bloat")).found).toMatch(/^table pawl\.intent holds 6\d,\d{3} dead rows beside \d+ live ones/);
  });

  test("the doctor finds a month without a partition", async () => {
    await using at = await doctorFixture({ maintenance: false });
    const month = new Date();
    month.setUTCDate(1);
    month.setUTCMonth(month.getUTCMonth() + 1);
    const name = month.toISOString().slice(0, 7).replace("-", "_");
    await at.sql(`drop table pawl.job_${name}`);
    const { level, found } = await finds(at.database.url, "partitions");
    expect([level, found]).toEqual(["critical", `there is no partition for ${name}`]);
  });

  test("the doctor finds a lease that nobody renews or takes back", async () => {
    await using at = await doctorFixture({ maintenance: false });
    await at.pawl.enqueue(endless);
    const store = await openPostgres({ url: at.database.url });
    const worker = { name: "gone", instance: "00000000-0000-4000-8000-00000000000a" as InstanceId };
    const lane = { queue: "default", priority: 5, tenant: "default", task: "endless" } as const;
    expect(await store.leases.claim({ worker, quotas: [{ lane, quota: 1 }], duration: 100 })).toMatchObject({ jobs: [{}] });
    await store.close();
    expect((await finds(at.database.url, "leases")).found).toMatch(/^1 lease with 1 job ended up to .* ago, and nobody renews or takes them back/);
  });

  test("the doctor finds that nobody does maintenance", async () => {
    await using at = await doctorFixture({ maintenance: false });
    await at.pawl.enqueue(endless, undefined, { delay: "1ms" });
    expect((await finds(at.database.url, "maintenance")).found).toMatch(/overdue by .*: nobody does maintenance/);
  });

  test("the doctor finds two versions at work", async () => {
    await using at = await doctorFixture();
    await at.pawl.work({ name: "new" });
    await at.pawl.work({ name: "old" });
    await eventually("both said so", async () => (await at.pawl.workers.list()).items.length === 2);
    await at.sql(
      `update pawl.live_worker s set serves = (s.serves::jsonb || '{"version":"0.0.1"}')::json from pawl.worker w where w.id = s.worker and w.name = 'old'`,
    );
    expect((await finds(at.database.url, "versions")).found).toMatch(/more than one version of Pawl is at work: .*0\.0\.1 \(old\)/);
  });

  test("the doctor finds a lane that nobody serves", async () => {
    await using at = await doctorFixture();
    await at.pawl.enqueue(endless, undefined, { queue: "forgotten" });
    expect((await finds(at.database.url, "unserved")).found).toMatch(
      /^the jobs of task endless in queue forgotten .* wait for nobody: no worker is live/,
    );
  });

  test("the doctor finds a schema that is behind, and says how to bring it up to date", async () => {
    await using database = await freshDatabase();
    const { exit, findings: all } = await findings(database.url);
    expect([exit, all]).toEqual([UNWELL, [expect.objectContaining({ check: "versions", level: "critical", mend: "run pawl migrate" })]]);
    expect((await runPawl("migrate", "--check", "--store", database.url)).exit).toBe(5);
    expect((await runPawl("migrate", "--store", database.url)).out).toMatch(/^migrated to schema \d+\n$/);
    expect((await runPawl("migrate", "--store", database.url)).out).toMatch(/^the schema is up to date: \d+\n$/);
    await eventually("it is well", async () => (await findings(database.url)).exit === 0);
  });

  const time = fakeTime();
  describe.skipIf(!time.available)(time.available ? "a clock of its own" : `a clock of its own (${time.reason})`, () => {
    test("the doctor finds a clock that is off by a minute", { timeout: 120_000 }, async () => {
      if (!time.available) return;
      await using at = await doctorFixture();
      const args = ["doctor", "--store", at.database.url, "--quiet"];
      await using child = new NodeProcess(builtPawl(), args, time.env("+60s"));
      expect(await child.exit()).toBe(UNWELL);
      expect(child.lines[0]).toMatch(/^! clock: this machine's clock is (59|60|61) s ahead of the store's$/);
    });
  });
});

describeOn("pgbouncer", () => {
  test("the doctor finds that LISTEN is deaf behind a pooler, and not past it", async () => {
    await using database = await migratedDatabase("pgbouncer");
    const opened = await open(database.directUrl);
    try {
      expect((await finds(database.url, "wake_ups")).mend).toContain("listenUrl");
      expect((await findings(database.directUrl)).findings.map(({ check }) => check)).not.toContain("wake_ups");
    } finally {
      await opened.close();
    }
  });
});

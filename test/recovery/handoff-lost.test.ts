import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isPawlError } from "../../packages/pawl/src/core/values/error.js";
import { open, task } from "../../packages/pawl/src/index.js";
import type { ClaimedJob } from "../../packages/pawl/src/store/port/settle/leases.js";
import { openDb } from "../../packages/pawl/src/store/postgres/connection/db.js";
import { pgDriver } from "../../packages/pawl/src/store/postgres/drivers/pg.js";
import { nativePostgres } from "../../packages/pawl/src/store/postgres/embedded/index.js";
import { CommitFlusher } from "../../packages/pawl/src/store/postgres/handoff/commit-flusher.js";
import { eventually } from "../support/eventually.js";
import { HandoffFixture, LEASE_MS } from "../support/fixtures/handoff-fixture.js";
import { type PrivateServer, startPrivateServer } from "../support/servers/private-server.js";

const native = nativePostgres();
/** Of so many one meets the moment in which a job is begun and nothing of it is on disk. */
const MAX_CRASHES = 8;

describe.skipIf(!native.ok)(`a Postgres of our own${native.ok ? "" : ` (${native.reason})`}`, () => {
  let server: PrivateServer;
  beforeAll(async () => {
    server = await startPrivateServer();
  });
  afterAll(() => server?.close());

  it("that crashes while a job is begun whose enqueue is not on disk: it was not acknowledged, its lease holds nothing, and no lease has its number again", async () => {
    await using database = await server.database();
    await using fixture = await HandoffFixture.open(database.url);
    // A commit waits for 0.1 s before it goes to the disk, and nobody takes it there by the way.
    for (const setting of ["commit_delay = 100000", "commit_siblings = 0", "wal_writer_delay = '10s'"])
      await fixture.sql.query(`alter system set ${setting}`);
    await fixture.sql.query("select pg_reload_conf()");
    /** One of its processes is killed, so that it ends all of them at once, and recovers. */
    const crash = async () => {
      const victim = new pg.Client({ connectionString: database.url });
      victim.on("error", () => {});
      await victim.connect();
      const { rows } = await victim.query("select pg_backend_pid() as pid");
      process.kill(rows[0].pid, "SIGKILL");
    };

    const leases: string[] = [];
    let lost = 0;
    for (let crashes = 0; crashes < MAX_CRASHES && lost === 0; crashes++) {
      await fixture.register();
      const enqueued = fixture.enqueue().catch((error: unknown) => error);
      const { claimed } = await fixture.nextHandoff();
      await crash();
      expect(isPawlError(await enqueued, "enqueue_uncertain"), "nobody was told that it is stored").toBe(true);
      leases.push(claimed.lease);
      await eventually("the server accepts connections again", () =>
        fixture.sql.query("select 1").then(
          () => true,
          () => false,
        ),
      );
      if ((await fixture.producer.jobs.get("everyone", (claimed.jobs[0] as ClaimedJob).id)) !== undefined) continue;
      lost++;
      expect((await fixture.consumer.leases.renew(fixture.worker, [claimed.lease], LEASE_MS)).held).toEqual([]);
    }
    expect(lost, "of some job nothing is left").toBe(1);

    const [{ next }] = (await fixture.sql.query("select nextval('pawl.lease_seq')::text as next")).rows as [{ next: string }];
    for (const lease of leases) expect(Number(next), "numbers go on behind those that were given out").toBeGreaterThan(Number(lease));
    await fixture.register();
    const id = await fixture.enqueue();
    const { claimed } = await fixture.nextHandoff();
    expect(claimed.jobs).toMatchObject([{ id }]);
    expect(leases).not.toContain(claimed.lease);
  });

  it("that crashed and is back when the enqueue comes to see its job on disk: it is not acknowledged if the job is gone", async () => {
    await using database = await server.database();
    await using fixture = await HandoffFixture.open(database.url);
    const [there, gone] = [await fixture.enqueue(), await fixture.enqueue()];
    // What a crash does to a commit that is not on disk.
    await fixture.sql.query("delete from pawl.job where id = $1", [gone]);
    const db = openDb(pgDriver({ config: { connectionString: database.url }, prepare: "auto", statementTimeout: 30_000 }), { location: "here" });
    try {
      const flusher = new CommitFlusher(db);
      const answers = await Promise.allSettled([there, gone, there].map((id) => flusher.onDisk(id)));
      expect(answers).toMatchObject([
        { status: "fulfilled" },
        { status: "rejected", reason: { code: "enqueue_uncertain" } },
        { status: "fulfilled" },
      ]);
    } finally {
      await db.driver.close();
    }
  });

  it("whose disk, or standby, stands still: jobs that come one by one go on being begun, and are acknowledged when it is back", async () => {
    await using database = await server.database();
    const sql = new pg.Pool({ connectionString: database.url, max: 1 });
    const begun: number[] = [];
    const tasks = [task("call", (n: number) => void begun.push(n))];
    const producer = await open(database.url, { tasks, maintenance: false });
    const consumer = await open(database.url, { tasks, maintenance: false });
    const standby = async (name: string) => {
      await sql.query(`alter system set synchronous_standby_names = '${name}'`);
      await sql.query("select pg_reload_conf()");
    };
    let acknowledged = 0;
    const enqueued: Promise<unknown>[] = [];
    try {
      await consumer.work();
      for (let n = 0; n < 12; n++) {
        await eventually(
          "it is registered as idle",
          async () => (await sql.query("select from pawl.idle_worker where lease is null")).rows.length > 0,
        );
        if (n === 2) await standby("nobody");
        enqueued.push(producer.enqueue("call", n).then(() => acknowledged++));
        await eventually(`job ${n} is begun`, () => begun.includes(n));
      }
      expect(acknowledged).toBeLessThanOrEqual(2);
    } finally {
      await standby("");
      await Promise.all(enqueued);
      await Promise.all([producer.close(), consumer.close(), sql.end()]);
    }
    expect(acknowledged).toBe(12);
  });

  it("that is restarted: numbers that were drawn before it are used no more, since a standby in its place would not know of them", async () => {
    await using database = await server.database();
    await using fixture = await HandoffFixture.open(database.url);
    await fixture.register();
    const last = async () => Number((await fixture.sql.query("select last_value from pawl.lease_seq")).rows[0].last_value);
    const drawn = await last();
    expect(drawn, "some were drawn ahead").toBeGreaterThan(10);
    await server.restart("SIGINT");
    const HEARS = "select from pawl.idle_worker s where exists (select from pg_stat_activity a where a.pid = s.listener)";
    await eventually(
      "it hears again, and is registered",
      async () => ((await fixture.sql.query(HEARS).catch(() => undefined))?.rows.length ?? 0) > 0,
    );
    const id = await eventually("enqueueing works", () => fixture.enqueue().catch(() => undefined));
    const { claimed } = await fixture.nextHandoff();
    expect(claimed.jobs).toMatchObject([{ id }]);
    expect(Number(claimed.lease)).toBeGreaterThan(drawn);
  });
});

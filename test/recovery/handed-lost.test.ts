import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isPawlError } from "../../packages/pawl/src/core/error.js";
import type { ClaimedJob } from "../../packages/pawl/src/store/port-leases.js";
import { openDb } from "../../packages/pawl/src/store/postgres/db.js";
import type { Queryable } from "../../packages/pawl/src/store/postgres/drivers/driver.js";
import { pgDriver } from "../../packages/pawl/src/store/postgres/drivers/pg.js";
import { nativePostgres } from "../../packages/pawl/src/store/postgres/embedded/index.js";
import { enqueueOne } from "../../packages/pawl/src/store/postgres/enqueue-one.js";
import { eventually } from "../support/eventually.js";
import { type PrivateServer, startPrivateServer } from "../support/private-server.js";
import { LEASE, newJob, SeatScene } from "../support/seat-scene.js";

const native = nativePostgres();
/** Of so many one meets the moment in which a job is begun and nothing of it is on disk. */
const MOST_CRASHES = 8;

describe.skipIf(!native.ok)(`a Postgres of our own${native.ok ? "" : ` (${native.reason})`}`, () => {
  let server: PrivateServer;
  beforeAll(async () => {
    server = await startPrivateServer();
  });
  afterAll(() => server?.close());

  it("that crashes while a job is begun whose enqueue is not on disk: it was not acknowledged, its lease holds nothing, and no lease has its number again", async () => {
    await using database = await server.database();
    await using scene = await SeatScene.open(database.url);
    // A commit waits for 0.1 s before it goes to the disk, and nobody takes it there by the way.
    for (const setting of ["commit_delay = 100000", "commit_siblings = 0", "wal_writer_delay = '10s'"])
      await scene.sql.query(`alter system set ${setting}`);
    await scene.sql.query("select pg_reload_conf()");
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
    for (let crashes = 0; crashes < MOST_CRASHES && lost === 0; crashes++) {
      await scene.sit();
      const enqueued = scene.enqueue().catch((error: unknown) => error);
      const { claimed } = await scene.handed();
      await crash();
      expect(isPawlError(await enqueued, "enqueue_unknown"), "nobody was told that it is stored").toBe(true);
      leases.push(claimed.lease);
      await eventually("the server accepts connections again", () =>
        scene.sql.query("select 1").then(
          () => true,
          () => false,
        ),
      );
      if ((await scene.producer.jobs.get("everyone", (claimed.jobs[0] as ClaimedJob).id)) !== undefined) continue;
      lost++;
      expect((await scene.consumer.leases.renew(scene.worker, [claimed.lease], LEASE)).held).toEqual([]);
    }
    expect(lost, "of some job nothing is left").toBe(1);

    const [{ next }] = (await scene.sql.query("select nextval('pawl.lease_seq')::text as next")).rows as [{ next: string }];
    for (const lease of leases) expect(Number(next), "numbers go on behind those that were given out").toBeGreaterThan(Number(lease));
    await scene.sit();
    const id = await scene.enqueue();
    const { claimed } = await scene.handed();
    expect(claimed.jobs).toMatchObject([{ id }]);
    expect(leases).not.toContain(claimed.lease);
  });

  it("that crashed and is back when the enqueue comes to see its job on disk: it is not acknowledged if the job is gone", async () => {
    await using database = await server.database();
    await using scene = await SeatScene.open(database.url);
    await scene.sit();
    const db = openDb(pgDriver({ config: { connectionString: database.url }, prepare: "auto", statementTimeout: 30_000 }), { place: "here" });
    try {
      const on: Queryable = {
        async query(statement, values) {
          // What a crash does to a commit that is not on disk.
          if (statement.name === "pawl_flush") await scene.sql.query("delete from pawl.job where id = $1", values as unknown[]);
          return db.query(statement, values);
        },
      };
      const ride = { channel: "pawl.work", payload: "{}" };
      await expect(enqueueOne(db, on, newJob(), ride)).rejects.toMatchObject({ code: "enqueue_unknown" });
      expect(await scene.handed(), "though it was begun").toBeDefined();
    } finally {
      await db.driver.close();
    }
  });

  it("that is restarted: numbers that were drawn before it are used no more, since a standby in its place would not know of them", async () => {
    await using database = await server.database();
    await using scene = await SeatScene.open(database.url);
    await scene.sit();
    const last = async () => Number((await scene.sql.query("select last_value from pawl.lease_seq")).rows[0].last_value);
    const drawn = await last();
    expect(drawn, "some were drawn ahead").toBeGreaterThan(10);
    await server.restart("SIGINT");
    const HEARS = "select from pawl.seat s where exists (select from pg_stat_activity a where a.pid = s.listener)";
    await eventually("it hears again, and sits", async () => ((await scene.sql.query(HEARS).catch(() => undefined))?.rows.length ?? 0) > 0);
    const id = await eventually("enqueueing works", () => scene.enqueue().catch(() => undefined));
    const { claimed } = await scene.handed();
    expect(claimed.jobs).toMatchObject([{ id }]);
    expect(Number(claimed.lease)).toBeGreaterThan(drawn);
  });
});

import { setTimeout as pause } from "node:timers/promises";
import { isPawlError, open, type Pawl, task } from "pawl";
import pg from "pg";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Database, describeOn, migratedDatabase } from "../support/servers/servers.js";

const work = task<number, void>("work", () => {});
const numbers = (count: number) => Array.from({ length: count }, (_, n) => n);
const limited = { code: "ingest_limited" };

describeOn("embedded18", () => {
  let database: Database;
  let client: pg.Client;
  const opened = new Set<Pawl>();
  const connect = async (): Promise<Pawl> => {
    const pawl = await open(database.url, { tasks: [work] });
    opened.add(pawl);
    return pawl;
  };
  beforeEach(async () => {
    database = await migratedDatabase();
    client = new pg.Client(database.config);
    await client.connect();
  });
  afterEach(async () => {
    for (const pawl of opened) await pawl.close();
    opened.clear();
    await client.end();
    await database.drop();
  });

  describe("an ingest rate", () => {
    test("is kept by several producers at once, each of which is told when to come back", async () => {
      const pawls = [await connect(), await connect(), await connect()];
      const [first] = pawls as [Pawl];
      const [limit, burst] = [200, 100];
      await first.tenants.update("acme", { ingest: { rate: { limit, per: "1s", burst } } });
      const produce = async (pawl: Pawl) => {
        const acme = pawl.forTenant("acme");
        for (let stored = 0; stored < 200; ) {
          try {
            stored += (await acme.enqueueMany(work, numbers(5))).length;
          } catch (error) {
            if (!isPawlError(error, "ingest_limited")) throw error;
            await pause(error.details.retryAfter as number);
          }
        }
      };
      await Promise.all(pawls.map(produce));
      const { rows } = await client.query<{ at: number }>(
        "select (extract(epoch from created_at) * 1000)::float8 as at from pawl.job order by created_at",
      );
      expect(rows).toHaveLength(600);
      // Whatever came between two of them came in at the rate. What was let in may have been stored a moment later.
      const at = rows.map((row) => row.at);
      const late = 500;
      for (let from = 0; from < at.length; from += 5)
        for (let to = from + 5; to <= at.length; to += 5)
          expect(to - from).toBeLessThanOrEqual(burst + ((at[to - 1] as number) - (at[from] as number) + late) * (limit / 1_000));
    });

    test("is spent by a transaction that commits, and not by one that rolls back; one that is refused can go on", async () => {
      const pawl = await connect();
      await pawl.tenants.update("acme", { ingest: { rate: { limit: 1, per: "1h", burst: 10 } } });
      const acme = pawl.forTenant("acme");
      await client.query("begin");
      await acme.enqueueMany(work, numbers(10), { tx: client });
      await expect(acme.enqueue(work, 1, { tx: client })).rejects.toMatchObject(limited);
      await client.query("rollback");
      await client.query("begin");
      await acme.enqueueMany(work, numbers(10), { tx: client });
      await expect(acme.enqueue(work, 1, { tx: client })).rejects.toMatchObject(limited);
      await client.query("commit");
      await expect(acme.enqueue(work, 1)).rejects.toMatchObject(limited);
      expect(await pawl.counts()).toMatchObject({ ready: 10 });
    });
  });

  describe("a depth", () => {
    test("holds a stream up until a worker has made room", async () => {
      const pawl = await connect();
      await pawl.queues.update("default", { ingest: { depth: 1_000 } });
      const streamed = pawl.enqueueStream(work, numbers(4_000));
      const refused = new Promise((resolve) => pawl.on("ingest.refused", resolve));
      expect(await refused).toMatchObject({ kind: "queue", name: "default", limit: "depth" });
      expect((await pawl.counts()).ready).toBeLessThanOrEqual(2_000);
      await pawl.work({ concurrency: 50 });
      expect(await streamed).toMatchObject({ created: 4_000 });
    });

    test("is set and taken away for every process", async () => {
      const [here, there] = [await connect(), await connect()];
      await here.enqueueMany(work, numbers(10));
      await there.tenants.update("default", { ingest: { depth: 10 } });
      await expect(there.enqueue(work, 1)).rejects.toMatchObject({ ...limited, details: { kind: "tenant", name: "default", limit: "depth" } });
      expect((await here.tenants.get("default")).policy).toEqual({ ingest: { depth: 10 } });
      await there.tenants.update("default", { ingest: null });
      await there.enqueue(work, 1);
    });

    test.each([[{ depth: 0 }], [{}], [{ rate: { limit: 0, per: "1s" } }], [{ rat: 1 }]])(
      "of %o is refused, and what was set stays",
      async (ingest) => {
        const pawl = await connect();
        await pawl.tenants.update("acme", { ingest: { depth: 5 } });
        await expect(pawl.tenants.update("acme", { ingest: ingest as object })).rejects.toMatchObject({ code: "option_invalid" });
        expect((await pawl.tenants.get("acme")).policy).toEqual({ ingest: { depth: 5 } });
      },
    );
  });
});

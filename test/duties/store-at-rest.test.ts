import { NonRetryable, open, type Pawl, task } from "pawl";
import pg from "pg";
import { expect, test } from "vitest";
import { eventually } from "../support/eventually.js";
import { describeOn, freshDatabase } from "../support/servers/servers.js";

/** Duties at a hundred times their pace: a second of it is minutes of a process that has nothing to do. */
const BUSY = { pollInterval: "10ms", reapInterval: "20ms", pruneInterval: "50ms" } as const;
const POLLS = 200;

const TABLES = "select relname as name from pg_class where relnamespace = 'pawl'::regnamespace and relkind = 'r' order by 1";

async function rowsByTable(client: pg.Client): Promise<Record<string, number>> {
  const { rows } = await client.query<{ name: string }>(TABLES);
  const counts: Record<string, number> = {};
  for (const { name } of rows) {
    const counted = await client.query<{ n: number }>(`select count(*)::int as n from pawl."${name}"`);
    counts[name] = counted.rows[0]?.n ?? 0;
  }
  return counts;
}

/** Resolves when the duties have looked around so often. */
function polls(pawl: Pawl, count: number): Promise<void> {
  return new Promise((resolve) => {
    let left = count;
    const stop = pawl.on("maintenance.polled", () => {
      if (--left > 0) return;
      stop();
      resolve();
    });
  });
}

describeOn("embedded18", () => {
  test("a store at rest grows in none of its tables, however often it is looked after", async () => {
    const database = await freshDatabase();
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    try {
      const quick = task("quick", () => "done");
      const doomed = task("doomed", () => {
        throw new NonRetryable("never");
      });
      const keyed = task("keyed", { limits: [{ key: "key", concurrency: 2 }] }, (_: { key: string }) => {});
      await using pawl = await open(database.url, { tasks: [quick, doomed, keyed], maintenance: BUSY });
      await using _worker = await pawl.work({ pollInterval: "20ms" });
      const parent = await pawl.enqueue(quick, {}, { unique: "once" });
      await pawl.enqueue(quick, {}, { dependsOn: parent, tags: ["last"], finishWithin: "1m" });
      await pawl.enqueueMany(
        quick,
        Array.from({ length: 200 }, () => ({})),
        { delay: "100ms" },
      );
      await pawl.enqueue(doomed, {});
      await pawl.enqueueMany(
        keyed,
        Array.from({ length: 20 }, (_, n) => ({ key: `k${n % 3}` })),
      );
      await eventually("everything has ended", async () => {
        const { succeeded, dead } = await pawl.counts();
        return succeeded + dead === 223;
      });

      await polls(pawl, POLLS);
      const before = await rowsByTable(client);
      expect(Object.keys(before).length, "tables are found").toBeGreaterThan(30);
      await polls(pawl, POLLS);
      expect(await rowsByTable(client)).toEqual(before);

      await (await pawl.enqueue(quick, {})).result();
      expect(await rowsByTable(client), "and this is how it would be seen").not.toEqual(before);
    } finally {
      await client.end();
      await database.drop();
    }
  });
});

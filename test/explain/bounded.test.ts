import { randomBytes } from "node:crypto";
import pg from "pg";
import { expect, test } from "vitest";
import { tailSource } from "../../packages/pawl/src/core/id.js";
import { MOST_AHEAD } from "../../packages/pawl/src/store/port-explain.js";
import { pgDriver } from "../../packages/pawl/src/store/postgres/drivers/pg.js";
import { finish } from "../../packages/pawl/src/store/postgres/open.js";
import { describeOn, migratedDatabase } from "../support/servers.js";

const LANE = { queue: "default", band: 5, tenant: "acme", task: "work" } as const;
const tail = tailSource((size) => randomBytes(size));

describeOn("embedded18", () => {
  test("a look stops counting somewhere, says so, and costs no more however many wait", async () => {
    await using database = await migratedDatabase();
    const driver = pgDriver({ config: { ...database.config, max: 1 }, prepare: "auto", statementTimeout: 60_000 });
    const store = await finish(driver, { engine: "postgres", place: "test", durability: "process" }, {});
    const client = new pg.Client(database.config);
    await client.connect();
    try {
      const wait = (count: number) =>
        client.query(
          `insert into pawl.ready (id, band, spent, crashes, queue, tenant, task)
           select gen_random_uuid(), 5, 0, 0, 'default', 'acme', 'work' from generate_series(1, $1::int)`,
          [count],
        );
      const last = async () => {
        const [answer] = await store.jobs.enqueue([{ tail: tail(), lane: LANE, input: "1", options: undefined }]);
        const found = await store.explain.look("everyone", (answer as unknown as { id: never }).id);
        return { ahead: found?.ahead, more: found?.more };
      };
      await wait(MOST_AHEAD);
      expect(await last()).toEqual({ ahead: MOST_AHEAD, more: false });
      await wait(50_000);
      await client.query("vacuum analyze pawl.ready");
      const told = async () => {
        // Its only connection tells what it read when it is asked for, not a second later.
        await driver.script("select pg_stat_force_next_flush()");
        await driver.script("select 1");
        return entries(client);
      };
      const before = await told();
      expect(await last()).toEqual({ ahead: MOST_AHEAD, more: true });
      // The lane is looked through once, to the bound; what else is asked for finds its place by the index.
      expect((await told()) - before).toBeLessThan(1.1 * MOST_AHEAD);
    } finally {
      await store.close();
      await client.end();
    }
  });
});

/** Entries of the index of ready jobs that were read. */
async function entries(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ read: number }>(
    "select (sum(idx_tup_read))::int as read from pg_stat_user_indexes where schemaname = 'pawl' and relname = 'ready'",
  );
  return rows[0]?.read ?? 0;
}

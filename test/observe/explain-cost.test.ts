import { randomBytes } from "node:crypto";
import pg from "pg";
import { expect, test } from "vitest";
import { idSuffixSource, type JobId } from "../../packages/pawl/src/core/jobs/id.js";
import type { JobOptions } from "../../packages/pawl/src/core/jobs/job.js";
import { type JobLimit, limitKeyId } from "../../packages/pawl/src/core/limits/limit-rule.js";
import type { Store } from "../../packages/pawl/src/store/port/index.js";
import { type JobLook, MAX_AHEAD, MAX_HOLDERS } from "../../packages/pawl/src/store/port/observe/explain.js";
import { pgDriver } from "../../packages/pawl/src/store/postgres/drivers/pg.js";
import { finish } from "../../packages/pawl/src/store/postgres/open.js";
import { describeOn, migratedDatabase } from "../support/servers/servers.js";

const LANE = { queue: "default", priority: 5, tenant: "acme", task: "work" } as const;
const idSuffix = idSuffixSource((size) => randomBytes(size));

interface CostFixture {
  readonly store: Store;
  readonly client: pg.Client;
  /** Entries of the indexes of a table that were read so far. */
  entries(table: string): Promise<number>;
  /** Adds a job, and looks at it. */
  look(options?: JobOptions): Promise<JobLook | undefined>;
}

async function on(work: (bench: CostFixture) => Promise<void>): Promise<void> {
  await using database = await migratedDatabase();
  const driver = pgDriver({ config: { ...database.config, max: 1 }, prepare: "auto", statementTimeout: 60_000 });
  const store = await finish(driver, { engine: "postgres", place: "test", durability: "process" }, {});
  const client = new pg.Client(database.config);
  await client.connect();
  try {
    await work({
      store,
      client,
      async entries(table) {
        // Its only connection tells what it read when it is asked for, not a second later.
        await driver.script("select pg_stat_force_next_flush()");
        await driver.script("select 1");
        const { rows } = await client.query<{ read: number }>(
          "select (sum(idx_tup_read))::int as read from pg_stat_user_indexes where schemaname = 'pawl' and relname = $1",
          [table],
        );
        return rows[0]?.read ?? 0;
      },
      async look(options) {
        const [answer] = await store.jobs.enqueue([{ idSuffix: idSuffix(LANE.tenant), lane: LANE, input: "1", options }]);
        return store.explain.look("everyone", (answer as unknown as { id: never }).id);
      },
    });
  } finally {
    await store.close();
    await client.end();
  }
}

describeOn("embedded18", () => {
  test("a look stops counting somewhere, says so, and costs no more however many wait", () =>
    on(async ({ client, entries, look }) => {
      const wait = (count: number) =>
        client.query(
          `insert into pawl.ready (id, priority, attempts, crashes, queue, tenant, task)
           select gen_random_uuid(), 5, 0, 0, 'default', 'acme', 'work' from generate_series(1, $1::int)`,
          [count],
        );
      const last = async () => {
        const found = await look();
        return { ahead: found?.ahead, more: found?.more };
      };
      await wait(MAX_AHEAD);
      expect(await last()).toEqual({ ahead: MAX_AHEAD, more: false });
      await wait(50_000);
      await client.query("vacuum analyze pawl.ready");
      const before = await entries("ready");
      expect(await last()).toEqual({ ahead: MAX_AHEAD, more: true });
      // The lane is looked through once, to the bound; what else is asked for finds its place by the index.
      expect((await entries("ready")) - before).toBeLessThan(1.1 * MAX_AHEAD);
    }));

  test("a look at a job of a wide key reads a few of those that hold it, however many do", () =>
    on(async ({ client, store, entries, look }) => {
      const wide: JobLimit = { limit: "l", key: "k", rule: { concurrency: 20_000 } };
      const hold = (key: string, first: string) =>
        client.query(
          "insert into pawl.slot (job, kind, key) select overlay(gen_random_uuid()::text placing $2 from 1)::uuid, 'key', $1 from generate_series(1, 20000)",
          [key, first],
        );
      // Those of another key come first by their ids.
      await hold("another", "00");
      await hold(limitKeyId(LANE.tenant, wide), "ff");
      await client.query("vacuum analyze pawl.slot");
      const parked = await look({ limits: [wide] });
      expect(parked?.job.parkedFor).toBe("concurrency");
      const before = await entries("slot");
      await store.explain.look("everyone", parked?.job.id as JobId);
      expect((await entries("slot")) - before).toBeLessThanOrEqual(2 * MAX_HOLDERS);
    }));
});

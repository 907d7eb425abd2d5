import { randomBytes, randomUUID } from "node:crypto";
import pg from "pg";
import { afterEach, beforeEach, expect, test } from "vitest";
import { dutiesOf } from "../../packages/pawl/conformance/duties.js";
import { type InstanceId, idSuffixSource } from "../../packages/pawl/src/core/jobs/id.js";
import type { Store } from "../../packages/pawl/src/store/port/index.js";
import type { Driver } from "../../packages/pawl/src/store/postgres/drivers/driver.js";
import { pgDriver } from "../../packages/pawl/src/store/postgres/drivers/pg.js";
import { finish } from "../../packages/pawl/src/store/postgres/open.js";
import { eventually } from "../support/eventually.js";
import { type Database, describeOn, migratedDatabase } from "../support/servers/servers.js";

const LANE = { queue: "default", priority: 5, tenant: "acme", task: "flat" } as const;
const WORKER = { name: "flat", instance: randomUUID() as InstanceId };
/** jobs of a claim that is measured: few, so that what it walks over shows */
const FEW = 10;

/** Pages of some tables that a call has touched: what it costs, whatever else the machine is doing. */
const PAGES = `select coalesce(sum(coalesce(heap_blks_read, 0) + coalesce(heap_blks_hit, 0) + coalesce(idx_blks_read, 0) + coalesce(idx_blks_hit, 0)), 0)::int as pages
  from pg_statio_user_tables where schemaname = 'pawl' and relname ~ $1`;
/** what a claim takes from */
const CLAIMED = "^ready$";
/** those with a row, or a part of one, for every job or attempt */
const PER_JOB = "^(ready|scheduled|parked|blocked|dead|lease|job|attempt|log)";

describeOn("embedded18", () => {
  let database: Database;
  let control: pg.Client;
  let store: Store;
  let driver: Driver;
  const opened: Store[] = [];
  beforeEach(async () => {
    database = await migratedDatabase();
    control = new pg.Client(database.config);
    await control.connect();
    ({ store, driver } = await process());
  });
  afterEach(async () => {
    for (const one of opened.splice(0)) await one.close();
    await control.end();
    await database.drop();
  });

  async function process(): Promise<{ store: Store; driver: Driver }> {
    // One connection: its count of pages is told when it is asked for, not a second later.
    const only = pgDriver({
      config: { ...database.config, max: 1, options: "-c synchronous_commit=off" },
      prepare: "auto",
      statementTimeout: 60_000,
    });
    const one = await finish(only, { engine: "postgres", place: "test", durability: "process" }, {});
    opened.push(one);
    return { store: one, driver: only };
  }
  async function pages(of: Driver, tables = CLAIMED): Promise<number> {
    await of.script("select pg_stat_force_next_flush()");
    await of.script("select 1");
    return (await control.query<{ pages: number }>(PAGES, [tables])).rows[0]?.pages ?? 0;
  }
  async function costOf(call: () => Promise<unknown>, tables: string): Promise<number> {
    const before = await pages(driver, tables);
    await call();
    return (await pages(driver, tables)) - before;
  }
  async function delay(count: number, ms: number): Promise<void> {
    for (let left = count; left > 0; left -= 1_000)
      await store.jobs.enqueue(
        Array.from({ length: Math.min(left, 1_000) }, () => ({
          idSuffix: idSuffix(LANE.tenant),
          lane: LANE,
          input: "1",
          options: undefined,
          delay: ms,
        })),
      );
  }
  const idSuffix = idSuffixSource((size) => randomBytes(size));
  /** With an idempotency key each, so that every one is a row of its own, and leaves a dead one. */
  async function enqueue(count: number): Promise<void> {
    for (let left = count; left > 0; left -= 1_000)
      await store.jobs.enqueue(
        Array.from({ length: Math.min(left, 1_000) }, () => ({
          idSuffix: idSuffix(LANE.tenant),
          lane: LANE,
          input: "1",
          options: undefined,
          request: { id: randomUUID(), digest: "d" },
        })),
      );
  }
  /** Claims and settles one batch, and answers what the claim cost. */
  async function claimOne(of = { store, driver }, limit = FEW): Promise<number> {
    const before = await pages(of.driver);
    const claimed = await of.store.leases.claim({ worker: WORKER, quotas: [{ lane: LANE, quota: limit }], duration: 60_000 });
    const cost = (await pages(of.driver)) - before;
    expect(claimed?.jobs).toHaveLength(limit);
    await of.store.leases.settle(
      WORKER,
      (claimed?.jobs ?? []).map(({ id }) => ({
        lease: claimed?.lease as never,
        job: id,
        lane: LANE,
        startedAt: claimed?.now as number,
        finishedAt: claimed?.now as number,
        patch: { outcome: "succeeded", next: "succeeded", attempts: 1, crashes: 0 },
      })),
    );
    return cost;
  }
  /** The middle of several: now and then one sweeps from further back. */
  async function costOfClaims(count: number): Promise<number> {
    const costs: number[] = [];
    for (let n = 0; n < count; n++) costs.push(await claimOne());
    return costs.sort((a, b) => a - b)[Math.floor(count / 2)] as number;
  }

  test("E1: while another transaction pins old rows, a claim goes on to cost what it cost before, however many are dead", async () => {
    await enqueue(15_000);
    const before = await costOfClaims(5);
    const pin = new pg.Client(database.config);
    await pin.connect();
    await pin.query("begin isolation level repeatable read");
    await pin.query("select count(*) from pawl.ready");
    for (let n = 0; n < 25; n++) {
      await claimOne({ store, driver }, 500);
      if (n % 10 === 0) await store.lanes.live(undefined, [LANE.task]);
    }
    const pinned = await costOfClaims(5);
    expect(pinned).toBeLessThan(2 * before);
    // Who knows nothing of what was claimed walks over all of it: the measure sees that.
    expect(await claimOne(await process())).toBeGreaterThan(3 * before);
    await pin.query("rollback");
    await pin.end();
  }, 120_000);

  test("E2: a claim costs the same with a thousand jobs waiting and with fifty thousand", async () => {
    await enqueue(1_000);
    const few = await costOfClaims(3);
    await enqueue(50_000);
    const many = await costOfClaims(3);
    expect(few).toBeGreaterThan(0);
    expect(many).toBeLessThan(2 * few);
  }, 120_000);

  test("E2: seeing what is due and promoting it costs the same beside a thousand delayed jobs and beside fifty thousand", async () => {
    const promotion = async () => {
      await delay(FEW, 1);
      await eventually("they are due", async () => ((await store.duties.poll()).due.get("promote") ?? 1) <= -1);
      return costOf(async () => {
        await store.duties.poll();
        expect(await dutiesOf(store).promote(100)).toMatchObject({ count: FEW });
      }, "^scheduled$");
    };
    await delay(1_000, 3_600_000);
    const few = await promotion();
    await delay(50_000, 3_600_000);
    expect(few).toBeGreaterThan(0);
    expect(await promotion()).toBeLessThan(2 * few);
  }, 120_000);

  test("counts and what there is to know of a store are read without a look at its jobs", async () => {
    await enqueue(1_000);
    await delay(1_000, 3_600_000);
    await claimOne();
    const counts = await costOf(
      async () => expect((await store.records.counts())[0]?.counts).toMatchObject({ ready: 990, scheduled: 1_000 }),
      PER_JOB,
    );
    expect(counts, "pages of counts").toBe(0);
    expect(await costOf(async () => [await store.lanes.paused(), await store.tasks.get([LANE.task])], PER_JOB), "pages of the lists").toBe(0);
    expect(await costOf(() => store.jobs.list("everyone", {}, { limit: 10 }), PER_JOB), "the measure sees a look").toBeGreaterThan(0);
  }, 120_000);
});

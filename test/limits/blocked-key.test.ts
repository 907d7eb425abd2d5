import { randomBytes, randomUUID } from "node:crypto";
import pg from "pg";
import { expect, test } from "vitest";
import { type InstanceId, idSuffixSource, type JobId } from "../../packages/pawl/src/core/jobs/id.js";
import type { JobOptions } from "../../packages/pawl/src/core/jobs/job.js";
import type { LimitRule } from "../../packages/pawl/src/core/limits/limit-rule.js";
import type { Store } from "../../packages/pawl/src/store/port/index.js";
import type { Driver } from "../../packages/pawl/src/store/postgres/drivers/driver.js";
import { pgDriver } from "../../packages/pawl/src/store/postgres/drivers/pg.js";
import { finish } from "../../packages/pawl/src/store/postgres/open.js";
import { describeOn, freshDatabase } from "../support/servers/servers.js";

const LANE = { queue: "default", priority: 5, tenant: "acme", task: "call" } as const;
const WORKER = { name: "ana", instance: randomUUID() as InstanceId };
const BLOCKED = 100_000;
const FEW = 50;

const under = (key: string, rule: LimitRule): JobOptions => ({ limits: [{ limit: "per account", key, rule }] });
const blocked = under("blocked", { concurrency: 1 });

/** Everything that a job under a limit has a row in, and what claims take from. */
const TABLES = "^(ready|suspect|parked|job_limits|slot|limit_key|limit_check)$";
const WAITING = "^(parked|job_limits)$";
/** Pages that were touched: what a call costs, whatever else the machine is doing. */
const PAGES = `select coalesce(sum(coalesce(heap_blks_read, 0) + coalesce(heap_blks_hit, 0) + coalesce(idx_blks_read, 0) + coalesce(idx_blks_hit, 0)), 0)::int as pages
  from pg_statio_user_tables where schemaname = 'pawl' and relname ~ $1`;

interface Costs {
  readonly enqueue: number;
  readonly claim: number;
  /** of those who wait at limit keys */
  readonly claimOfWaiting: number;
  readonly settle: number;
}

describeOn("embedded18", () => {
  test("with 100,000 jobs of one blocked key in front, others of the lane are enqueued, claimed and settled as if there were none", async () => {
    await using database = await freshDatabase();
    const control = new pg.Client(database.config);
    await control.connect();
    // One connection: its count of pages is told when it is asked for, not a second later.
    const driver: Driver = pgDriver({
      config: { ...database.config, max: 1, options: "-c synchronous_commit=off" },
      prepare: "auto",
      statementTimeout: 60_000,
    });
    const store: Store = await finish(driver, { engine: "postgres", place: "test", durability: "process" }, {});
    const idSuffix = idSuffixSource((size) => randomBytes(size));
    const enqueue = (count: number, options: (index: number) => JobOptions | undefined) =>
      store.jobs.enqueue(
        Array.from({ length: count }, (_, index) => ({ idSuffix: idSuffix(LANE.tenant), lane: LANE, input: "1", options: options(index) })),
      );
    const claim = () => store.leases.claim({ worker: WORKER, quotas: [{ lane: LANE, quota: 2 * FEW }], duration: 600_000 });

    async function pages(tables: string): Promise<number> {
      await driver.script("select pg_stat_force_next_flush()");
      await driver.script("select 1");
      return (await control.query<{ pages: number }>(PAGES, [tables])).rows[0]?.pages ?? 0;
    }
    async function costOf<T>(call: () => Promise<T>, tables = TABLES): Promise<{ readonly answer: T; readonly cost: number }> {
      const before = await pages(tables);
      const answer = await call();
      return { answer, cost: (await pages(tables)) - before };
    }
    /** Others: as many without a key as of keys of their own, each with an empty line. */
    async function others(): Promise<Costs> {
      const fresh = randomUUID();
      const enqueued = await costOf(() =>
        enqueue(2 * FEW, (index) => (index % 2 === 0 ? undefined : under(`${fresh} ${index}`, { concurrency: 1 }))),
      );
      const ids = enqueued.answer.map((one) => (one as { id: JobId }).id);
      const waitingBefore = await pages(WAITING);
      const claimed = await costOf(claim);
      const claimOfWaiting = (await pages(WAITING)) - waitingBefore;
      const { lease, now, jobs } = claimed.answer as NonNullable<Awaited<ReturnType<typeof claim>>>;
      expect(jobs.map(({ id }) => id).sort(), "all of them are started by the next claim").toEqual([...ids].sort());
      const settled = await costOf(() =>
        store.leases.settle(
          WORKER,
          jobs.map(({ id, options }) => ({
            lease,
            job: id,
            lane: LANE,
            startedAt: now,
            finishedAt: now,
            patch: { outcome: "succeeded", next: "succeeded", attempts: 1, crashes: 0 },
            ...(options?.limits === undefined ? {} : { limited: true }),
          })),
        ),
      );
      return { enqueue: enqueued.cost, claim: claimed.cost, claimOfWaiting, settle: settled.cost };
    }

    try {
      // The first of them takes the one place there is, and keeps it.
      await enqueue(1, () => blocked);
      expect((await claim())?.jobs).toHaveLength(1);
      await others();
      const without = await others();
      for (let stored = 0; stored < BLOCKED; stored += 1_000) await enqueue(1_000, () => blocked);
      expect((await store.records.counts())[0]?.counts).toMatchObject({ parked: BLOCKED, ready: 0, running: 1 });
      await control.query("vacuum analyze");
      await others();
      const beside = await others();
      // An index is a level deeper; to look at those who wait would be thousands of pages.
      for (const verb of ["enqueue", "claim", "settle"] as const) expect(beside[verb], `pages of ${verb}`).toBeLessThan(1.5 * without[verb] + FEW);
      expect(beside.claimOfWaiting, "pages of those who wait that a claim looks at").toBe(0);
      const { cost } = await costOf(() => driver.script("select count(*) from pawl.parked"), WAITING);
      expect(cost, "the measure sees a look at all of them").toBeGreaterThan(1_000);
    } finally {
      await store.close();
      await control.end();
    }
  }, 300_000);
});

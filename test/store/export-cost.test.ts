import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import type { InstanceId } from "../../packages/pawl/src/core/jobs/id.js";
import { startPawl } from "../../packages/pawl/src/pawl.js";
import type { Driver, Queryable } from "../../packages/pawl/src/store/postgres/drivers/driver.js";
import { pgDriver } from "../../packages/pawl/src/store/postgres/drivers/pg.js";
import { finish } from "../../packages/pawl/src/store/postgres/open.js";
import { describeOn, migratedDatabase } from "../support/servers/servers.js";

const WORKER = { name: "export", instance: randomUUID() as InstanceId };
/** jobs that an export reads at a time */
const PAGE = 500;
/** Of few jobs and of many. A share of them has run. */
const FEW = { waiting: 2 * PAGE, run: PAGE };
const MANY = { waiting: 8 * PAGE, run: 4 * PAGE };
/** Blocks of tables and indexes that were looked at, whatever else the machine is doing. */
const BLOCKS = `select coalesce(sum(coalesce(heap_blks_read, 0) + coalesce(heap_blks_hit, 0) + coalesce(idx_blks_read, 0) + coalesce(idx_blks_hit, 0)), 0)::int as blocks
  from pg_statio_user_tables where schemaname = 'pawl'`;

/** The same driver, which counts statements. */
function counting(driver: Driver): { readonly driver: Driver; readonly statements: () => number } {
  let statements = 0;
  const counted = <T extends Queryable>(on: T): T =>
    new Proxy(on, {
      get(target, name) {
        const value = Reflect.get(target, name, target) as unknown;
        if (typeof value !== "function") return value;
        if (name === "query" || name === "run") statements++;
        if (name === "transaction" || name === "reading")
          return (work: (on: Queryable) => Promise<unknown>) => value.call(target, (inner: Queryable) => work(counted(inner)));
        return value.bind(target);
      },
    });
  return { driver: counted(driver), statements: () => statements };
}

describeOn("embedded18", () => {
  test("an export costs statements and blocks in proportion to its jobs, with histories and lines", { timeout: 120_000 }, async () => {
    const costOf = async ({ waiting, run }: typeof FEW) => {
      const database = await migratedDatabase();
      // One connection: its count of blocks is told when it is asked for, not a second later.
      const only = pgDriver({ config: { ...database.config, max: 1 }, prepare: "auto", statementTimeout: 60_000 });
      const { driver, statements } = counting(only);
      const store = await finish(driver, { engine: "postgres", place: "test", durability: "process" }, {});
      const pawl = await startPawl(store, { allowUnknownTasks: true, maintenance: false });
      try {
        const blocks = async () => {
          await only.script("select pg_stat_force_next_flush()");
          await only.script("select 1");
          const [row] = await only.query<{ blocks: number }>({ name: "blocks_looked_at", text: BLOCKS });
          return (row as { blocks: number }).blocks;
        };
        const lane = { queue: "default", priority: 5, tenant: "default", task: "t" } as const;
        await pawl.enqueueMany("t", Array.from({ length: run }));
        for (let left = run; left > 0; ) {
          const claimed = await store.leases.claim({ worker: WORKER, quotas: [{ lane, quota: 100 }], duration: 600_000 });
          if (claimed === undefined) throw new Error(`${left} jobs could not be claimed`);
          const { lease, now, jobs } = claimed;
          await store.records.log(
            WORKER,
            jobs.map(({ id }) => ({ lease, job: id, at: now, level: "info" as const, message: "hello" })),
          );
          await store.leases.settle(
            WORKER,
            jobs.map(({ id }) => ({
              lease,
              job: id,
              lane,
              startedAt: now,
              finishedAt: now,
              patch: { outcome: "succeeded" as const, next: "succeeded" as const, attempts: 1, crashes: 0 },
            })),
          );
          left -= jobs.length;
        }
        await pawl.enqueueMany("t", Array.from({ length: waiting }), { delay: "1h" });
        await only.script("vacuum analyze");
        const before = { statements: statements(), blocks: await blocks() };
        let jobs = 0;
        let lines = 0;
        for await (const entry of pawl.tenants.export("default")) {
          if (entry.kind !== "job") continue;
          jobs++;
          lines += entry.logs.length;
        }
        expect({ jobs, lines }).toEqual({ jobs: waiting + run, lines: run });
        return { statements: statements() - before.statements, blocks: (await blocks()) - before.blocks };
      } finally {
        await pawl.close();
        await database.drop();
      }
    };
    const few = await costOf(FEW);
    const many = await costOf(MANY);
    const pages = (MANY.waiting + MANY.run - FEW.waiting - FEW.run) / PAGE;
    // So many for a page, however many jobs it has; asked job by job it would be hundreds.
    expect((many.statements - few.statements) / pages).toBeLessThanOrEqual(16);
    expect(many.blocks).toBeLessThan(6 * few.blocks);
  });
});

import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { type Pawl, task } from "../../packages/pawl/src/index.js";
import { startPawl } from "../../packages/pawl/src/pawl.js";
import type { Operation } from "../../packages/pawl/src/store/around.js";
import type { Store } from "../../packages/pawl/src/store/port.js";
import { pgDriver } from "../../packages/pawl/src/store/postgres/drivers/pg.js";
import { finish, openPostgres } from "../../packages/pawl/src/store/postgres/open.js";
import { faultyStore } from "../../packages/pawl/src/testing/faulty.js";
import { eventually } from "../support/eventually.js";
import { faultyDriver } from "../support/faulty-driver.js";
import { type Database, describeOn, freshDatabase } from "../support/servers.js";
import { strand } from "../support/strand.js";

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

async function database(): Promise<Database> {
  const fresh = await freshDatabase();
  ends.push(fresh.drop);
  return fresh;
}

const quick = task("quick", () => "done");
const PACE = { pulse: "50ms", sweep: "50ms", lease: "200ms", prune: "100ms" } as const;

describeOn("embedded18", () => {
  describe("one that fails for ever does not stop the rest", () => {
    const DUTIES: readonly Operation[] = [
      "duties.promote",
      "leases.reap",
      "duties.expire",
      "duties.unblock",
      "duties.carryOut",
      "duties.fold",
      "duties.prune",
      "duties.pulse",
    ];
    for (const broken of DUTIES) {
      it(`${broken} (B4)`, async () => {
        const { url } = await database();
        const inner = await openPostgres({ url });
        const store: Store = faultyStore(inner, (operation) => (operation === broken ? { kind: "fail" } : undefined));
        const pawl = await startPawl(store, { tasks: [quick], maintenance: PACE });
        ends.push(() => pawl.close());
        const failed: string[] = [];
        pawl.on("duty.failed", ({ duty }) => failed.push(duty));
        await strand(inner, "quick", 3, { lease: 50 });
        await pawl.work({ poll: "100ms" });

        const now = await pawl.enqueueMany(quick, Array.from({ length: 20 }));
        const delayed = await pawl.enqueue(quick, undefined, { delay: "100ms" });
        const late = await pawl.enqueue("elsewhere.quick" as string, {}, {}).catch(() => undefined);
        expect(late, "unknown tasks are refused here").toBeUndefined();
        for (const job of now) expect(await job.result({ timeout: "20s" })).toBe("done");
        if (broken !== "duties.promote") expect(await delayed.result({ timeout: "20s" })).toBe("done");
        if (broken !== "leases.reap") await eventually("the stranded ones have run", async () => (await pawl.counts()).running === 0, 20_000);
        await eventually("its failure is told", () => failed.length > 0, 20_000);
        expect(new Set(failed).size, "of that one alone").toBe(1);
      });
    }
  });

  it("an error at any statement of a reaping leaves everything for the next one (B2)", async () => {
    const { url } = await database();
    const plain = await openPostgres({ url });
    ends.push(() => plain.close());
    const pools = { config: { connectionString: url, max: 2 }, prepare: "auto", statementTimeout: 10_000 } as const;
    const faulty = faultyDriver(pgDriver(pools));
    const store = await finish(faulty.driver, { engine: "postgres", place: "test", durability: "process" }, { migrate: false });
    ends.push(() => store.close());

    for (const how of ["refused", "connection lost"] as const) {
      let broken = true;
      for (let k = 0; broken; k++) {
        const ids = await strand(plain, "quick", 5, { lease: 1 });
        await eventually("their lease has run out", async () => ((await plain.duties.pulse()).leaseIn ?? 1) <= 0);
        faulty.breakAt(k, how);
        broken = await store.leases.reap(10).then(
          () => false,
          () => true,
        );
        faulty.heal();
        if (broken) expect(await store.leases.reap(10), `after ${how} at statement ${k}`).toEqual({ leases: 1, jobs: 5 });
        for (const id of ids) {
          expect((await plain.jobs.history("everyone", id)).map(({ outcome }) => outcome)).toEqual(["crashed"]);
          expect((await plain.jobs.get("everyone", id))?.state).toBe("ready");
        }
        if (!broken) expect(k, "statements tried").toBeGreaterThan(3);
      }
    }
  });

  it("of fifty jobs in a batch, those that cannot be decoded or whose rows are gone die alone (B3)", async () => {
    const { url } = await database();
    const pawl = await opened(url);
    const jobs = await pawl.enqueueMany(
      "strict",
      Array.from({ length: 50 }, (_, n) => ({ n })),
    );
    const [corrupt, gone, ...fine] = jobs;
    const { default: pg } = await import("pg");
    const client = new pg.Client(url);
    await client.connect();
    await client.query(`update pawl.job set input = '{"n": "seven"}' where id = $1`, [corrupt?.id]);
    await client.query("delete from pawl.job where id = $1", [gone?.id]);
    await pawl.work({ concurrency: 50 });
    for (const job of fine) expect(await job.result({ timeout: "20s" })).toMatch(/^ran/);
    await expect(corrupt?.result({ timeout: "20s" })).rejects.toMatchObject({ code: "job_failed" });
    expect(await corrupt?.get()).toMatchObject({ state: "dead", failure: { kind: "undecodable" } });
    await eventually("the one without a row is dead", async () => {
      const { rows } = await client.query("select kind from pawl.dead where id = $1", [gone?.id]);
      return rows.length > 0 && expect(rows).toEqual([{ kind: "undecodable" }]) === undefined;
    });
    expect((await client.query("select from pawl.lease")).rowCount).toBe(0);
    await client.end();
  });

  it("100,000 stranded jobs are claimable again within 30 s (E8, B5)", async () => {
    const { url } = await database();
    const store = await openPostgres({ url });
    ends.push(() => store.close());
    await strand(store, "quick", 100_000, { lease: 1 });
    const pawl = await startPawl(await openPostgres({ url }), { tasks: [quick], maintenance: { lease: "1s", sweep: "2s", pulse: "1s" } });
    const began = performance.now();
    ends.push(() => pawl.close());
    await eventually("all are ready", async () => (await pawl.counts()).ready === 100_000, 60_000);
    const took = performance.now() - began;
    console.log(`100,000 stranded jobs came back in ${Math.round(took)} ms`);
    expect(took).toBeLessThan(30_000);
  }, 120_000);
});

async function opened(url: string): Promise<Pawl> {
  const { open } = await import("../../packages/pawl/src/index.js");
  const strict = task("strict", { input: z.object({ n: z.number() }), retry: 0 }, ({ n }) => `ran ${n}`);
  const pawl = await open(url, { tasks: [strict], maintenance: PACE });
  ends.push(() => pawl.close());
  return pawl;
}

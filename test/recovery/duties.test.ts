import pg from "pg";
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { dutiesOf } from "../../packages/pawl/conformance/duties.js";
import { pawlError } from "../../packages/pawl/src/core/values/error.js";
import { open, task } from "../../packages/pawl/src/index.js";
import { startPawl } from "../../packages/pawl/src/pawl.js";
import { pgDriver } from "../../packages/pawl/src/store/postgres/drivers/pg.js";
import { finish, openPostgres } from "../../packages/pawl/src/store/postgres/open.js";
import type { Operation } from "../../packages/pawl/src/store/wrap/wrap-store.js";
import { faultyStore } from "../../packages/pawl/src/testing/faulty.js";
import { eventually } from "../support/eventually.js";
import { strandJobs } from "../support/fixtures/strand-jobs.js";
import { faultyDriver } from "../support/servers/faulty-driver.js";
import { type Database, describeOn, migratedDatabase } from "../support/servers/servers.js";

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

async function database(): Promise<Database> {
  const fresh = await migratedDatabase();
  ends.push(fresh.drop);
  return fresh;
}

async function connected(url: string): Promise<pg.Client> {
  const client = new pg.Client(url);
  ends.push(() => client.end());
  await client.connect();
  return client;
}

const quick = task("quick", () => "done");
const idle = task("idle", () => "never served here");
const PACE = { pollInterval: "50ms", reapInterval: "50ms", leaseDuration: "200ms", pruneInterval: "100ms" } as const;
/** What becomes of a statement that the server itself refuses; not that of a store that is away. */
const refused = (operation: string) => pawlError("store_failed", { operation, reason: "made to fail" });
const WAIT = "20s";

describeOn("embedded18", () => {
  describe("a duty that fails for ever does not stop the rest", () => {
    const DUTIES: readonly Operation[] = [
      "duties.promote",
      "duties.reap",
      "duties.expire",
      "duties.unblock",
      "duties.carry out intents",
      "duties.fold counts",
      "duties.prune",
      "duties.poll",
      "duties.tick",
    ];
    for (const broken of DUTIES) {
      it(`${broken} (B4)`, async () => {
        const { url } = await database();
        const inner = await openPostgres({ url });
        const store = faultyStore(inner, (operation) => (operation === broken ? { kind: "fail", error: refused(operation) } : undefined));
        const pawl = await startPawl(store, { tasks: [quick, idle], maintenance: PACE });
        ends.push(() => pawl.close());
        const failed: string[] = [];
        pawl.on("duty.failed", ({ duty }) => failed.push(duty));

        // Something for every one of them to do.
        await pawl.schedules.put("every second", quick, { every: "1s" });
        const [parent] = await strandJobs(inner, "quick", 3, { lease: 1_000 });
        const [asked] = await strandJobs(inner, "quick", 1, { lease: 1_000 });
        const child = await pawl.enqueue(quick, undefined, { dependsOn: parent as string });
        // As if its parent had ended while it was being enqueued.
        await (await connected(url)).query("update pawl.dependency set verified = false");
        await pawl.jobs.cancel(asked as string);
        const expiring = await pawl.enqueue(idle, undefined, { startWithin: "100ms" });
        const delayed = await pawl.enqueue(quick, undefined, { delay: "100ms" });
        await pawl.work({ pollInterval: "100ms", tasks: ["quick"] });

        for (const job of await pawl.enqueueMany(quick, Array.from({ length: 20 }))) expect(await job.result(WAIT)).toBe("done");
        if (broken !== "duties.promote") expect(await delayed.result(WAIT)).toBe("done");
        if (broken !== "duties.reap") expect(await child.result(WAIT)).toBe("done");
        if (broken !== "duties.reap") expect(await pawl.jobs.wait(asked as string, WAIT)).toMatchObject({ state: "cancelled" });
        if (broken !== "duties.expire") expect(await pawl.jobs.wait(expiring, WAIT)).toMatchObject({ state: "dead" });
        await eventually("its failure is told", () => failed.length > 0);
        expect(new Set(failed).size, "of that one alone").toBe(1);
      });
    }
  });

  it("an error at any statement of a reaping leaves everything for the next one (B2)", async () => {
    const { url } = await database();
    const plain = await openPostgres({ url });
    ends.push(() => plain.close());
    const faulty = faultyDriver(pgDriver({ config: { connectionString: url, max: 2 }, prepare: "auto", statementTimeout: 10_000 }));
    const store = await finish(faulty.driver, { engine: "postgres", place: "test", durability: "process" }, { migrate: false });
    ends.push(() => store.close());

    for (const how of ["refused", "connection lost"] as const) {
      let broken = true;
      for (let k = 0; broken; k++) {
        const ids = await strandJobs(plain, `${how} at ${k}`, 5, { lease: 1 });
        await eventually("their lease has run out", async () => ((await plain.duties.poll()).due.get("reap") ?? 1) <= 0);
        faulty.breakAt(k, how);
        broken = await dutiesOf(store)
          .reap(10)
          .then(
            () => false,
            () => true,
          );
        faulty.heal();
        if (broken) expect(await dutiesOf(store).reap(10), `after ${how} at statement ${k}`).toEqual({ leases: 1, jobs: 5 });
        for (const id of ids) {
          expect((await plain.jobs.history("everyone", id)).map(({ outcome }) => outcome)).toEqual(["crashed"]);
          expect((await plain.jobs.get("everyone", id))?.state).toBe("ready");
        }
        if (!broken) expect(k, "statements tried").toBeGreaterThan(3);
      }
    }
  });

  it("of fifty jobs in a batch, one that cannot be decoded dies alone, also where its ready row carried the input (B3)", async () => {
    const { url } = await database();
    const strict = task("strict", { input: z.object({ n: z.number() }), retry: 0 }, ({ n }) => `ran ${n}`);
    const pawl = await open(url, { tasks: [strict], maintenance: PACE });
    ends.push(() => pawl.close());
    const [corrupt, ...fine] = await pawl.enqueueMany(
      strict,
      Array.from({ length: 50 }, (_, n) => ({ n })),
    );
    const client = await connected(url);
    expect(
      (
        await client.query(`update pawl.ready set inputs = replace(inputs, '{"n":0}', '{"n": "seven"}') where jobs[1] = $1 and size = 50`, [
          corrupt?.id,
        ])
      ).rowCount,
    ).toBe(1);
    await pawl.work({ concurrency: 50 });
    for (const job of fine) expect(await job.result(WAIT)).toMatch(/^ran/);
    await expect(corrupt?.result(WAIT)).rejects.toMatchObject({ code: "job_failed" });
    expect(await corrupt?.get()).toMatchObject({ state: "dead", failure: { kind: "undecodable" } });
  });

  it("of fifty jobs in a batch, those that cannot be decoded or whose rows are gone die alone (B3)", async () => {
    const { url } = await database();
    // So long that a claim looks each of them up.
    const padding = "x".repeat(100);
    const strict = task("strict", { input: z.object({ n: z.number(), padding: z.string() }), retry: 0 }, ({ n }) => `ran ${n}`);
    const pawl = await open(url, { tasks: [strict], maintenance: PACE });
    ends.push(() => pawl.close());
    const inputs = Array.from({ length: 50 }, (_, n) => ({ n, padding }));
    const [corrupt, gone, ...fine] = await pawl.enqueueMany(strict, inputs);
    const client = await connected(url);
    await client.query(`update pawl.job set input = '{"n": "seven"}' where id = $1`, [corrupt?.id]);
    await client.query("delete from pawl.job where id = $1", [gone?.id]);
    await pawl.work({ concurrency: 50 });
    for (const job of fine) expect(await job.result(WAIT)).toMatch(/^ran/);
    await expect(corrupt?.result(WAIT)).rejects.toMatchObject({ code: "job_failed" });
    expect(await corrupt?.get()).toMatchObject({ state: "dead", failure: { kind: "undecodable" } });
    const deaths = async () => (await client.query<{ kind: string }>("select kind from pawl.dead where id = $1", [gone?.id])).rows;
    const [death] = await eventually("the one without a row is dead", async () => (await deaths()).length > 0 && (await deaths()));
    expect(death).toEqual({ kind: "undecodable" });
    expect((await client.query("select from pawl.lease")).rowCount).toBe(0);
  });
});

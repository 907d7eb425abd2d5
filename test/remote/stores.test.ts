import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type OpenOptions, open, task } from "pawl";
import { describe, expect, test } from "vitest";
import { createApp } from "../../packages/server/src/http/app.js";
import { onceOrAgain } from "../support/again.js";
import { describeOn, migratedDatabase } from "../support/servers/servers.js";

type Where = () => Promise<{ readonly url: string; readonly options?: OpenOptions; readonly end: () => Promise<unknown> }>;

/** What the pull protocol asks of a store, on the stores that people run. */
function suite(where: Where): void {
  test("a remote worker drains a bulk, retries, and is bound by a limit; another process settles what the first handed out", async () => {
    const { url, options = {}, end } = await where();
    const store = await open(url, options);
    const first = createApp({ pawl: store });
    const address = await first.listen({ host: "127.0.0.1", port: 0 });
    let most = 0;
    let now = 0;
    const plain = task("plain", (n: number) => n);
    const flaky = task("flaky", { retry: [1] }, (_: unknown, ctx) => {
      if (ctx.attempt === 1) throw new Error("once");
    });
    const limited = task("limited", async () => {
      most = Math.max(most, ++now);
      await new Promise((resolve) => setImmediate(resolve));
      now--;
    });
    let go = () => {};
    const barrier = new Promise<void>((resolve) => {
      go = resolve;
    });
    let begun = () => {};
    const started = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const long = task("long", async (_: unknown, ctx) => {
      begun();
      await barrier;
      return ctx.attempt;
    });
    const pawl = await open(address, { tasks: [plain, flaky, limited, long] });
    try {
      await pawl.tasks.update("limited", { concurrency: 1 });
      const jobs = [
        ...(await pawl.enqueueMany(
          plain,
          Array.from({ length: 700 }, (_, n) => n),
        )),
        ...(await pawl.enqueueMany(flaky, [1, 2, 3])),
        ...(await pawl.enqueueMany(limited, [1, 2, 3, 4])),
      ];
      await pawl.work({ concurrency: 10 });
      for (const view of await Promise.all(jobs.map((job) => store.jobs.wait(job, "80s"))))
        expect(view).toMatchObject({ state: "succeeded", crashes: 0 });
      expect(most).toBe(1);

      const job = await pawl.enqueue(long);
      await started;
      await first.close();
      const second = createApp({ pawl: store });
      await second.listen({ host: "127.0.0.1", port: Number(new URL(address).port) });
      go();
      expect(await store.jobs.wait(job, "80s")).toMatchObject({ state: "succeeded", output: 1, attempts: 1, crashes: 0 });
      await pawl.close();
      await second.close();
    } finally {
      await pawl.close();
      await first.close();
      await store.close();
      await end();
    }
  });
}

const WHERE: readonly (() => void)[] = [
  () =>
    describe("the pull protocol on the embedded Postgres", () =>
      suite(async () => {
        const database = await migratedDatabase();
        return { url: database.url, end: () => database.drop() };
      })),
  () =>
    describeOn("debian15", () =>
      suite(async () => {
        const database = await migratedDatabase("debian15");
        return { url: database.url, end: () => database.drop() };
      }),
    ),
  () =>
    describe("the pull protocol on PGlite", () =>
      suite(async () => {
        const folder = await mkdtemp(join(tmpdir(), "pawl-pull-"));
        return { url: folder, options: { engine: "pglite" }, end: () => rm(folder, { recursive: true, force: true }) };
      })),
];
for (const define of onceOrAgain(WHERE)) define();

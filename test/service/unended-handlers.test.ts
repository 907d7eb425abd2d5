import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { eventually } from "../support/eventually.js";
import { NodeProcess } from "../support/processes/child-process.js";
import { Standstill } from "../support/processes/standstill.js";
import { childScript } from "../support/processes/worker-process.js";
import { describeOn, migratedDatabase } from "../support/servers/servers.js";
import { temporaryFolder } from "../support/temporary-folder.js";
import { ServiceProcess } from "./service.js";

/** One handler that never ends, and one that ends when it is told to. */
const TASKS = `
  const task = (name, handler, options = {}) => ({ name, options, schema: undefined, handler });
  export const deaf = task("deaf", () => new Promise(() => setInterval(() => {}, 60_000)));
  export const lost = task("lost", () => new Promise(() => setInterval(() => {}, 60_000)), { timeout: "1s", retry: 0 });
  export const quick = task("quick", () => {});
  export const polite = task("polite", (_, { signal }) => new Promise((resolve) => signal.addEventListener("abort", () => setTimeout(resolve, 100))));
`;

/** A process with one handler under way, and what becomes of its job. */
async function busy(command: "serve" | "dev", task: string, work: (child: ServiceProcess) => Promise<void>, args: readonly string[] = []) {
  using folder = temporaryFolder();
  const tasks = join(folder.path, "tasks");
  mkdirSync(tasks, { recursive: true });
  writeFileSync(join(tasks, "tasks.mjs"), TASKS);
  await using database = await migratedDatabase();
  const env = { PAWL_STORE: database.url, PAWL_SHUTDOWN_GRACE: "500ms", PAWL_LOG_LEVEL: "debug" };
  await using child = new ServiceProcess(command, ["--listen", "127.0.0.1:0", "--tasks", tasks, ...args], env);
  const address = await child.address();
  await child.line(command === "dev" ? /^ready/ : /^components/);
  const job = await ServiceProcess.enqueue(address, task, {});
  const state = async () => ((await (await fetch(`${address}/v1/jobs/${job}`)).json()) as { state: string }).state;
  await eventually("it has begun", async () => (await state()) !== "ready");
  await work(child);
}

describeOn("embedded18", () => {
  describe.concurrent("a process", () => {
    describe("told to stop, with a handler that does not end,", () => {
      test.each(["serve", "dev"] as const)(
        "pawl %s exits with 70 after its drain, and its last line says why",
        { timeout: 120_000 },
        async (command) => {
          await busy(command, "deaf", async (child) => {
            using still = new Standstill();
            const signalledAt = performance.now();
            child.signal("SIGTERM");
            expect(await child.exit()).toBe(70);
            expect(performance.now() - signalledAt).toBeLessThan(20_000 + still.ms);
            expect(child.lines.at(-1)).toMatch(/stopped.* 1 handler did not end in time.*exiting with 70/);
          });
        },
      );

      test.each(["deaf", "deaf in a transaction", "deaf in a statement"])(
        "a program that closes on signals exits with 70, also where the handler is %s",
        { timeout: 120_000 },
        async (handler) => {
          await using database = await migratedDatabase();
          await using child = new NodeProcess(await childScript("unresponsive-child"), [database.url, handler]);
          await child.line(/^running/);
          using still = new Standstill();
          const signalledAt = performance.now();
          child.signal("SIGTERM");
          expect(await child.exit()).toBe(70);
          expect(performance.now() - signalledAt).toBeLessThan(20_000 + still.ms);
          expect(child.lines.at(-1)).toBe("stopped: 1 given back, 1 go on");
        },
      );

      test("a second signal ends it at once", { timeout: 120_000 }, async () => {
        await using database = await migratedDatabase();
        await using child = new NodeProcess(await childScript("unresponsive-child"), [database.url, "deaf"]);
        await child.line(/^running/);
        child.signal("SIGTERM");
        child.signal("SIGINT");
        expect([130, 143]).toContain(await child.exit());
      });
    });

    describe("told to stop, with handlers that end when they are told to,", () => {
      test.each(["serve", "dev"] as const)("pawl %s exits with 0", { timeout: 120_000 }, async (command) => {
        await busy(command, "polite", async (child) => {
          child.signal("SIGTERM");
          expect(await child.exit()).toBe(0);
          expect(child.lines.at(-1)).toMatch(/^stopped *$/);
        });
      });

      test("so does a program that closes on signals", { timeout: 120_000 }, async () => {
        await using database = await migratedDatabase();
        await using child = new NodeProcess(await childScript("unresponsive-child"), [database.url, "polite"]);
        await child.line(/^running/);
        child.signal("SIGTERM");
        expect(await child.exit()).toBe(0);
      });
    });

    describe("stuck, with as many handlers lost as it may lose,", () => {
      test("pawl serve says so, is not ready, and exits with 75 to be replaced", { timeout: 180_000 }, async () => {
        await busy(
          "serve",
          "lost",
          async (child) => {
            expect(await child.exit()).toBe(75);
            const [stuck, ...after] = child.lines.slice(child.lines.findIndex((line) => line.includes("is stuck")));
            expect(stuck).toMatch(/ERROR .*is stuck: 1 handler of 10 went on long after their time.*code=worker_stuck/);
            expect(after.join("\n")).toMatch(/exiting with 75, to be replaced/);
          },
          ["--worker-most-lost", "1"],
        );
      });

      test("the worker of pawl dev is replaced by another one", { timeout: 180_000 }, async () => {
        await busy(
          "dev",
          "lost",
          async (child) => {
            await child.line(/exiting with 75, to be replaced/);
            await child.line(/^replacing/);
            await ServiceProcess.enqueue(await child.address(), "quick", {});
            await child.line(/quick +succeeded/);
            child.signal("SIGTERM");
            expect(await child.exit()).toBe(0);
          },
          ["--worker-most-lost", "1"],
        );
      });
    });
  });
});

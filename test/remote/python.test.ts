import { spawn, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { service } from "./local-and-remote.js";

const SCRIPT = fileURLToPath(new URL("../../examples/python/worker.py", import.meta.url));
const missing = spawnSync("python3", ["--version"]).status !== 0;

describe.skipIf(missing)(`the worker in Python${missing ? " (skipped: there is no python3)" : ""}`, () => {
  test("claims, retries, hears of a cancellation and settles, with its standard library alone", async () => {
    const { url, store } = await service();
    const worker = spawn("python3", ["-I", SCRIPT], { env: { PATH: process.env.PATH, PAWL_URL: url }, stdio: ["ignore", "ignore", "pipe"] });
    let said = "";
    worker.stderr.on("data", (chunk) => {
      said += chunk;
    });
    try {
      const good = await store.enqueue("resize", { width: 800, failures: 1 });
      const broken = await store.enqueue("resize", { width: 1, broken: true });
      const stuck = await store.enqueue("resize", { width: 1, wait: true });
      expect(await good.result("60s"), said).toEqual({ width: 400, attempt: 2 });
      expect((await good.history()).items.map(({ outcome }) => outcome)).toEqual(["failed", "succeeded"]);
      expect((await good.logs()).items).toMatchObject([{ message: "resizing" }, { message: "resizing" }]);
      expect(await store.jobs.wait(broken, "60s")).toMatchObject({
        state: "dead",
        attempts: 1,
        failure: { name: "NonRetryable", message: "this is no photo", stack: expect.stringContaining("Traceback") },
      });
      await stuck.cancel("not needed");
      expect(await store.jobs.wait(stuck, "60s")).toMatchObject({ state: "cancelled", failure: { message: "not needed" } });
      worker.kill("SIGTERM");
      // Its long poll ends with the next job, or when its wait is over.
      await store.enqueue("resize", { width: 2 });
      const [code] = await new Promise<readonly [number | null]>((resolve) => worker.once("exit", (status) => resolve([status])));
      expect(code, said).toBe(0);
      expect((await store.workers.list()).items).toEqual([]);
    } finally {
      worker.kill("SIGKILL");
    }
  });
});

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { task } from "../../core/jobs/task.js";
import { isPawlError } from "../../core/values/error.js";
import { open } from "../../open.js";
import type { Pawl } from "../../pawl.js";

let pawl: Pawl;
beforeEach(async () => {
  pawl = await open("memory:", { tasks: [task("send", () => {})] });
});
afterEach(() => pawl.close());

describe("policies", () => {
  test("are set, changed and taken away bit by bit, and told by get and list", async () => {
    const rate = { limit: 100, per: "1s", burst: 200 };
    expect(await pawl.tenants.update("acme", { weight: 3, concurrency: 10, rate })).toEqual({
      weight: 3,
      concurrency: 10,
      rate: { limit: 100, per: 1_000, burst: 200 },
    });
    await pawl.tenants.update("acme", { concurrency: null, rate: null });
    await pawl.tenants.pause("umbrella");
    expect((await pawl.tenants.list()).items).toEqual([
      { tenant: "acme", paused: false, policy: { weight: 3 } },
      { tenant: "umbrella", paused: true, policy: {} },
    ]);
    expect(await pawl.tenants.get("nobody")).toEqual({ tenant: "nobody", paused: false, policy: {} });
    await pawl.tenants.update("acme", { weight: null });
    await pawl.tenants.resume("umbrella");
    expect((await pawl.tenants.list()).items).toEqual([]);

    await pawl.queues.update("mail", { strictPriority: true, aging: "5m" });
    await pawl.tasks.update("send", { concurrency: 2 });
    await pawl.enqueue("send", {}, { queue: "mail" });
    expect(await pawl.queues.get("mail")).toMatchObject({ queue: "mail", policy: { strictPriority: true, aging: 300_000 }, counts: { ready: 1 } });
    expect((await pawl.tasks.list()).items).toMatchObject([{ task: "send", registered: true, policy: { concurrency: 2 } }]);
  });

  test("of one name are changed by many at once, and nothing is lost", async () => {
    await Promise.all([
      pawl.tenants.update("acme", { weight: 2 }),
      pawl.tenants.update("acme", { concurrency: 7 }),
      pawl.tenants.update("acme", { rate: { limit: 1, per: "1s" } }),
    ]);
    expect((await pawl.tenants.get("acme")).policy).toEqual({ weight: 2, concurrency: 7, rate: { limit: 1, per: 1_000, burst: 1 } });
  });

  test("that make no sense are refused, and nothing of them is stored", async () => {
    await pawl.queues.update("mail", { priorityWeights: { 9: 3 } });
    const refused: readonly (readonly [string, () => Promise<unknown>])[] = [
      ["a weight of 0", () => pawl.tenants.update("acme", { concurrency: 5, weight: 0 })],
      ["a limit of 0", () => pawl.tasks.update("send", { rate: { limit: 0, per: "1s" }, concurrency: 3 })],
      ["strict and weights", () => pawl.queues.update("mail", { concurrency: 5, strictPriority: true })],
      ["minimum shares over 100 %", () => pawl.queues.update("mail", { priorityMinimum: { 1: 0.9, 2: 0.9 }, concurrency: 5 })],
      ["an unknown option", () => pawl.tenants.update("acme", { weight: 2, paused: true } as never)],
      ["no name", () => pawl.tenants.update("", { weight: 2 })],
      ["nothing", () => pawl.tenants.update("acme", undefined as never)],
      ["a name that is none, asked for", () => pawl.queues.get("\u0000")],
      ["a name that is none, paused", () => pawl.tenants.pause(" ")],
    ];
    for (const [what, call] of refused) {
      const error = await call().then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      expect(isPawlError(error), `${what}: ${error}`).toBe(true);
    }
    expect((await pawl.tenants.list()).items).toEqual([]);
    expect((await pawl.tasks.get("send")).policy).toEqual({});
    expect((await pawl.queues.get("mail")).policy).toEqual({ priorityWeights: { 9: 3 } });
  });

  test("that others change again and again are given up on with an error of their own", async () => {
    const { startPawl } = await import("../../pawl.js");
    const { memoryStore } = await import("../../store/memory/index.js");
    const store = memoryStore();
    const other = await startPawl({ ...store, policies: { ...store.policies, put: async () => "conflict" } });
    const error = await other.tenants.update("acme", { weight: 2 }).catch((thrown: unknown) => thrown);
    expect(isPawlError(error, "policy_contended"), String(error)).toBe(true);
    await other.close();
  });
});

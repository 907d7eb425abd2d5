import { describe, expect, expectTypeOf, it } from "vitest";
import { z } from "zod";
import { RetryAfter } from "../../core/jobs/failure.js";
import { task } from "../../core/jobs/task.js";
import { openTest } from "../../testing/open.js";
import { unknownLimitPaths } from "./limits.js";

interface LimitedCall {
  readonly account: string;
  readonly calls?: number;
}

describe("limits of a task", () => {
  it("keep the jobs of a key apart, and let the next in as one ends", async () => {
    const running = new Map<string, number>();
    let most = 0;
    const call = task("call", { limits: [{ key: (input: LimitedCall) => input.account, concurrency: 2 }] }, async ({ account }: LimitedCall, ctx) => {
      const now = (running.get(account) ?? 0) + 1;
      running.set(account, now);
      most = Math.max(most, now);
      await new Promise((resolve) => setImmediate(resolve));
      running.set(account, (running.get(account) ?? 0) - 1);
      return ctx.attempt;
    });
    await using world = await openTest({ tasks: [call] });
    await world.pawl.enqueueMany(
      call,
      Array.from({ length: 20 }, (_, n) => ({ account: `a${n % 2}` })),
    );
    expect(await world.drain()).toMatchObject({ succeeded: 20, parked: 0 });
    expect(most).toBe(2);
  });

  it("are refused when a path leads to a field that the input's schema rules out, in code and at run time", async () => {
    const limits = [{ key: "user.idd", concurrency: 1 }];
    const strict = task("strict", { input: z.object({ user: z.strictObject({ id: z.string() }) }), limits }, () => {});
    const says = {
      code: "option_invalid",
      message: expect.stringMatching(/strict\.limits\[0\]\.key is invalid: "user\.idd" leads nowhere.*did you mean id/),
    };
    await expect(openTest({ tasks: [strict] })).rejects.toMatchObject(says);
    await using world = await openTest({ tasks: [] });
    const inputSchema = { properties: { user: { properties: { id: {} }, additionalProperties: false } } };
    await expect(world.pawl.tasks.put("strict", { limits, inputSchema })).rejects.toMatchObject(says);
    expect(await world.pawl.tasks.get("strict")).not.toHaveProperty("defaults");
  });

  it("are doubted where the schema would take that field, and does not name it", async () => {
    const open = task("open", { input: z.object({ id: z.string() }), limits: [{ key: "idd", concurrency: 1 }] }, () => {});
    expect(unknownLimitPaths(open)).toMatchObject([{ option: "limits[0].key", reason: expect.stringMatching(/did you mean id/) }]);
    await using world = await openTest({ tasks: [open] });
    expect(await world.pawl.tasks.get("open")).toMatchObject({ registered: true });
  });

  it("give every job its token by time, and drain waits for it", async () => {
    const at: number[] = [];
    const call = task(
      "call",
      { limits: [{ key: "account", rate: { limit: 1, per: "1s", burst: 1 } }] },
      (_: LimitedCall) => void at.push(world.clock.now()),
    );
    await using world = await openTest({ tasks: [call] });
    const start = world.clock.now();
    await world.pawl.enqueueMany(
      call,
      Array.from({ length: 4 }, () => ({ account: "a" })),
    );
    await world.drain();
    expect(at.map((time) => time - start)).toEqual([0, 1_000, 2_000, 3_000]);
  });

  it("let a key rest that a handler was told to come back to later, and no other", async () => {
    const ran: string[] = [];
    const call = task("call", { limits: [{ key: "account", concurrency: 1 }] }, ({ account, calls = 0 }: LimitedCall, ctx) => {
      ran.push(`${account}${calls}@${world.clock.now() - start}`);
      if (account === "a" && ctx.attempt === 1 && calls === 0) throw new RetryAfter("30s");
    });
    await using world = await openTest({ tasks: [call] });
    const start = world.clock.now();
    for (const account of ["a", "b"]) for (const calls of [0, 1]) await world.pawl.enqueue(call, { account, calls });
    await world.drain();
    expect(ran.filter((one) => one.startsWith("b"))).toEqual(["b0@0", "b1@0"]);
    expect(ran.filter((one) => one.startsWith("a"))).toHaveLength(3);
    expect(ran.filter((one) => one.startsWith("a1")).map((one) => Number(one.split("@")[1]))[0]).toBeGreaterThanOrEqual(30_000);
  });

  it("refuse a job whose key is none, and store nothing", async () => {
    const call = task("call", { limits: [{ key: () => ({}) as never, concurrency: 1 }] }, (_: LimitedCall) => {});
    await using world = await openTest({ tasks: [call], work: false });
    await expect(world.pawl.enqueue(call, { account: "a" })).rejects.toMatchObject({ code: "limit_key_invalid" });
    await expect(world.pawl.enqueueMany(call, [{ account: "a" }])).rejects.toMatchObject({ code: "limit_key_invalid", details: { stored: 0 } });
    expect((await world.pawl.jobs.list()).items).toEqual([]);
  });

  it("are known to producers that have no more than the name, where the key is a field", async () => {
    const call = task("call", { limits: [{ name: "account", key: "account", concurrency: 1 }] }, (_: LimitedCall) => {});
    await using world = await openTest({ tasks: [call], work: false });
    const { id } = await world.pawl.enqueue("call", { account: "a" });
    expect((await world.pawl.jobs.get(id)).limits).toEqual([{ limit: "account", key: "a", rule: { concurrency: 1 } }]);
    const free = await world.pawl.enqueue("call", { account: "a" }, { limitKeys: { account: null } });
    expect((await world.pawl.jobs.get(free)).limits).toBeUndefined();
    await expect(world.pawl.enqueue("call", { account: "a" }, { limitKeys: { acount: "b" } })).rejects.toMatchObject({ code: "option_invalid" });
  });

  it("are typed by what callers pass", () => {
    task("typed", { input: z.object({ n: z.number() }), limits: [{ key: (input) => input.n, concurrency: 1 }] }, (input) => {
      expectTypeOf(input).toEqualTypeOf<{ n: number }>();
    });
    // @ts-expect-error there is no such field
    task("wrong", { input: z.object({ n: z.number() }), limits: [{ key: (input) => input.m, concurrency: 1 }] }, () => {});
    // @ts-expect-error an object is no key
    task("wrong", { limits: [{ key: (input: LimitedCall) => input, concurrency: 1 }] }, (_: LimitedCall) => {});
  });
});

describe("unique for a time, and debounce", () => {
  const call = task("call", (_: LimitedCall) => {});

  it("answer with the existing job, or take its place", async () => {
    await using world = await openTest({ tasks: [call], work: false });
    const first = await world.pawl.enqueue(call, { account: "a" }, { unique: { key: "t", for: "1m" } });
    const second = await world.pawl.enqueue(call, { account: "b" }, { unique: { key: "t", for: "1m" } });
    expect([second.id, second.enqueued]).toEqual([first.id, "existing"]);
    const early = await world.pawl.enqueue(call, { account: "a" }, { debounce: { key: "d", wait: "1s" } });
    const late = await world.pawl.enqueue(call, { account: "b" }, { debounce: { key: "d", wait: "1s" } });
    expect(late).toMatchObject({ enqueued: "created", replaced: early.id });
    expect(await early.get()).toMatchObject({ state: "cancelled" });
    expect(await late.get()).toMatchObject({ state: "scheduled", input: { account: "b" } });
  });

  it.each([
    ["debounce with a unique key", { debounce: { key: "k", wait: 1 }, unique: "k" }],
    ["debounce with a unique key for a time", { unique: { key: "k", for: 1 }, debounce: { key: "k", wait: 1 } }],
    ["debounce with a delay", { debounce: { key: "k", wait: 1 }, delay: 1 }],
    ["debounce with less than its wait", { debounce: { key: "k", wait: "2s", maxWait: "1s" } }],
    ["a unique key for no time", { unique: { key: "k", for: 0 } }],
    ["a misspelt option", { unique: { key: "k", forr: 1 } as never }],
  ])("refuse %s", async (_, options) => {
    await using world = await openTest({ tasks: [call], work: false });
    await expect(world.pawl.enqueue(call, { account: "a" }, options)).rejects.toMatchObject({ code: "option_invalid" });
  });

  it("refuse to be shared by many", async () => {
    await using world = await openTest({ tasks: [call], work: false });
    const shared = { unique: { key: "k", for: 1 } } as never;
    await expect(world.pawl.enqueueMany(call, [{ account: "a" }], shared)).rejects.toMatchObject({ code: "option_invalid" });
  });
});

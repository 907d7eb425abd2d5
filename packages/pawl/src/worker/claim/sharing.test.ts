import { afterEach, describe, expect, test } from "vitest";
import { MemoryFixture } from "../../../../../test/support/fixtures/memory-fixture.js";
import type { Priority } from "../../core/jobs/job.js";
import { task } from "../../core/jobs/task.js";
import type { Policy, PolicyKind } from "../../core/sharing/policy.js";
import { isPawlError } from "../../core/values/error.js";
import type { Store } from "../../store/port/index.js";
import { generator } from "../../testing/clock.js";
import { faultyStore } from "../../testing/faulty.js";
import type { WorkerOptions } from "../options.js";

let fixture: MemoryFixture;
afterEach(() => fixture.close());

/** Jobs that last as long as their input says, and what has run of whom; with claims that are answered after so many ms. */
function open(claimsTake = 0) {
  const had: Record<string, number> = {};
  const now: Record<string, number> = {};
  const most: Record<string, number> = {};
  const starts: { readonly at: number; readonly priority: number; readonly tenant: string }[] = [];
  const last = task("last", async ({ ms, priority }: { ms: number; priority: number }, ctx) => {
    const { tenant } = ctx;
    starts.push({ at: fixture.clock.now(), priority, tenant });
    now[tenant] = (now[tenant] ?? 0) + 1;
    most[tenant] = Math.max(most[tenant] ?? 0, now[tenant]);
    await new Promise<void>((resolve) => fixture.clock.after(ms, resolve));
    now[tenant]--;
    had[tenant] = (had[tenant] ?? 0) + ms;
  });
  const slowly = (store: Store) =>
    faultyStore(store, (operation) =>
      operation === "leases.claim" ? { kind: "delay", until: new Promise<void>((resolve) => fixture.clock.after(claimsTake, resolve)) } : undefined,
    );
  fixture = new MemoryFixture({ tasks: [last], ...(claimsTake === 0 ? {} : { wrapStore: slowly }) });
  const enqueue = (count: number, ms: number | ((no: number) => number), lane: { tenant?: string; priority?: Priority; queue?: string } = {}) =>
    fixture.enqueueMany(
      last,
      Array.from({ length: count }, (_, no) => ({ ms: typeof ms === "number" ? ms : ms(no), priority: lane.priority ?? 5 })),
      { lane },
    );
  return { had, now, most, starts, enqueue };
}

async function set(kind: PolicyKind, name: string, policy: Policy): Promise<void> {
  const version = (await fixture.inner.policies.get({ kind, name }))?.version ?? 0;
  expect(await fixture.inner.policies.put({ kind, name }, policy, version)).toBe("stored");
  await fixture.clock.quiet();
}

/** Another worker claims what there is of a lane, and is never heard of again. */
async function vanishWith(lane: { tenant?: string } = {}): Promise<void> {
  const ghost = { name: "ghost", instance: "00000000-0000-4000-8000-00000000000f" as never };
  const full = { queue: "default", priority: 5, tenant: "default", task: "last", ...lane } as const;
  await fixture.inner.leases.claimLimited({ worker: ghost, quotas: [{ lane: full, quota: 2 }], duration: 5_000 });
}

/** Two workers vanish with the job of a lane. */
async function becomesSuspect(lane: { tenant?: string }): Promise<void> {
  await fixture.maintain();
  for (let crash = 0; crash < 2; crash++) {
    await vanishWith(lane);
    await fixture.clock.advance(10_000);
  }
}

const running = (of: Record<string, number>) => Object.fromEntries(Object.entries(of).filter(([, count]) => count > 0));

describe("a worker's slots", () => {
  test("kept for a priority are never taken by others, so that an urgent job starts at once", async () => {
    const { now, starts, enqueue } = open();
    await enqueue(100, 60_000, { tenant: "slow" });
    await fixture.work({ concurrency: 10, reserve: [{ priority: 9, slots: 3 }] });
    expect(running(now)).toEqual({ slow: 7 });
    await enqueue(5, 60_000, { tenant: "urgent", priority: 9 });
    await fixture.clock.quiet();
    expect(running(now)).toEqual({ slow: 7, urgent: 3 });
    expect(starts.filter(({ priority }) => priority === 9).every(({ at }) => at === fixture.clock.now())).toBe(true);
  });

  test("kept for a priority are not taken by a job either that lost its worker: it waits for one of the others", async () => {
    const { now, enqueue } = open();
    await enqueue(5, 60_000, { tenant: "slow" });
    const worker = await fixture.work({ concurrency: 3, reserve: [{ priority: 9, slots: 1 }] });
    await enqueue(1, 60_000, { tenant: "lost" });
    await becomesSuspect({ tenant: "lost" });
    expect(running(now)).toEqual({ slow: 2 });
    expect(worker.status()).toMatchObject({ free: 1 });
    await fixture.clock.advance(45_000);
    expect(running(now)).toEqual({ lost: 1, slow: 1 });
  });

  test.each([{ queues: { default: 2 } }, { tasks: { last: 2 } }])("of %o are not exceeded by a job that lost its worker", async (most) => {
    const { now, enqueue } = open();
    await enqueue(5, 60_000, { tenant: "slow" });
    await fixture.work({ concurrency: { total: 10, ...most } });
    await enqueue(1, 60_000, { tenant: "lost" });
    await becomesSuspect({ tenant: "lost" });
    expect(running(now)).toEqual({ slow: 2 });
    await fixture.clock.advance(45_000);
    expect(running(now)).toEqual({ lost: 1, slow: 1 });
  });

  test("kept for a tenant serve it beside those it shares with the others", async () => {
    const { now, enqueue } = open();
    const worker = await fixture.work({
      concurrency: 6,
      reserve: [
        { tenant: "acme", slots: 2 },
        { priority: 9, slots: 1 },
      ],
    });
    await enqueue(50, 60_000, { tenant: "acme" });
    await fixture.clock.quiet();
    expect(running(now), "all but the one kept for the priority").toEqual({ acme: 5 });
    expect(worker.status()).toMatchObject({ free: 1, buffered: 0 });
    await enqueue(1, 60_000, { tenant: "acme", priority: 9 });
    await fixture.clock.quiet();
    expect(running(now)).toEqual({ acme: 6 });
  });

  test("are for the priorities and tenants that it serves, and for no others", async () => {
    const { now, enqueue } = open();
    await enqueue(5, 1_000, { tenant: "a", priority: 9 });
    await enqueue(5, 1_000, { tenant: "a", priority: 1 });
    await enqueue(5, 1_000, { tenant: "b", priority: 9 });
    await fixture.work({ concurrency: 50, priorities: [9, 8], tenants: ["a"] });
    expect(running(now)).toEqual({ a: 5 });
    await fixture.work({ concurrency: 50, tenants: ["b", "c"] });
    expect(running(now)).toEqual({ a: 5, b: 5 });
    await fixture.work({ concurrency: 50, priorities: [1] });
    expect(running(now)).toEqual({ a: 10, b: 5 });
  });

  const refused: readonly [string, WorkerOptions, RegExp][] = [
    ["a priority that does not exist", { priorities: [10] }, /priorities.*10/],
    ["no priority at all", { priorities: [] }, /priorities.*empty/],
    ["no tenant at all", { tenants: [] }, /tenants.*empty/],
    ["a tenant without a name", { tenants: [""] }, /tenant/],
    ["slots kept for nobody", { reserve: [{ slots: 1 }] }, /reserve\[0\].*neither/],
    ["no slots kept", { reserve: [{ priority: 9, slots: 0 }] }, /reserve\[0\]\.slots/],
    ["more kept than there are", { concurrency: 4, reserve: [{ priority: 9, slots: 5 }] }, /5 slots.*concurrency of 4/],
    ["slots kept for a priority that is not served", { priorities: [1], reserve: [{ priority: 9, slots: 1 }] }, /priority 9 is not served/],
    ["slots kept for a tenant that is not served", { tenants: ["a"], reserve: [{ tenant: "b", slots: 1 }] }, /tenant b is not served/],
    ["a misspelt reservation", { reserve: [{ priorty: 9, slots: 1 } as never] }, /priorty.*did you mean priority/],
  ];
  test.each(refused)("are refused: %s", (_what, options, text) => {
    open();
    let thrown: unknown;
    try {
      fixture.worker(options);
    } catch (error) {
      thrown = error;
    }
    expect(isPawlError(thrown), String(thrown)).toBe(true);
    expect(String(thrown)).toMatch(text);
  });
});

describe("a worker's time", () => {
  test("is shared by weight among tenants with jobs of any length, and by new weights when they are set", async () => {
    const { had, enqueue } = open();
    const tenants = { a: 40, b: 110, c: 15 } as const;
    await set("tenant", "b", { weight: 2 });
    await set("tenant", "c", { weight: 3 });
    for (const [tenant, ms] of Object.entries(tenants)) await enqueue(20_000 / ms, ms, { tenant });
    await fixture.work({ concurrency: 8 });
    await fixture.clock.advance(2_000);
    const first = { ...had };
    const total = Object.values(first).reduce((sum, ms) => sum + ms, 0);
    for (const [tenant, weight] of [
      ["a", 1],
      ["b", 2],
      ["c", 3],
    ] as const)
      expect(Math.abs((first[tenant] as number) / total / (weight / 6) - 1), `${tenant}: ${JSON.stringify(first)}`).toBeLessThan(0.1);
    await set("tenant", "a", { weight: 6 });
    await set("tenant", "b", {});
    await set("tenant", "c", {});
    await fixture.clock.advance(2_000);
    const second = (had.a as number) - (first.a as number);
    expect(second / 16_000).toBeGreaterThan(0.68);
    expect(second / 16_000).toBeLessThan(0.82);
  });

  /** What each had of a second of their time together, over what was its due, when all of them have a backlog. */
  async function shared(tenants: Record<string, number | ((no: number) => number)>, seconds = 10): Promise<Record<string, number>> {
    const { had, enqueue } = open(8);
    for (const [tenant, ms] of Object.entries(tenants))
      await enqueue(Math.ceil((seconds * 10_000) / (typeof ms === "number" ? ms : 5)), ms, { tenant });
    await fixture.work({ concurrency: 10 });
    await fixture.clock.advance(seconds * 1_000);
    const total = Object.values(had).reduce((sum, ms) => sum + ms, 0);
    return Object.fromEntries(Object.keys(tenants).map((tenant) => [tenant, ((had[tenant] ?? 0) / total) * Object.keys(tenants).length]));
  }

  test("is shared alike by tenants whose jobs of one task are thirty times as long as another's", async () => {
    const parts = await shared({ a: 20, b: 50, c: 5, d: 150 });
    for (const [tenant, part] of Object.entries(parts)) expect(Math.abs(part - 1), `${tenant} of ${JSON.stringify(parts)}`).toBeLessThan(0.05);
  });

  test("is shared alike with a tenant whose jobs are now short, now long", async () => {
    const random = generator(7);
    const parts = await shared({ even: 20, uneven: () => (random() < 0.1 ? 300 : 5), short: 5 });
    for (const [tenant, part] of Object.entries(parts)) expect(Math.abs(part - 1), `${tenant} of ${JSON.stringify(parts)}`).toBeLessThan(0.05);
  });

  test("of a paused tenant is nothing, until it is resumed", async () => {
    const { now, enqueue } = open();
    await enqueue(100, 10, { tenant: "a" });
    await enqueue(100, 10, { tenant: "b" });
    await fixture.inner.lanes.pause("tenant", "a");
    await fixture.work({ concurrency: 4 });
    await fixture.clock.advance(100);
    expect(running(now)).toEqual({ b: 4 });
    await fixture.inner.lanes.resume("tenant", "a");
    await fixture.clock.advance(100);
    expect(now.a, "once what was held is over").toBeGreaterThan(0);
  });
});

describe("limits of a queue, task or tenant", () => {
  test("hold over all workers, hold nobody else back, and let the next job start when one is over", async () => {
    const { now, most, starts, enqueue } = open();
    await set("tenant", "few", { concurrency: 3 });
    await enqueue(12, 100, { tenant: "few" });
    await enqueue(12, 100, { tenant: "free" });
    for (let n = 0; n < 4; n++) await fixture.work({ concurrency: 4 });
    expect(running(now)).toEqual({ few: 3, free: 12 });
    await fixture.clock.advance(399);
    expect(most.few).toBe(3);
    expect(
      starts.filter(({ tenant }) => tenant === "few"),
      "no time is lost between one and the next",
    ).toHaveLength(12);
  });

  test("set while jobs wait hold from then on, and gone when they are taken away", async () => {
    const { now, enqueue } = open();
    await enqueue(100, 100);
    await fixture.work({ concurrency: 8 });
    expect(running(now)).toEqual({ default: 8 });
    await set("queue", "default", { concurrency: 2 });
    await fixture.clock.advance(150);
    expect(running(now)).toEqual({ default: 2 });
    await set("queue", "default", {});
    expect(running(now)).toEqual({ default: 8 });
  });

  test("by rate let jobs start when there are tokens, without being asked for again and again", async () => {
    const { starts, enqueue } = open();
    await set("task", "last", { rate: { limit: 10, per: 1_000, burst: 1 } });
    await enqueue(30, 1);
    await fixture.work({ concurrency: 8 });
    await fixture.clock.advance(2_050);
    expect(starts.length).toBeGreaterThanOrEqual(20);
    expect(starts.length).toBeLessThanOrEqual(21);
  });

  test("let go of the slots of a worker that vanished", async () => {
    const { now, enqueue } = open();
    await set("queue", "default", { concurrency: 2 });
    await enqueue(40, 1_000);
    await vanishWith();
    await fixture.work({ concurrency: 4 });
    await fixture.maintain();
    await fixture.clock.advance(4_000);
    expect(running(now)).toEqual({});
    await fixture.clock.advance(5_000);
    expect(running(now)).toEqual({ default: 2 });
  });
});

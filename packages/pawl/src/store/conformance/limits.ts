import { expect } from "vitest";
import type { JobId } from "../../core/id.js";
import type { JobOptions } from "../../core/job.js";
import type { JobLimit, LimitRule } from "../../core/limit.js";
import type { Test } from "./suite.js";
import { BOB, FAILED, KILLED, lane, MINUTE, RELEASED, SECOND, SNOOZED, type Spec, SUCCEEDED, type World } from "./world.js";

/** Under one limit of this rule. */
function under(rule: LimitRule, key = "k", more: Partial<JobLimit> = {}): JobOptions {
  return { limits: [{ limit: "per key", key, rule, ...more }] };
}

async function addMany(w: World, count: number, spec: Spec): Promise<readonly JobId[]> {
  const ids: JobId[] = [];
  for (let i = 0; i < count; i++) ids.push(await w.add(spec));
  return ids;
}

async function states(w: World, ids: readonly JobId[]): Promise<readonly string[]> {
  return Promise.all(ids.map((id) => w.state(id)));
}

const ONE: LimitRule = { concurrency: 1 };
const TWO: LimitRule = { concurrency: 2 };
const SERIAL: LimitRule = { serial: true };
const gate = { tenant: "acme", limit: "per key", key: "k" };

async function holders(w: World, key = "k"): Promise<readonly JobId[]> {
  return (await w.store.limits.get({ ...gate, key }))?.holders ?? [];
}

export function limitTests(test: Test): void {
  concurrencyTests(test);
  serialTests(test);
  rateTests(test);
  exitTests(test);
  severalTests(test);
  pauseTests(test);
}

function concurrencyTests(test: Test): void {
  test("as many jobs of a key are let in as its limit says, the others are parked and say why", async (w) => {
    const ids = await addMany(w, 4, { options: under(TWO) });
    expect(await states(w, ids)).toEqual(["ready", "ready", "parked", "parked"]);
    expect(await w.get(ids[2] as JobId)).toMatchObject({ parkedFor: "concurrency", parkedAt: { limit: "per key", key: "k" } });
    expect(await holders(w)).toEqual(ids.slice(0, 2));
    expect(await w.store.limits.get(gate)).toMatchObject({ rule: TWO, next: { job: ids[2], reason: "concurrency" } });
  });

  test("a batch of one key is let in up to the limit, in the order of the batch", async (w) => {
    const answers = await w.enqueue(...Array.from({ length: 5 }, () => ({ options: under(TWO) })));
    const ids = answers.map((answer) => (answer as { id: JobId }).id);
    expect(await states(w, ids)).toEqual(["ready", "ready", "parked", "parked", "parked"]);
    expect(await w.claimIds()).toEqual(ids.slice(0, 2));
  });

  test("a batch answers in its order, of which some jobs are under limits and others are not", async (w) => {
    const answers = await w.enqueue({ input: "0" }, { input: "1", options: under(ONE) }, { input: "2" }, { input: "3", options: under(ONE) });
    const jobs = await Promise.all(answers.map((answer) => w.get((answer as { id: JobId }).id)));
    expect(jobs.map(({ input, state }) => `${input} ${state}`)).toEqual(["0 ready", "1 ready", "2 ready", "3 parked"]);
  });

  test("a settlement lets in the next of its key, in order", async (w) => {
    const ids = await addMany(w, 3, { options: under(ONE) });
    for (const id of ids) await w.run(id);
    expect(await states(w, ids)).toEqual(["succeeded", "succeeded", "succeeded"]);
    expect(await holders(w)).toEqual([]);
  });

  test("a key that is full keeps nobody else waiting", async (w) => {
    await addMany(w, 20, { options: under(ONE) });
    const other = await w.add({ options: under(ONE, "other") });
    const free = await w.add();
    expect(await states(w, [other, free])).toEqual(["ready", "ready"]);
  });

  test("the same key is another one under another limit's name or another tenant", async (w) => {
    const first = await w.add({ options: under(ONE) });
    const named = await w.add({ options: under(ONE, "k", { limit: "another" }) });
    const tenant = await w.add({ tenant: "zeta", options: under(ONE) });
    expect(await states(w, [first, named, tenant])).toEqual(["ready", "ready", "ready"]);
  });

  test("two tasks share a limit of one name", async (w) => {
    const mail = await w.add({ task: "mail", options: under(ONE) });
    const post = await w.add({ task: "post", options: under(ONE) });
    expect(await states(w, [mail, post])).toEqual(["ready", "parked"]);
  });

  test("inside a key the urgent job is let in first", async (w) => {
    const first = await w.add({ options: under(ONE) });
    const later = await w.add({ options: under(ONE) });
    const urgent = await w.add({ priority: 9, options: under(ONE) });
    await w.run(first);
    expect(await states(w, [later, urgent])).toEqual(["parked", "ready"]);
  });

  test("the newest job says what the limit of its key is", async (w) => {
    const ids = await addMany(w, 4, { options: under(ONE) });
    expect(await states(w, ids)).toEqual(["ready", "parked", "parked", "parked"]);
    const last = await w.add({ options: under({ concurrency: 3 }) });
    expect(await states(w, [...ids, last])).toEqual(["ready", "ready", "ready", "parked", "parked"]);
  });

  test("a delayed job takes its place when it is due, not before", async (w) => {
    const later = await w.add({ delay: SECOND, options: under(ONE) });
    expect(await holders(w)).toEqual([]);
    const now = await w.add({ options: under(ONE) });
    w.clock.advance(SECOND);
    await w.store.duties.promote(10);
    expect(await states(w, [now, later])).toEqual(["ready", "parked"]);
    await w.run(now);
    expect(await w.state(later)).toBe("ready");
  });

  test("a dependent lines up when its parents are done", async (w) => {
    const parent = await w.add({ task: "parent" });
    const child = await w.add({ after: [parent], options: under(ONE) });
    const other = await w.add({ options: under(ONE) });
    expect(await states(w, [child, other])).toEqual(["blocked", "ready"]);
    await w.run(parent, SUCCEEDED, undefined, { lanes: [lane({ task: "parent" })] });
    expect(await w.state(child)).toBe("parked");
    await w.run(other);
    expect(await w.state(child)).toBe("ready");
  });

  test("jobs that wait at a gate are counted as parked", async (w) => {
    const ids = await addMany(w, 3, { options: under(ONE) });
    const counts = async () => (await w.store.records.counts())[0]?.counts;
    expect(await counts()).toMatchObject({ ready: 1, parked: 2 });
    await w.run(ids[0] as JobId);
    expect(await counts()).toMatchObject({ ready: 1, parked: 1, succeeded: 1 });
  });
}

function exitTests(test: Test): void {
  const exits: Readonly<Record<string, (w: World, id: JobId) => Promise<unknown>>> = {
    "that succeeds": (w, id) => w.run(id),
    "that fails for good": (w, id) => w.run(id, KILLED),
    "that fails and is retried later": (w, id) => w.run(id, FAILED),
    "that is snoozed": (w, id) => w.run(id, SNOOZED),
    "that is cancelled while it is ready": (w, id) => w.store.jobs.cancel("everyone", id, "why not"),
    "that is paused while it is ready": (w, id) => w.store.jobs.pause("everyone", id),
    "that is cancelled while it runs": async (w, id) => {
      const held = await w.hold();
      await w.store.jobs.cancel("everyone", id, "why not");
      await w.settle(held, { kind: "cancelled" });
    },
    "that is paused while it runs": async (w, id) => {
      const held = await w.hold();
      await w.store.jobs.pause("everyone", id);
      await w.settle(held, RELEASED);
    },
    "that expires": async (w) => {
      w.clock.advance(MINUTE);
      await w.store.duties.expire(10);
    },
  };
  for (const [how, exit] of Object.entries(exits)) {
    test(`a job ${how} gives its place to the next`, async (w) => {
      const id = await w.add({ options: { ...under(ONE), ...(how === "that expires" ? { expire: SECOND } : {}) } });
      const next = await w.add({ options: under(ONE) });
      expect(await w.state(next)).toBe("parked");
      await exit(w, id);
      expect(await w.state(next)).toBe("ready");
      expect(await holders(w)).toEqual([next]);
    });
  }

  test("a job that is given back asks anew, and is let in again where nobody was before it", async (w) => {
    const id = await w.add({ options: under(ONE) });
    await w.run(id, RELEASED);
    expect(await w.state(id)).toBe("ready");
    const next = await w.add({ options: under(ONE) });
    await w.run(id, RELEASED);
    expect(await states(w, [id, next])).toEqual(["parked", "ready"]);
  });

  test("the place of a job whose worker vanished is free once it was reaped", async (w) => {
    const id = await w.add({ options: under(ONE) });
    const next = await w.add({ options: under(ONE) });
    await w.hold();
    await w.vanish();
    expect(await states(w, [id, next])).toEqual(["parked", "ready"]);
    expect(await holders(w)).toEqual([next]);
  });

  test("a retried job takes a place again when it is due", async (w) => {
    const id = await w.add({ options: under(ONE) });
    const next = await w.add({ options: under(ONE) });
    await w.run(id, FAILED, [SECOND]);
    w.clock.advance(SECOND);
    await w.store.duties.promote(10);
    expect(await states(w, [id, next])).toEqual(["parked", "ready"]);
    await w.run(next);
    expect(await w.state(id)).toBe("ready");
  });

  test("a job that waits at a gate can be cancelled, paused and resumed, and expires", async (w) => {
    const first = await w.add({ options: under(ONE) });
    const [cancelled, paused, late, last] = await addMany(w, 4, { options: { ...under(ONE), expire: MINUTE } });
    await w.store.jobs.cancel("everyone", cancelled as JobId, "why not");
    await w.store.jobs.pause("everyone", paused as JobId);
    expect((await w.get(paused as JobId)).parkedFor).toBe("paused");
    await w.store.jobs.resume("everyone", paused as JobId);
    expect((await w.get(paused as JobId)).parkedFor).toBe("concurrency");
    await w.run(first);
    expect(await states(w, [cancelled, paused, late, last] as JobId[])).toEqual(["cancelled", "parked", "ready", "parked"]);
    w.clock.advance(MINUTE);
    await w.store.duties.expire(10);
    expect(await states(w, [paused, late, last] as JobId[])).toEqual(["dead", "dead", "dead"]);
    expect(await holders(w)).toEqual([]);
  });

  test("resume leaves a job that waits at a gate where it is", async (w) => {
    const [first, second, third] = await addMany(w, 3, { options: under(ONE) });
    expect(await w.store.jobs.resume("everyone", second as JobId)).toEqual({ kind: "changed", from: "parked", to: "parked" });
    await w.run(first as JobId);
    expect(await states(w, [second, third] as JobId[])).toEqual(["ready", "parked"]);
  });

  test("a dead job that is redriven lines up like a new one", async (w) => {
    const id = await w.add({ options: under(ONE) });
    await w.run(id, KILLED);
    const other = await w.add({ options: under(ONE) });
    expect(await w.store.jobs.redrive("everyone", id, {})).toMatchObject({ from: "dead", to: "parked" });
    expect(await states(w, [other, id])).toEqual(["ready", "parked"]);
    await w.run(other);
    await w.run(id);
    expect(await holders(w)).toEqual([]);
  });

  test("a job that waits at a gate is let in once by two who look at once", async (w) => {
    const ids = await addMany(w, 3, { options: under(TWO) });
    const [first] = await w.holdAll({ limit: 1 });
    if (first === undefined) throw new Error("nothing to claim");
    await Promise.all([w.settle(first, SUCCEEDED), w.store.limits.admit(10), w.store.limits.admit(10)]);
    expect(await states(w, ids)).toEqual(["succeeded", "ready", "ready"]);
    expect(await holders(w)).toEqual(ids.slice(1));
  });

  test("a settlement that is repeated frees nothing twice", async (w) => {
    const ids = await addMany(w, 3, { options: under(ONE) });
    const held = await w.hold();
    const settlement = w.settlement(held, SUCCEEDED);
    expect(await w.store.leases.settle(held.worker, [settlement])).toEqual(["settled"]);
    const again = await w.hold({ worker: BOB });
    expect(again.job.id).toBe(ids[1]);
    expect(await w.store.leases.settle(held.worker, [settlement])).toEqual(["settled"]);
    expect(await states(w, ids)).toEqual(["succeeded", "running", "parked"]);
  });
}

function serialTests(test: Test): void {
  test("a serial key has one job in flight, in the order they came, whatever their priority", async (w) => {
    const first = await w.add({ options: under(SERIAL) });
    const second = await w.add({ priority: 1, options: under(SERIAL) });
    const third = await w.add({ priority: 9, options: under(SERIAL) });
    expect(await states(w, [first, second, third])).toEqual(["ready", "parked", "parked"]);
    expect((await w.get(third)).parkedFor).toBe("serial");
    await w.run(first);
    expect(await states(w, [second, third])).toEqual(["ready", "parked"]);
    await w.run(second, SUCCEEDED, undefined, { lanes: [lane({ priority: 1 })] });
    expect(await w.state(third)).toBe("ready");
  });

  test("a serial key is held through retries, snoozes, pauses and crashes of its job", async (w) => {
    const [first, second] = (await addMany(w, 2, { options: under(SERIAL) })) as [JobId, JobId];
    await w.run(first, FAILED, [SECOND, SECOND]);
    expect(await states(w, [first, second])).toEqual(["scheduled", "parked"]);
    w.clock.advance(SECOND);
    await w.store.duties.promote(10);
    await w.run(first, SNOOZED);
    w.clock.advance(MINUTE);
    await w.store.duties.promote(10);
    await w.store.jobs.pause("everyone", first);
    expect(await states(w, [first, second])).toEqual(["parked", "parked"]);
    await w.store.jobs.resume("everyone", first);
    await w.hold();
    await w.vanish();
    expect(await states(w, [first, second])).toEqual(["ready", "parked"]);
    await w.run(first, RELEASED);
    await w.run(first);
    expect(await states(w, [first, second])).toEqual(["succeeded", "ready"]);
  });

  for (const [how, end] of Object.entries({
    dies: (w: World, id: JobId) => w.run(id, KILLED),
    "is cancelled": (w: World, id: JobId) => w.store.jobs.cancel("everyone", id, "why not"),
  })) {
    test(`a serial key goes to the next when its job ${how}`, async (w) => {
      const [first, second] = (await addMany(w, 2, { options: under(SERIAL) })) as [JobId, JobId];
      await end(w, first);
      expect(await w.state(second)).toBe("ready");
    });
  }

  test("one that has its turn waits for a token before those behind it", async (w) => {
    const rule: LimitRule = { serial: true, rate: { limit: 1, per: SECOND, burst: 1 } };
    const [first, second] = (await addMany(w, 2, { options: under(rule) })) as [JobId, JobId];
    await w.run(first, FAILED, [1]);
    w.clock.advance(1);
    await w.store.duties.promote(10);
    expect(await states(w, [first, second])).toEqual(["parked", "parked"]);
    w.clock.advance(SECOND);
    await w.store.limits.admit(10);
    expect(await states(w, [first, second])).toEqual(["ready", "parked"]);
  });
}

function rateTests(test: Test): void {
  const RATE: LimitRule = { rate: { limit: 10, per: SECOND, burst: 2 } };

  test("a rate lets in a burst, then one for each token, by the store's clock", async (w) => {
    const ids = await addMany(w, 5, { options: under(RATE) });
    expect(await states(w, ids)).toEqual(["ready", "ready", "parked", "parked", "parked"]);
    expect((await w.get(ids[2] as JobId)).parkedFor).toBe("rate");
    const held = await w.holdAll();
    expect((await w.store.duties.pulse()).admitIn).toBe(100);
    w.clock.advance(99);
    expect((await w.store.limits.admit(10)).count).toBe(0);
    w.clock.advance(1);
    expect(await w.store.limits.admit(10)).toMatchObject({ count: 1, nextIn: 100 });
    expect(await states(w, ids)).toEqual(["running", "running", "ready", "parked", "parked"]);
    await w.settleAll(held, SUCCEEDED);
    expect(await w.state(ids[3] as JobId)).toBe("parked");
  });

  test("an expensive job waits for all of its tokens, and those behind it wait for it", async (w) => {
    const [first, dear] = [await w.add({ options: under(RATE) }), await w.add({ options: under(RATE, "k", { cost: 2 }) })];
    const cheap = await w.add({ options: under(RATE) });
    expect(await states(w, [first, dear, cheap])).toEqual(["ready", "parked", "parked"]);
    await w.hold();
    w.clock.advance(100);
    await w.store.limits.admit(10);
    expect(await states(w, [dear, cheap])).toEqual(["ready", "parked"]);
  });

  test("no more than a burst of a rate waits for workers, however long there are none", async (w) => {
    const ids = await addMany(w, 10, { options: under(RATE) });
    for (let i = 0; i < 20; i++) {
      w.clock.advance(100);
      await w.store.limits.admit(10);
    }
    expect((await states(w, ids)).filter((state) => state === "ready")).toHaveLength(2);
    await w.holdAll();
    w.clock.advance(SECOND);
    await w.store.limits.admit(10);
    expect((await states(w, ids)).filter((state) => state === "ready")).toHaveLength(2);
  });

  test("a retry takes another token", async (w) => {
    const rule: LimitRule = { rate: { limit: 1, per: SECOND, burst: 1 } };
    const id = await w.add({ options: under(rule) });
    await w.run(id, FAILED, [1]);
    w.clock.advance(1);
    await w.store.duties.promote(10);
    expect(await w.state(id)).toBe("parked");
    w.clock.advance(SECOND);
    await w.store.limits.admit(10);
    expect(await w.state(id)).toBe("ready");
  });
}

function severalTests(test: Test): void {
  const both = (account: string, region: string, rule: LimitRule = ONE): JobOptions => ({
    limits: [
      { limit: "account", key: account, rule },
      { limit: "region", key: region, rule: ONE },
    ],
  });
  const place = async (w: World, limit: string, key: string) => (await w.store.limits.get({ tenant: "acme", limit, key }))?.holders ?? [];

  test("a job under several limits needs all of them, and holds none while it waits", async (w) => {
    const first = await w.add({ options: both("a", "eu") });
    const second = await w.add({ options: both("b", "eu") });
    expect(await w.get(second)).toMatchObject({ state: "parked", parkedFor: "concurrency", parkedAt: { limit: "region", key: "eu" } });
    expect(await place(w, "account", "b")).toEqual([]);
    const third = await w.add({ options: both("b", "us") });
    expect(await w.state(third)).toBe("ready");
    await w.run(first);
    expect(await w.get(second)).toMatchObject({ state: "parked", parkedAt: { limit: "account", key: "b" } });
    await w.run(third);
    expect(await w.state(second)).toBe("ready");
    expect(await place(w, "region", "eu")).toEqual([second]);
  });

  test("jobs that one limit keeps back are in nobody's way at another", async (w) => {
    await w.add({ options: both("z", "eu") });
    const blocked = await addMany(w, 5, { options: both("a", "eu", TWO) });
    const free = await w.add({ options: both("a", "us", TWO) });
    expect(await states(w, blocked)).toEqual(Array(5).fill("parked"));
    expect(await w.state(free)).toBe("ready");
  });

  test("a job keeps its turn in a serial line while another limit keeps it back", async (w) => {
    const options = (region: string): JobOptions => ({
      limits: [
        { limit: "account", key: "a", rule: SERIAL },
        { limit: "region", key: region, rule: ONE },
      ],
    });
    const other = await w.add({ options: { limits: [{ limit: "region", key: "eu", rule: ONE }] } });
    const first = await w.add({ options: options("eu") });
    const second = await w.add({ options: options("us") });
    expect(await states(w, [first, second])).toEqual(["parked", "parked"]);
    await w.run(other);
    expect(await states(w, [first, second])).toEqual(["ready", "parked"]);
    await w.run(first);
    expect(await w.state(second)).toBe("ready");
  });
}

function pauseTests(test: Test): void {
  const pauses = { limit: "per key", key: "k" };

  test("a failure that asks for it lets its key rest, and no other", async (w) => {
    const [first, second] = (await addMany(w, 2, { options: under(ONE) })) as [JobId, JobId];
    const other = await w.add({ task: "other", options: under(ONE, "other") });
    const after = await w.add({ task: "other", options: under(ONE, "other") });
    const held = await w.hold();
    await w.settle(held, { ...(FAILED as { kind: "failed" } & typeof FAILED), retryAfter: MINUTE, pauses } as typeof FAILED);
    expect(await w.get(second)).toMatchObject({ state: "parked", parkedFor: "key_paused" });
    expect(await w.store.limits.get(gate)).toMatchObject({ pausedUntil: w.clock.now() + MINUTE });
    await w.run(other, SUCCEEDED, undefined, { lanes: [lane({ task: "other" })] });
    expect(await w.state(after)).toBe("ready");
    w.clock.advance(MINUTE);
    await w.store.limits.admit(10);
    expect(await w.state(second)).toBe("ready");
    expect(await w.state(first)).toBe("scheduled");
  });

  test("a key can be paused and opened again", async (w) => {
    const first = await w.add({ options: under(TWO) });
    await w.store.limits.pause(gate, MINUTE);
    const second = await w.add({ options: under(TWO) });
    expect(await states(w, [first, second])).toEqual(["ready", "parked"]);
    await w.store.limits.pause(gate, 0);
    expect(await w.state(second)).toBe("ready");
  });

  test("a shorter pause does not end a longer one", async (w) => {
    await w.add({ options: under(TWO) });
    await w.store.limits.pause(gate, MINUTE);
    await w.store.limits.pause(gate, SECOND);
    expect((await w.store.limits.get(gate))?.pausedUntil).toBe(w.clock.now() + MINUTE);
  });
}

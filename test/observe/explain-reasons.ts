import { expect, test } from "vitest";
import { dutiesOf } from "../../packages/pawl/conformance/duties.js";
import {
  ANA,
  BOB,
  FAILED,
  HOUR,
  KILLED,
  LEASE,
  lane,
  MINUTE,
  SECOND,
  type Spec,
  START,
  SUCCEEDED,
  TestClock,
  World,
} from "../../packages/pawl/conformance/world.js";
import type { JobId } from "../../packages/pawl/src/core/jobs/id.js";
import type { Serves } from "../../packages/pawl/src/core/limits/capacity.js";
import type { JobLimit } from "../../packages/pawl/src/core/limits/limit-rule.js";
import type { Reason } from "../../packages/pawl/src/core/observe/explain.js";
import { type Explanation, explainJob } from "../../packages/pawl/src/scheduler/observe/explain.js";
import type { Scope, Store } from "../../packages/pawl/src/store/port/index.js";

const ALL: Serves = { tasks: ["work"], provides: { capabilities: [], resources: {} }, concurrency: { total: 10 } };

/** One test per reason: what a job is told on a store where that is the case. */
export function explainReasonTests(make: (now: () => number) => Promise<Store>): void {
  /** A store with a worker that serves everything, so that only what a test does is in the way. */
  async function world(serves: Serves | "nobody" = ALL): Promise<World> {
    const clock = new TestClock();
    const w = new World(await make(clock.now), clock);
    if (serves !== "nobody") await w.store.workers.publish(ANA, serves, 10 * HOUR);
    return w;
  }
  async function why(w: World, id: JobId, scope: Scope = "everyone"): Promise<Explanation> {
    const explanation = await explainJob(w.store, scope, id);
    if (explanation === undefined) throw new Error("no explanation");
    return explanation;
  }
  const first = async (w: World, id: JobId): Promise<Reason<Date>> => (await why(w, id)).reasons[0] as Reason<Date>;
  const ids = async (w: World, ...specs: readonly Spec[]) => (await w.enqueue(...specs)).map((answer) => (answer as { id: JobId }).id);
  const under = (limit: JobLimit): Spec => ({ options: { limits: [limit] } });

  test("a job that nothing is in the way of starts at once", async () => {
    const w = await world();
    const id = await w.add();
    expect(await why(w, id)).toEqual({
      job: id,
      state: "ready",
      reasons: [{ kind: "queued_behind", ahead: 0 }],
      estimatedStart: new Date(START),
      text: "It is next in its lane. It should start at once.",
    });
  });

  test("nobody is told of a job that is not there, or not theirs", async () => {
    const w = await world();
    const id = await w.add();
    expect(await explainJob(w.store, { tenant: "umbrella" }, id)).toBeUndefined();
  });

  test("finished: how and when", async () => {
    const w = await world();
    const id = await w.add();
    await w.run(id, KILLED);
    expect(await why(w, id)).toMatchObject({ reasons: [{ kind: "finished", state: "dead", at: new Date(START), failure: { name: "RangeError" } }] });
    const done = await w.add();
    await w.run(done, SUCCEEDED);
    expect(await first(w, done)).toEqual({ kind: "finished", state: "succeeded", at: new Date(START) });
  });

  test("running: where, since when, and what was asked of it", async () => {
    const w = await world();
    const id = await w.add();
    await w.hold({ worker: BOB });
    await w.store.jobs.cancel("everyone", id, "enough");
    const { reasons } = await why(w, id);
    expect(reasons).toEqual([{ kind: "running", worker: "bob", since: new Date(START), until: new Date(START + LEASE), intent: "cancel" }]);
  });

  test("paused: the job, its queue, its task, its tenant, or all of them", async () => {
    const w = await world();
    const id = await w.add();
    await w.store.jobs.pause("everyone", id);
    expect(await first(w, id)).toEqual({ kind: "paused", what: "job", name: id });
    for (const [kind, name] of [
      ["queue", "default"],
      ["task", "work"],
      ["tenant", "acme"],
    ] as const) {
      const other = await w.add();
      await w.store.lanes.pause(kind, name);
      expect(await first(w, other)).toEqual({ kind: "paused", what: kind, name });
      expect((await why(w, other)).estimatedStart).toBeUndefined();
      if (kind !== "tenant") await w.store.lanes.resume(kind, name);
    }
    await w.store.lanes.pause("queue", "default");
    await w.store.lanes.pause("queue", "other");
    expect((await why(w, id)).reasons.flatMap((reason) => (reason.kind === "paused" ? [reason.what] : []))).toEqual(["job", "queue", "tenant"]);
  });

  test("blocked: on which jobs, and how they stand", async () => {
    const w = await world();
    const parents = await ids(w, {}, { delay: HOUR });
    await w.hold();
    const id = await w.add({ after: parents });
    const { reasons, text } = await why(w, id);
    expect(reasons[0]).toMatchObject({ kind: "blocked", count: 2 });
    const on = (reasons[0] as Extract<Reason, { kind: "blocked" }>).on;
    expect(new Map(on.map(({ job, state }) => [job, state]))).toEqual(
      new Map([
        [parents[0], "running"],
        [parents[1], "scheduled"],
      ]),
    );
    expect(text).toMatch(/^It waits for 2 other jobs: /);
  });

  test("limit_key: which key, and how many of its slots are taken, and by whom", async () => {
    const w = await world();
    const account: JobLimit = { limit: "account", key: "7", rule: { concurrency: 2 } };
    const jobs: JobId[] = [];
    for (let n = 0; n < 3; n++) {
      jobs.push(await w.add(under(account)));
      w.clock.advance(1);
    }
    const told = { kind: "limit_key", limit: "account", key: "7", for: "concurrency", held: 2, most: 2, waiting: 1 };
    const holders = (...states: readonly string[]) => jobs.slice(0, 2).map((job, n) => ({ job, state: states[n] }));
    expect(await first(w, jobs[2] as JobId)).toEqual({ ...told, holders: holders("ready", "ready") });
    expect((await why(w, jobs[0] as JobId)).reasons).toEqual([{ kind: "queued_behind", ahead: 0 }]);
    await w.hold();
    for (const scope of ["everyone", { tenant: "acme" }] as const) {
      const { reasons, text } = await why(w, jobs[2] as JobId, scope);
      expect(reasons[0]).toEqual({ ...told, holders: holders("running", "ready") });
      expect(text).toContain(`Key 7 of limit account has 2 of its 2 slots taken, by ${jobs[0]} (running), ${jobs[1]} (ready).`);
    }
  });

  test("limit_key: not its turn in a serial key", async () => {
    const w = await world();
    const order: JobLimit = { limit: "order", key: "A", rule: { serial: true } };
    const jobs = await ids(w, under(order), under(order));
    const told = { kind: "limit_key", limit: "order", key: "A", for: "serial", held: 1, most: 1, waiting: 1 };
    expect(await first(w, jobs[1] as JobId)).toEqual({ ...told, holders: [{ job: jobs[0], state: "ready" }] });
    await w.run(jobs[0] as JobId, FAILED, [HOUR]);
    expect((await why(w, jobs[1] as JobId)).text).toContain(`and it is the turn of ${jobs[0]} (scheduled)`);
  });

  test("limit_key: too few tokens, and until when", async () => {
    const w = await world();
    const api: JobLimit = { limit: "api", key: "eu", rule: { rate: { limit: 1, per: 10 * SECOND, burst: 1 } } };
    const jobs = await ids(w, under(api), under(api), under(api));
    await dutiesOf(w.store).admit(10);
    w.clock.advance(SECOND);
    const next = await why(w, jobs[1] as JobId);
    expect(next.reasons[0]).toMatchObject({ kind: "limit_key", limit: "api", key: "eu", for: "rate", until: new Date(START + 10 * SECOND) });
    expect(next.text).toMatch(/has too few tokens for it; they are there in 9 s/);
    const last = await first(w, jobs[2] as JobId);
    expect(last).toMatchObject({ kind: "limit_key", for: "rate" });
    expect(last).not.toHaveProperty("until");
    expect(last).not.toHaveProperty("holders");
  });

  test("limit_key: a key that is paused, and until when", async () => {
    const w = await world();
    const api: JobLimit = { limit: "api", key: "eu", rule: { concurrency: 5 } };
    await w.add(under(api));
    await w.store.limits.pause({ tenant: "acme", limit: "api", key: "eu" }, MINUTE);
    const id = await w.add(under(api));
    const { reasons, estimatedStart } = await why(w, id);
    expect(reasons[0]).toMatchObject({ kind: "limit_key", for: "key_paused", until: new Date(START + MINUTE) });
    expect(estimatedStart).toEqual(new Date(START + MINUTE));
  });

  test("due: at what time", async () => {
    const w = await world();
    const { reasons, estimatedStart, state } = await why(w, await w.add({ delay: HOUR }));
    expect({ reasons, estimatedStart, state }).toEqual({
      reasons: [{ kind: "due", at: new Date(START + HOUR) }],
      estimatedStart: new Date(START + HOUR),
      state: "scheduled",
    });
  });

  test("retrying: when, after how many attempts, and what failed", async () => {
    const w = await world();
    const id = await w.add();
    await w.run(id, FAILED, [MINUTE]);
    expect(await first(w, id)).toMatchObject({ kind: "retrying", at: new Date(START + MINUTE), attempts: 1, failure: { name: "TypeError" } });
  });

  test("unserved: no worker, none with its task, none with its capability", async () => {
    const none = await world("nobody");
    expect(await first(none, await none.add())).toEqual({ kind: "unserved", lacks: [{ kind: "worker" }] });
    const w = await world();
    const other = await w.add({ task: "other" });
    expect(await first(w, other)).toEqual({ kind: "unserved", lacks: [{ kind: "task", task: "other" }] });
    await w.store.tasks.publish([{ name: "work", defaults: { needs: { capabilities: ["gpu"] } } }]);
    const id = await w.add();
    const { reasons, text, estimatedStart } = await why(w, id);
    expect(reasons[0]).toEqual({ kind: "unserved", lacks: [{ kind: "capability", capability: "gpu" }] });
    expect(text).toMatch(/no live worker that has its task has the capability gpu/i);
    expect(estimatedStart).toBeUndefined();
    await w.store.workers.publish(BOB, { ...ALL, provides: { capabilities: ["gpu"], resources: {} } }, MINUTE);
    expect((await why(w, id)).reasons).toEqual([{ kind: "queued_behind", ahead: 0 }]);
    w.clock.advance(MINUTE);
    expect(await first(w, id)).toMatchObject({ kind: "unserved" });
  });

  test("full: how many slots of how many workers, since when, and until when", async () => {
    const w = await world("nobody");
    const id = await w.add();
    const tasks = [{ task: "work", running: 2, since: START - MINUTE, took: 90 * SECOND, longest: 100 * SECOND }];
    const slots = { total: 2, inUse: 2, overrun: 0, tasks, ends: [START + 30 * SECOND, START + 40 * SECOND] };
    await w.store.workers.publish(ANA, { ...ALL, slots }, 10 * HOUR);
    const full = await why(w, id);
    expect(full.reasons).toEqual([
      { kind: "full", slots: 2, workers: 1, since: new Date(START - MINUTE) },
      { kind: "queued_behind", ahead: 0 },
    ]);
    expect(full.estimatedStart).toEqual(new Date(START + 30 * SECOND));
    expect((await why(w, id, { tenant: "acme" })).reasons[0]).toEqual({ kind: "full" });
    await w.store.workers.publish(BOB, { ...ALL, slots: { ...slots, inUse: 1, ends: [START + MINUTE] } }, MINUTE);
    expect((await why(w, id)).reasons).toEqual([{ kind: "queued_behind", ahead: 0 }]);
  });

  test("breaker_open: until when, or by hand", async () => {
    const w = await world();
    const id = await w.add();
    const pair = { tenant: "acme", task: "work" };
    await w.store.breakers.force(pair, "open");
    expect(await first(w, id)).toEqual({ kind: "breaker_open", ...pair });
    await w.store.breakers.force(pair, "reset");
    expect((await why(w, id)).reasons).toEqual([{ kind: "queued_behind", ahead: 0 }]);
    const rule = { failureRate: 0.9, window: 5 * MINUTE, minOutcomes: 10, probeInterval: MINUTE };
    const failing = { ...pair, rule, samples: [{ succeeded: 0, failed: 20, ago: 0 }] };
    await w.store.breakers.report([failing]);
    w.clock.advance(10 * SECOND);
    await w.store.breakers.report([failing]);
    const { reasons, estimatedStart } = await why(w, id);
    expect(reasons[0]).toEqual({ kind: "breaker_open", ...pair, until: new Date(START + 10 * SECOND + MINUTE) });
    expect(estimatedStart).toEqual(new Date(START + 10 * SECOND + MINUTE));
  });

  test("policy_limit: by which limit of its queue, task or tenant, and by how many", async () => {
    const w = await world();
    await w.store.policies.put({ kind: "queue", name: "default" }, { concurrency: 2 }, 0);
    await w.store.policies.put({ kind: "tenant", name: "acme" }, { rate: { limit: 1, per: 10 * SECOND, burst: 2 } }, 0);
    const jobs = await ids(w, {}, {}, {});
    expect((await why(w, jobs[0] as JobId)).reasons).toEqual([{ kind: "queued_behind", ahead: 0 }]);
    await w.store.leases.claimLimited({ worker: ANA, quotas: [{ lane: lane(), quota: 5 }], duration: LEASE });
    expect((await why(w, jobs[2] as JobId)).reasons).toEqual([
      { kind: "policy_limit", what: "queue", name: "default", limit: "concurrency", most: 2, held: 2 },
      { kind: "policy_limit", what: "tenant", name: "acme", limit: "rate", most: 1, until: new Date(START + 10 * SECOND) },
      { kind: "queued_behind", ahead: 0 },
    ]);
    // How many others run in the queue is not a tenant's to know.
    expect((await why(w, jobs[2] as JobId, { tenant: "acme" })).reasons[0]).toEqual({
      kind: "policy_limit",
      what: "queue",
      name: "default",
      limit: "concurrency",
      most: 2,
    });
  });

  test("suspect: how many workers vanished with it", async () => {
    const w = await world();
    expect(await first(w, await w.suspect())).toEqual({ kind: "suspect", crashes: 2 });
  });

  test("queued_behind: how many, and when its turn comes at the pace of the last minute", async () => {
    const w = await world();
    await w.enqueue(...Array.from({ length: 600 }, () => ({})));
    const last = await w.add();
    expect(await why(w, last)).toMatchObject({ reasons: [{ kind: "queued_behind", ahead: 600 }] });
    expect((await why(w, last)).estimatedStart).toBeUndefined();
    for (let second = 0; second < 20; second++) {
      w.clock.advance(SECOND);
      await w.settleAll(await w.holdAll({ limit: 10 }), SUCCEEDED);
      await dutiesOf(w.store).fold(1_000);
    }
    const { reasons, estimatedStart } = await why(w, last);
    expect(reasons).toEqual([{ kind: "queued_behind", ahead: 400 }]);
    const wait = (estimatedStart?.getTime() ?? 0) - w.clock.now();
    expect(wait / (40 * SECOND)).toBeGreaterThan(0.8);
    expect(wait / (40 * SECOND)).toBeLessThan(1.25);
  });

  test("queued_behind: a lane that shares its pace with another waits twice as long", async () => {
    const w = await world();
    const lanes = [lane(), lane({ tenant: "umbrella" })];
    for (const { tenant } of lanes) await w.enqueue(...Array.from({ length: 300 }, () => ({ tenant })));
    const last = await w.add();
    for (let second = 0; second < 20; second++) {
      w.clock.advance(SECOND);
      for (const one of lanes) await w.settleAll(await w.holdAll({ lanes: [one], limit: 5 }), SUCCEEDED);
      await dutiesOf(w.store).fold(1_000);
    }
    const { reasons, estimatedStart } = await why(w, last);
    expect(reasons).toEqual([{ kind: "queued_behind", ahead: 200 }]);
    const wait = (estimatedStart?.getTime() ?? 0) - w.clock.now();
    expect(wait / (40 * SECOND)).toBeGreaterThan(0.8);
    expect(wait / (40 * SECOND)).toBeLessThan(1.25);
  });
}

import { expect } from "vitest";
import type { JobId } from "../../src/core/jobs/id.js";
import type { Limits, PolicyKind } from "../../src/core/sharing/policy.js";
import type { Claimed, LimitedClaim } from "../../src/store/port/settle/leases.js";
import type { Test } from "../suite.js";
import { ANA, BOB, FAILED, LEASE, lane, MINUTE, RELEASED, SECOND, type Spec, SUCCEEDED, type World } from "../world.js";

/** Sets the limits of a queue, task or tenant, whatever they were. */
async function limit(w: World, kind: PolicyKind, name: string, limits: Limits): Promise<void> {
  const version = (await w.store.policies.get({ kind, name }))?.version ?? 0;
  expect(await w.store.policies.put({ kind, name }, limits, version)).toBe("stored");
}

async function claim(w: World, specs: readonly Spec[] = [{}], { worker = ANA, count = 100 } = {}): Promise<LimitedClaim> {
  const quotas = specs.map((spec) => ({ lane: lane(spec), quota: count }));
  return w.store.leases.claimLimited({ worker, quotas, duration: LEASE });
}

const idsOf = (claimed: Claimed | undefined): readonly JobId[] => claimed?.jobs.map(({ id }) => id) ?? [];

async function many(w: World, count: number, spec: Spec = {}): Promise<readonly JobId[]> {
  return (await w.enqueue(...Array.from({ length: count }, () => spec))).map((answer) => {
    if (answer.kind !== "created") throw new Error(`expected a new job, got ${answer.kind}`);
    return answer.id;
  });
}

async function end(w: World, claimed: Claimed | undefined, index: number, worker = ANA): Promise<void> {
  if (claimed === undefined) throw new Error("nothing was claimed");
  const job = claimed.jobs[index];
  if (job === undefined) throw new Error("no such job");
  expect(await w.settle({ worker, claimed, job }, SUCCEEDED)).toBe("settled");
}

const RATE = { limit: 10, per: SECOND, burst: 2 };

export function policyTests(test: Test): void {
  test("a policy is stored, read, listed by kind and name, and taken away when it is empty", async (w) => {
    const { policies } = w.store;
    expect(await policies.list()).toEqual({ policies: [], version: "0" });
    expect(await policies.put({ kind: "tenant", name: "b" }, { weight: 3 }, 0)).toBe("stored");
    expect(await policies.put({ kind: "tenant", name: "a" }, { weight: 2, concurrency: 5, rate: RATE }, 0)).toBe("stored");
    expect(await policies.put({ kind: "queue", name: "z" }, { strictPriority: true, aging: MINUTE }, 0)).toBe("stored");
    expect(await policies.get({ kind: "tenant", name: "a" })).toMatchObject({ policy: { weight: 2, concurrency: 5, rate: RATE } });
    expect(await policies.get({ kind: "queue", name: "a" })).toBeUndefined();
    expect((await policies.list()).policies.map(({ kind, name }) => [kind, name])).toEqual([
      ["queue", "z"],
      ["tenant", "a"],
      ["tenant", "b"],
    ]);
    const all = await policies.list("tenant");
    expect(all.policies.map(({ name }) => name)).toEqual(["a", "b"]);
    expect(await policies.put({ kind: "tenant", name: "b" }, {}, all.policies[1]?.version ?? 0)).toBe("stored");
    expect(await policies.get({ kind: "tenant", name: "b" })).toBeUndefined();
  });

  test("a policy is stored in place of the version it was made from, and of no other", async (w) => {
    const ref = { kind: "task", name: "work" } as const;
    const put = (concurrency: number, version: number) => w.store.policies.put(ref, { concurrency }, version);
    expect(await put(1, 7)).toBe("conflict");
    expect(await put(1, 0)).toBe("stored");
    const first = (await w.store.policies.get(ref))?.version as number;
    expect(await put(2, 0)).toBe("conflict");
    expect(await put(2, first)).toBe("stored");
    expect(await put(3, first)).toBe("conflict");
    const second = (await w.store.policies.get(ref))?.version as number;
    await w.store.policies.put(ref, {}, second);
    expect(await put(4, second), "one that is gone").toBe("conflict");
    expect(await put(4, 0)).toBe("stored");
    const third = (await w.store.policies.get(ref))?.version as number;
    expect(new Set([first, second, third]).size, "no version comes twice").toBe(3);
  });

  test("whoever looks for work sees that a policy was changed", async (w) => {
    const version = async () => (await w.store.lanes.live(undefined, ["work"])).version;
    expect(await version()).toBe("0");
    await limit(w, "queue", "default", { concurrency: 1 });
    const first = await version();
    expect(first).not.toBe("0");
    expect((await w.store.policies.list()).version).toBe(first);
    await limit(w, "queue", "default", {});
    expect(await version()).not.toBe(first);
  });

  test("a paused tenant gives nothing until it is resumed", async (w) => {
    const id = await w.add();
    const suspect = await w.suspect({ task: "risky" });
    const elsewhere = await w.add({ tenant: "umbrella" });
    await w.store.lanes.pause("tenant", "acme");
    expect(await w.claim()).toBeUndefined();
    expect((await claim(w)).claimed).toBeUndefined();
    expect(await w.claimSuspect({ tasks: ["risky"] })).toBeUndefined();
    const live = await w.store.lanes.live(undefined, ["work", "risky"]);
    expect([live.lanes, live.suspects]).toEqual([[lane({ tenant: "umbrella" })], false]);
    expect(await w.claimIds({ lanes: [lane(), lane({ tenant: "umbrella" })] }), "others go on").toEqual([elsewhere]);
    expect(await w.store.lanes.paused()).toEqual([{ kind: "tenant", name: "acme" }]);
    await w.store.lanes.resume("tenant", "acme");
    expect(await w.claimIds()).toEqual([id]);
    expect(idsOf(await w.claimSuspect({ tasks: ["risky"] }))).toEqual([suspect]);
  });

  for (const [kind, name] of [
    ["queue", "default"],
    ["task", "work"],
    ["tenant", "acme"],
  ] as const) {
    test(`no more jobs of a ${kind} run at a time than its limit says, whoever claims them`, async (w) => {
      await limit(w, kind, name, { concurrency: 3 });
      const ids = await many(w, 8);
      const first = await claim(w, [{}], { count: 2 });
      expect(idsOf(first.claimed)).toEqual(ids.slice(0, 2));
      expect(first.reached).toEqual([]);
      const second = await claim(w, [{}], { worker: BOB });
      expect(idsOf(second.claimed)).toEqual(ids.slice(2, 3));
      expect(second.reached).toEqual([{ kind, name }]);
      expect((await claim(w)).claimed).toBeUndefined();
      await end(w, first.claimed, 1);
      expect(idsOf((await claim(w)).claimed), "one for the one that is over").toEqual(ids.slice(3, 4));
      expect((await claim(w)).claimed).toBeUndefined();
    });

    test(`lanes of a ${kind} under a limit are left alone by claims that do not count`, async (w) => {
      const other = { queue: "other", task: "another", tenant: "umbrella" };
      const [id] = await many(w, 1);
      const [elsewhere] = await many(w, 1, other);
      await limit(w, kind, name, { concurrency: 3 });
      expect(await w.claimIds({ lanes: [lane(), lane(other)] })).toEqual([elsewhere]);
      await limit(w, kind, name, {});
      expect(await w.claimIds()).toEqual([id]);
    });
  }

  test("a slot is free again however its job leaves: settled, released, failed, cancelled, or lost with its worker", async (w) => {
    await limit(w, "queue", "default", { concurrency: 1 });
    await many(w, 6);
    const held = async () => {
      const { claimed } = await claim(w);
      const job = claimed?.jobs[0];
      if (claimed === undefined || job === undefined) throw new Error("the slot is not free");
      return { worker: ANA, claimed, job };
    };
    await w.settle(await held(), SUCCEEDED);
    await w.settle(await held(), RELEASED);
    await w.settle(await held(), FAILED);
    const cancelled = await held();
    await w.store.jobs.cancel("everyone", cancelled.job.id, "no need");
    expect((await claim(w)).claimed, "it runs until it is settled").toBeUndefined();
    await w.settle(cancelled, { kind: "cancelled" });
    await held();
    expect((await claim(w)).claimed).toBeUndefined();
    await w.vanish();
    await held();
    expect((await claim(w)).claimed).toBeUndefined();
  });

  test("a job takes a slot of all the limits it is under, and none if one of them is reached", async (w) => {
    await limit(w, "queue", "default", { concurrency: 5 });
    await limit(w, "tenant", "acme", { concurrency: 1 });
    const [first] = await many(w, 3);
    const others = await many(w, 6, { tenant: "umbrella" });
    const both = await claim(w, [{}, { tenant: "umbrella" }]);
    expect(idsOf(both.claimed)).toEqual([first, ...others.slice(0, 4)]);
    expect(both.reached).toEqual([
      { kind: "tenant", name: "acme" },
      { kind: "queue", name: "default" },
    ]);
    await end(w, both.claimed, 0);
    const again = await claim(w, [{ tenant: "umbrella" }]);
    expect(idsOf(again.claimed), "the tenant's slot was one of the queue, too").toEqual(others.slice(4, 5));
  });

  test("a rate lets jobs start as its tokens come, after its burst", async (w) => {
    await limit(w, "task", "work", { rate: RATE });
    const ids = await many(w, 10);
    const burst = await claim(w);
    expect(idsOf(burst.claimed)).toEqual(ids.slice(0, 2));
    expect(burst.reached).toEqual([{ kind: "task", name: "work", retryIn: 100 }]);
    for (let index = 0; index < 2; index++) await end(w, burst.claimed, index);
    w.clock.advance(99);
    expect((await claim(w)).claimed, "that they are over gives no token").toBeUndefined();
    w.clock.advance(1);
    expect(idsOf((await claim(w)).claimed)).toEqual(ids.slice(2, 3));
    w.clock.advance(150);
    const later = await claim(w);
    expect(idsOf(later.claimed)).toEqual(ids.slice(3, 4));
    expect(later.reached).toEqual([{ kind: "task", name: "work", retryIn: 50 }]);
    w.clock.advance(60 * MINUTE);
    expect(idsOf((await claim(w)).claimed), "nothing is saved up beyond the burst").toEqual(ids.slice(4, 6));
  });

  test("a changed rate gives nobody a full bucket", async (w) => {
    await limit(w, "task", "work", { rate: RATE });
    await many(w, 10);
    expect(idsOf((await claim(w)).claimed)).toHaveLength(2);
    await limit(w, "task", "work", { rate: { ...RATE, limit: 20 } });
    expect((await claim(w)).claimed).toBeUndefined();
  });

  test("a limit that is raised, lowered or taken away holds for the next claim", async (w) => {
    await many(w, 10);
    await limit(w, "queue", "default", { concurrency: 1 });
    const first = await claim(w);
    await limit(w, "queue", "default", { concurrency: 4 });
    const second = await claim(w);
    expect(idsOf(second.claimed)).toHaveLength(3);
    await limit(w, "queue", "default", { concurrency: 2 });
    await end(w, first.claimed, 0);
    await end(w, second.claimed, 0);
    expect((await claim(w)).claimed, "two still run").toBeUndefined();
    await limit(w, "queue", "default", {});
    expect(await w.claimIds()).toHaveLength(6);
  });

  test("a suspect takes a slot of its limits like any other, and waits for one", async (w) => {
    const id = await w.suspect();
    await limit(w, "queue", "default", { concurrency: 1 });
    await many(w, 1);
    const { claimed } = await claim(w);
    expect(idsOf(claimed)).toHaveLength(1);
    expect(await w.claimSuspect()).toBeUndefined();
    await end(w, claimed, 0);
    expect(idsOf(await w.claimSuspect())).toEqual([id]);
    await many(w, 1);
    expect((await claim(w)).claimed).toBeUndefined();
  });

  test("a suspect is claimed by those who serve its priority and its tenant", async (w) => {
    const id = await w.suspect({ priority: 7 });
    const asked = { worker: ANA, queues: undefined, tasks: ["work"], duration: LEASE };
    expect(await w.store.leases.claimSuspect({ ...asked, priorities: [5, 9] })).toBeUndefined();
    expect(await w.store.leases.claimSuspect({ ...asked, tenants: ["umbrella"] })).toBeUndefined();
    expect(idsOf(await w.store.leases.claimSuspect({ ...asked, priorities: [7], tenants: ["acme"] }))).toEqual([id]);
  });

  test("lanes under no limit may be claimed beside those that are", async (w) => {
    await limit(w, "tenant", "acme", { concurrency: 1 });
    await many(w, 3);
    const others = await many(w, 3, { tenant: "umbrella" });
    const { claimed } = await claim(w, [{}, { tenant: "umbrella" }]);
    expect(idsOf(claimed).slice(1)).toEqual(others);
    expect((await claim(w, [])).claimed).toBeUndefined();
  });
}

import { expect } from "vitest";
import type { NewDataKey } from "../../src/store/port/access/data-keys.js";
import type { Test } from "../suite.js";
import { ANA, HOUR, lane, START, type World } from "../world.js";

const key = (given: Partial<NewDataKey> = {}): NewDataKey => ({ id: "k1", tenant: "acme", version: 1, master: "m1", wrapped: "w1", ...given });
const PURGE = "00000000-0000-4000-8000-0000000000aa";
const OTHER = "00000000-0000-4000-8000-0000000000bb";

/** Looks through all jobs of a tenant until nothing is left. */
async function purgeAll(w: World, tenant: string): Promise<number> {
  let sum = 0;
  for (;;) {
    const { deleted, next } = await w.store.tenants.purgeJobs(tenant, { limit: 2 });
    sum += deleted;
    if (deleted === 0 && next === undefined) return sum;
  }
}

export function protectionTests(test: Test): void {
  test("a data key is found by its id and as the newest of its tenant, as it was added", async (w) => {
    const record = { ...key(), createdAt: START };
    expect(await w.store.dataKeys.add(key())).toEqual(record);
    await w.store.dataKeys.add(key({ id: "k2", version: 2 }));
    await w.store.dataKeys.add(key({ id: "other", tenant: "umbrella" }));
    expect(await w.store.dataKeys.get(["k1", "nobody"])).toEqual([record]);
    expect((await w.store.dataKeys.newest(["acme", "nobody"])).map(({ id }) => id)).toEqual(["k2"]);
  });

  test("of two keys for one version the first is kept, and both who added one are told of it", async (w) => {
    await w.store.dataKeys.add(key());
    expect((await w.store.dataKeys.add(key({ id: "late", wrapped: "other" }))).id).toBe("k1");
    expect(await w.store.dataKeys.get(["late"])).toEqual([]);
  });

  test("a rewrapped key changes its wrapping and nothing else, and only from the one it was read with", async (w) => {
    await w.store.dataKeys.add(key());
    await w.store.dataKeys.add(key({ id: "k2", tenant: "umbrella" }));
    expect(await w.store.dataKeys.masterKeys()).toEqual([{ master: "m1", count: 2 }]);
    expect((await w.store.dataKeys.notBy("m2", { limit: 1 })).map(({ id }) => id)).toEqual(["k1"]);
    expect((await w.store.dataKeys.notBy("m2", { limit: 5, after: "k1" })).map(({ id }) => id)).toEqual(["k2"]);
    expect(await w.store.dataKeys.rewrap("k1", "m1", { master: "m2", wrapped: "w2" })).toBe(true);
    expect(await w.store.dataKeys.rewrap("k1", "m1", { master: "m3", wrapped: "w3" })).toBe(false);
    expect(await w.store.dataKeys.get(["k1"])).toEqual([{ ...key({ master: "m2", wrapped: "w2" }), createdAt: START }]);
    expect(await w.store.dataKeys.masterKeys()).toEqual([
      { master: "m1", count: 1 },
      { master: "m2", count: 1 },
    ]);
  });

  test("a purge is known until it ends, and asked for twice it is one", async (w) => {
    expect(await w.store.purges.begin(PURGE, "acme")).toBe(PURGE);
    expect(await w.store.purges.begin(OTHER, "acme")).toBe(PURGE);
    const record = { id: PURGE, tenant: "acme", askedAt: START };
    expect(await w.store.purges.list()).toEqual([record]);
    expect(await w.store.purges.get(PURGE)).toEqual(record);
    await w.store.purges.end(PURGE);
    expect(await w.store.purges.get(PURGE)).toBeUndefined();
    expect(await w.store.purges.begin(OTHER, "acme")).toBe(OTHER);
  });

  test("purged jobs are gone in whatever state they were, with their history, and those of others stay", async (w) => {
    const done = await w.add();
    await w.settle(await w.hold(), { kind: "succeeded", output: "1" });
    await w.add({ delay: HOUR });
    const parent = await w.add();
    await w.add({ after: [parent] });
    const parked = await w.add();
    await w.store.jobs.pause({ tenant: "acme" }, parked);
    const theirs = await w.add({ tenant: "umbrella" });
    expect(await purgeAll(w, "acme")).toBe(5);
    expect((await w.store.jobs.list({ tenant: "acme" }, {}, { limit: 10 })).jobs).toEqual([]);
    expect(await w.store.jobs.history("everyone", done)).toEqual([]);
    expect((await w.store.jobs.get("everyone", theirs))?.state).toBe("ready");
    expect((await w.store.lanes.live(undefined, ["work"])).lanes).toEqual([lane({ tenant: "umbrella" })]);
    const [row] = await w.store.records.counts();
    expect(row?.counts).toMatchObject({ ready: 1, blocked: 0, scheduled: 0, parked: 0, succeeded: 0, cancelled: 0 });
  });

  test("a running job is asked to stop, and purged once it has", async (w) => {
    const id = await w.add();
    const held = await w.hold();
    expect(await w.store.tenants.purgeJobs("acme", { limit: 10 })).toEqual({ deleted: 0, running: 1 });
    expect(await w.store.leases.intents(ANA, [held.claimed.lease])).toEqual([{ job: id, intent: "cancel" }]);
    await w.settle(held, { kind: "cancelled" });
    expect(await w.store.tenants.purgeJobs("acme", { limit: 10 })).toEqual({ deleted: 1, running: 0 });
  });

  test("jobs are purged a page after the other", async (w) => {
    for (let i = 0; i < 5; i++) await w.add();
    const first = await w.store.tenants.purgeJobs("acme", { limit: 3 });
    expect(first).toMatchObject({ deleted: 3, running: 0 });
    expect(await w.store.tenants.purgeJobs("acme", { limit: 3, after: first.next as NonNullable<typeof first.next> })).toEqual({
      deleted: 2,
      running: 0,
    });
  });

  test("what a tenant has besides jobs is gone after the rest is purged, and what others have stays", async (w) => {
    for (const tenant of ["acme", "umbrella"]) {
      await w.store.dataKeys.add(key({ id: `of ${tenant}`, tenant }));
      await w.store.apiKeys.create({ id: tenant, name: "x", tenant, grants: [{ role: "viewer" }], digest: "d" });
      await w.add({ tenant, idempotencyKey: "r" });
      await w.store.batches.enqueue({ tenant, id: "b", digest: "d" }, [w.newJob({ tenant })]);
      await w.store.replies.begin({ tenant, credential: "c", key: "k" }, { token: PURGE, hash: "h", patience: HOUR });
    }
    const before = await w.store.apiKeys.version();
    const purgeRest = async () => [await w.store.purges.rest("acme", 10), await w.store.tenants.purgeRest("acme", 10)];
    expect(await purgeRest()).toEqual([3, 2]);
    expect(await purgeRest()).toEqual([0, 0]);
    expect(await w.store.dataKeys.get(["of acme", "of umbrella"])).toMatchObject([{ tenant: "umbrella" }]);
    expect((await w.store.apiKeys.list("everyone", { limit: 10 })).map(({ id }) => id)).toEqual(["umbrella"]);
    expect(await w.store.apiKeys.version()).not.toBe(before);
    expect(await w.store.batches.get({ tenant: "acme", id: "b", digest: "d" })).toBeUndefined();
    expect(await w.store.batches.get({ tenant: "umbrella", id: "b", digest: "d" })).toMatchObject({ kind: "repeated" });
    const ask = (tenant: string) => w.store.replies.begin({ tenant, credential: "c", key: "k" }, { token: OTHER, hash: "other", patience: HOUR });
    expect([await ask("acme"), await ask("umbrella")]).toEqual([{ kind: "begun" }, { kind: "different" }]);
    // Its idempotency key is free again: that is another job.
    await purgeAll(w, "acme");
    const again = await w.add({ tenant: "acme", idempotencyKey: "r" });
    expect((await w.store.jobs.get("everyone", again))?.state).toBe("ready");
  });
}

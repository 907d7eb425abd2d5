import { afterEach, describe, expect, test } from "vitest";
import { barrier, MemoryFixture } from "../../../../../test/support/fixtures/memory-fixture.js";
import { under } from "../../../conformance/limits/limit-world.js";
import { task } from "../../core/jobs/task.js";
import { BOUNDS } from "../../core/values/bounds.js";
import { pawlError } from "../../core/values/error.js";
import type { Store } from "../../store/port/index.js";
import type { Settlement } from "../../store/port/settle/leases.js";
import { faultyStore } from "../../testing/faulty.js";

let fixture: MemoryFixture;
afterEach(() => fixture.close());

const quick = task("quick", async () => "ok");
const settling =
  (settle: (settlements: readonly Settlement[], real: Store["leases"]["settle"], worker: never) => ReturnType<Store["leases"]["settle"]>) =>
  (store: Store) => ({
    ...store,
    leases: {
      ...store.leases,
      settle: ((worker: never, settlements: readonly Settlement[]) => settle(settlements, store.leases.settle, worker)) as Store["leases"]["settle"],
    },
  });

/** A fixture with so many jobs, whose settlements are answered once the gate is open; `only`: this call alone waits for it, from 1. */
async function unanswered(jobs: number, only?: number) {
  const sizes: number[] = [];
  const answer = barrier();
  fixture = new MemoryFixture({
    tasks: [quick],
    wrapStore: settling(async (settlements, real, worker) => {
      sizes.push(settlements.length);
      if (only === undefined || sizes.length === only) await answer.opened;
      return real(worker, settlements);
    }),
  });
  await fixture.enqueueMany(
    quick,
    Array.from({ length: jobs }, () => ({})),
  );
  return { sizes, answer };
}

describe("settlements", () => {
  test("that are large go out in several calls, so that no statement is larger than its bound", async () => {
    const sizes: number[] = [];
    const large = task("large", async () => "x".repeat(BOUNDS.output - 2));
    fixture = new MemoryFixture({
      tasks: [large],
      wrapStore: settling(async (settlements, real, worker) => {
        sizes.push(settlements.reduce((sum, { patch }) => sum + (patch.output?.length ?? 0), 0));
        return real(worker, settlements);
      }),
    });
    const jobs = 3 * Math.floor(BOUNDS.statement / BOUNDS.output);
    await fixture.enqueueMany(
      large,
      Array.from({ length: jobs }, () => ({})),
    );
    await fixture.work({ concurrency: jobs });
    await fixture.clock.quiet();
    expect(Math.max(...sizes)).toBeLessThanOrEqual(BOUNDS.statement);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(jobs * BOUNDS.output);
  });

  test("of one turn go out together, two calls at a time, the rest merged", async () => {
    const { sizes, answer } = await unanswered(60);
    await fixture.work({ concurrency: 20 });
    await fixture.clock.quiet();
    expect(sizes.length).toBeLessThanOrEqual(2);
    answer.open();
    await fixture.clock.quiet();
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(60);
    expect(sizes.length).toBeLessThanOrEqual(4);
  });

  test("wait for a call under way until as many have gathered as it has", async () => {
    const { sizes, answer } = await unanswered(20);
    await fixture.work({ concurrency: 20 });
    await fixture.clock.quiet();
    for (let i = 0; i < 19; i++) {
      await fixture.enqueue(quick);
      await fixture.clock.quiet();
    }
    expect(sizes, "19 would gain nothing by going alone").toEqual([20]);
    await fixture.enqueue(quick);
    await fixture.clock.quiet();
    expect(sizes).toEqual([20, 20]);
    answer.open();
    await fixture.clock.quiet();
    expect((await fixture.inner.records.counts())[0]?.counts.succeeded).toBe(40);
  });

  test("of jobs under limits go out beside those of others: somebody waits for what they hold", async () => {
    const { sizes, answer } = await unanswered(20, 1);
    await fixture.work({ concurrency: 20 });
    await fixture.clock.quiet();
    const limited = under({ concurrency: 1 });
    for (let i = 0; i < 3; i++) await fixture.enqueue(quick, {}, { options: limited });
    await fixture.clock.quiet();
    expect(sizes, "one after the other, each let in by the one before").toEqual([20, 1, 1, 1]);
    answer.open();
    await fixture.clock.quiet();
    expect((await fixture.inner.records.counts())[0]?.counts.succeeded).toBe(23);
  });

  /** The first call hangs with 8 of them; so many come after. */
  async function hanging(more: number) {
    const { sizes, answer: hangs } = await unanswered(8, 1);
    const worker = await fixture.work({ concurrency: 8, maxJobsPerClaim: 1 });
    await fixture.clock.quiet();
    for (let i = 0; i < more; i++) await fixture.enqueue(quick);
    await fixture.clock.quiet();
    return { worker, sizes, hangs };
  }

  test("go out beside a call that hangs when nothing more may start because of them", async () => {
    const { sizes, hangs } = await hanging(3);
    expect(sizes.slice(0, 2), "ten are as many as may wait").toEqual([8, 2]);
    hangs.open();
    await fixture.clock.quiet();
    expect(sizes.reduce((sum, size) => sum + size)).toBe(11);
  });

  test("go out beside a call that hangs when the worker stops", async () => {
    const { worker, sizes, hangs } = await hanging(1);
    expect(sizes).toEqual([8]);
    const stopped = worker.stop();
    await fixture.clock.quiet();
    expect(sizes).toEqual([8, 1]);
    hangs.open();
    await stopped;
  });

  test("are repeated until the store answers, and a lost answer settles nothing twice", async () => {
    fixture = new MemoryFixture({
      tasks: [quick],
      wrapStore: (store) =>
        faultyStore(store, (operation, earlier) =>
          operation === "leases.settle" && earlier < 3
            ? { kind: earlier === 0 ? "lose" : "fail", error: pawlError("store_unreachable", {}) }
            : undefined,
        ),
    });
    const id = await fixture.enqueue(quick);
    await fixture.work();
    await fixture.clock.advance(10_000);
    expect(await fixture.outcomes(id)).toEqual(["succeeded"]);
    expect(fixture.eventsNamed("attempt.settled")).toHaveLength(1);
    expect(fixture.eventsNamed("attempt.stale")).toEqual([]);
  });

  test("of work that was finished are still offered after an outage longer than the lease", async () => {
    let away = false;
    const end = barrier();
    const long = task("long", async () => {
      await end.opened;
      away = true;
      return "finished before the store went";
    });
    fixture = new MemoryFixture({
      tasks: [long],
      wrapStore: (store) => faultyStore(store, () => (away ? { kind: "fail", error: pawlError("store_unreachable", {}) } : undefined)),
    });
    const id = await fixture.enqueue(long);
    await fixture.work();
    end.open();
    await fixture.clock.advance(60_000);
    away = false;
    await fixture.clock.advance(5_000);
    expect(await fixture.state(id)).toBe("succeeded");
    expect(await fixture.outcomes(id)).toEqual(["succeeded"]);
  });

  test.each([
    pawlError("store_failed", { operation: "settle", reason: "invalid byte sequence", lasting: true }),
    pawlError("json_invalid", { reason: "it is deeper than 64" }),
    pawlError("field_invalid", { field: "/outcomes/0/failure/kind", reason: "must be one of the allowed values" }),
    pawlError("body_too_large", { limit: 8_388_608 }),
  ])("one that the store refuses is found, simplified, and holds up nobody: $code", async (refusal) => {
    let poison = "";
    fixture = new MemoryFixture({
      tasks: [quick],
      wrapStore: settling(async (settlements, real, worker) => {
        if (settlements.some(({ job, patch }) => job === poison && patch.outcome === "succeeded")) {
          throw refusal;
        }
        return real(worker, settlements);
      }),
    });
    const ids = await fixture.enqueueMany(
      quick,
      Array.from({ length: 100 }, () => ({})),
    );
    poison = ids[63] as string;
    await fixture.work({ concurrency: 100 });
    await fixture.clock.advance(13_000);
    for (const id of ids) expect(await fixture.state(id)).toBe(id === poison ? "dead" : "succeeded");
    expect((await fixture.job(poison as never)).failure).toMatchObject({ kind: "output_unencodable" });
  });

  test.each([
    pawlError("store_failed", { operation: "settle", reason: "canceling statement due to statement timeout", lasting: false }),
    pawlError("forbidden", { action: "leases.settle", reason: "its key was revoked" }),
    pawlError("too_many_requests", { what: "a worker's session", retryAfter: 5_000 }),
  ])("a store that fails for any other reason is tried again, and no job is judged by it: $code", async (failure) => {
    let failures = 20;
    fixture = new MemoryFixture({
      tasks: [quick],
      wrapStore: settling(async (settlements, real, worker) => {
        if (failures-- > 0) throw failure;
        return real(worker, settlements);
      }),
    });
    const id = await fixture.enqueue(quick, {});
    await fixture.work({ concurrency: 1, leaseDuration: "10m" });
    await fixture.clock.advance(60_000);
    expect(await fixture.state(id)).toBe("succeeded");
  });

  test("too many of them waiting keep new jobs from starting", async () => {
    let ran = 0;
    const counting = task("counting", async () => void ran++);
    const answer = barrier();
    fixture = new MemoryFixture({
      tasks: [counting],
      wrapStore: settling(async (settlements, real, worker) => {
        await answer.opened;
        return real(worker, settlements);
      }),
    });
    await fixture.enqueueMany(
      counting,
      Array.from({ length: 1_000 }, () => ({})),
    );
    await fixture.work({ concurrency: 5, maxJobsPerClaim: 10 });
    await fixture.clock.quiet();
    expect(ran).toBeLessThan(130);
    answer.open();
    await fixture.clock.quiet();
    expect(ran).toBe(1_000);
  });

  test("carry the store's time, however wrong the clock of this machine is", async () => {
    const timed = task("timed", () => new Promise<void>((resolve) => fixture.clock.after(250, resolve)));
    fixture = new MemoryFixture({ tasks: [timed] });
    const id = await fixture.enqueue(timed);
    const began = fixture.clock.now();
    await fixture.work();
    await fixture.clock.advance(300);
    expect(await fixture.history(id)).toMatchObject([{ startedAt: began, finishedAt: began + 250 }]);
  });
});

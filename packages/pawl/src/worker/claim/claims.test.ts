import { afterEach, describe, expect, test } from "vitest";
import { barrier, MemoryFixture } from "../../../../../test/support/fixtures/memory-fixture.js";
import { dutiesOf } from "../../../conformance/duties.js";
import type { Priority } from "../../core/jobs/job.js";
import { type AnyTask, task } from "../../core/jobs/task.js";
import { DEFAULTS } from "../../core/values/defaults.js";
import type { Store } from "../../store/port/index.js";
import type { ClaimRequest } from "../../store/port/settle/leases.js";
import { faultyStore } from "../../testing/faulty.js";

let fixture: MemoryFixture;
afterEach(() => fixture.close());

/** Notes every claim and every look for lanes. */
/** How many jobs a claim may bring. */
const asked = ({ quotas }: ClaimRequest) => quotas.reduce((sum, { quota }) => sum + quota, 0);

function counted(requests: ClaimRequest[], polls: { count: number }) {
  return (store: Store): Store => ({
    ...store,
    leases: {
      ...store.leases,
      claim(request) {
        requests.push(request);
        return store.leases.claim(request);
      },
    },
    lanes: {
      ...store.lanes,
      live(queues, tasks) {
        polls.count++;
        return store.lanes.live(queues, tasks);
      },
    },
  });
}

function open(tasks: readonly AnyTask[]) {
  const requests: ClaimRequest[] = [];
  const polls = { count: 0 };
  fixture = new MemoryFixture({ tasks, wrapStore: counted(requests, polls) });
  return { requests, polls };
}

describe("how much is claimed", () => {
  test("a slow worker claims no more than it can start: it claims what its free slots can start", async () => {
    const slow = task("slow", () => new Promise<never>(() => {}));
    const { requests } = open([slow]);
    await fixture.enqueueMany(
      slow,
      Array.from({ length: 100 }, () => ({})),
    );
    const worker = await fixture.work({ concurrency: 7 });
    expect(worker.status()).toMatchObject({ running: 7, buffered: 0, free: 0 });
    expect(requests.map(asked)).toEqual([7]);
  });

  test("no-op handlers get full batches once they are known to be quick", async () => {
    const quick = task("quick", async () => {});
    const { requests } = open([quick]);
    await fixture.enqueueMany(
      quick,
      Array.from({ length: 5_000 }, () => ({})),
    );
    await fixture.work({ concurrency: 10 });
    await fixture.clock.quiet();
    expect((await fixture.inner.records.counts())[0]?.counts.succeeded).toBe(5_000);
    expect(requests.slice(0, 1).map(asked)).toEqual([10]);
    expect(requests.slice(1, 5).map(asked)).toEqual(Array.from({ length: 4 }, () => DEFAULTS.worker.maxJobsPerClaim));
  });

  test("a task nobody has seen yet is claimed into free slots only, however quick the others are", async () => {
    const quick = task("quick", async () => {});
    const slow = task("slow", () => new Promise<never>(() => {}));
    open([quick, slow]);
    const worker = await fixture.work({ concurrency: 5 });
    await fixture.enqueueMany(
      quick,
      Array.from({ length: 1_000 }, () => ({})),
    );
    await fixture.clock.quiet();
    await fixture.enqueueMany(
      slow,
      Array.from({ length: 1_000 }, () => ({})),
    );
    await fixture.clock.quiet();
    expect(worker.status().running).toBe(5);
    expect(worker.status().buffered).toBeLessThanOrEqual(5);
  });

  test("jobs that became slow after they were claimed ahead are given back, at no attempt", async () => {
    let slow = false;
    const moody = task("moody", () => (slow ? new Promise<never>(() => {}) : undefined));
    open([moody]);
    const worker = await fixture.work({ concurrency: 2 });
    await fixture.enqueueMany(
      moody,
      Array.from({ length: 100 }, () => ({})),
    );
    await fixture.clock.quiet();
    slow = true;
    const ids = await fixture.enqueueMany(
      moody,
      Array.from({ length: 100 }, () => ({})),
    );
    await fixture.clock.quiet();
    expect(worker.status().buffered).toBe(98);
    await fixture.clock.advance(1_500);
    expect(worker.status()).toMatchObject({ running: 2, buffered: 0 });
    const last = await fixture.job(ids[99] as (typeof ids)[0]);
    expect(last).toMatchObject({ state: "ready", attempts: 0, crashes: 0 });
  });

  test("slots of a queue and of a task are never exceeded, and hold nobody else back", async () => {
    const most = new Map<string, number>();
    const now = new Map<string, number>();
    const enter = (key: string) => {
      now.set(key, (now.get(key) ?? 0) + 1);
      most.set(key, Math.max(most.get(key) ?? 0, now.get(key) as number));
    };
    const pass = async (queue: string, name: string) => {
      for (const key of [queue, name]) enter(key);
      await new Promise<void>((resolve) => fixture.clock.after(100, resolve));
      for (const key of [queue, name]) now.set(key, (now.get(key) as number) - 1);
    };
    const a = task("a", (_: unknown, ctx) => pass(ctx.queue, ctx.task));
    const b = task("b", (_: unknown, ctx) => pass(ctx.queue, ctx.task));
    open([a, b]);
    for (const queue of ["mail", "web"]) {
      for (const tenant of ["t1", "t2", "t3"]) {
        for (const one of [a, b])
          await fixture.enqueueMany(
            one,
            Array.from({ length: 10 }, () => ({})),
            { lane: { queue, tenant } },
          );
      }
    }
    await fixture.work({ concurrency: { total: 20, queues: { mail: 3 }, tasks: { b: 4 } } });
    await fixture.clock.advance(10_000);
    const counts = (await fixture.inner.records.counts()).reduce((sum, row) => sum + row.counts.succeeded, 0);
    expect(counts).toBe(120);
    expect(most.get("mail")).toBe(3);
    expect(most.get("b")).toBe(4);
    expect(most.get("a")).toBeGreaterThan(10);
  });

  test("at-most-once jobs are claimed into free slots alone, and a stream of others cannot keep them out", async () => {
    const pause = (ms: number) => new Promise<void>((resolve) => fixture.clock.after(ms, resolve));
    const started = new Map<string, number>();
    const claimed: { readonly job: string; readonly at: number }[] = [];
    let quickDone = 0;
    const doneBefore: number[] = [];
    const quick = task("quick", async () => {
      await pause(5);
      quickDone++;
    });
    const once = task("once", { atMostOnce: true }, async (_: unknown, ctx) => {
      started.set(ctx.job, fixture.clock.monotonic());
      await pause(5);
      doneBefore.push(quickDone);
    });
    fixture = new MemoryFixture({
      tasks: [quick, once],
      wrapStore: (store) => ({
        ...store,
        leases: {
          ...store.leases,
          async claim(request) {
            await pause(3);
            const answer = await store.leases.claim(request);
            for (const { id, lane } of answer?.jobs ?? []) if (lane.task === "once") claimed.push({ job: id, at: fixture.clock.monotonic() });
            return answer;
          },
        },
      }),
    });
    await fixture.enqueueMany(
      quick,
      Array.from({ length: 1_000 }, () => ({})),
    );
    await fixture.work({ concurrency: 4 });
    await fixture.clock.advance(200);
    await fixture.enqueueMany(
      once,
      Array.from({ length: 12 }, () => ({})),
      { options: { atMostOnce: true } },
    );
    await fixture.clock.advance(4_000);
    expect(claimed).toHaveLength(12);
    // Claimed is started: not one of them ever waited here for a slot.
    for (const { job, at } of claimed) expect(started.get(job)).toBe(at);
    expect(quickDone).toBe(1_000);
    expect(Math.max(...doneBefore)).toBeLessThan(700);
  });
});

describe("at-most-once jobs", () => {
  test("are not asked for while another claim is under way, which may fill the slots first", async () => {
    const answer = barrier();
    let slow = false;
    const moody = task("moody", () => (slow ? new Promise<never>(() => {}) : undefined));
    const once = task("once", { atMostOnce: true }, async () => {});
    fixture = new MemoryFixture({
      tasks: [moody, once],
      wrapStore: (store) =>
        faultyStore(store, (operation) => (slow && operation === "leases.claim" ? { kind: "hold", until: answer.opened } : undefined)),
    });
    const worker = await fixture.work({ concurrency: 4 });
    await fixture.enqueueMany(
      moody,
      Array.from({ length: 50 }, () => ({})),
    );
    await fixture.clock.quiet();
    slow = true;
    await fixture.enqueueMany(
      moody,
      Array.from({ length: 4 }, () => ({})),
    );
    await fixture.clock.quiet();
    const atMostOnceJob = await fixture.enqueue(once, {}, { options: { atMostOnce: true } });
    await fixture.clock.quiet();
    answer.open();
    await fixture.clock.quiet();
    expect(worker.status()).toMatchObject({ running: 4, buffered: 0 });
    expect(await fixture.state(atMostOnceJob)).toBe("ready");
  });
});

describe("what is claimed", () => {
  test("only tasks it has, only queues it serves", async () => {
    const mine = task("mine", async () => {});
    const other = task("other", async () => {});
    const { requests } = open([mine, other]);
    const ids = [
      await fixture.enqueue(mine, {}, { lane: { queue: "a" } }),
      await fixture.enqueue(mine, {}, { lane: { queue: "b" } }),
      await fixture.enqueue(other, {}, { lane: { queue: "a" } }),
      await fixture.enqueue("somebody.elses", {}, { lane: { queue: "a" } }),
    ];
    await fixture.work({ queues: ["a"], tasks: ["mine"] });
    await fixture.clock.advance(5_000);
    expect(await Promise.all(ids.map((id) => fixture.state(id)))).toEqual(["succeeded", "ready", "ready", "ready"]);
    expect(requests.flatMap(({ quotas }) => quotas).every(({ lane }) => lane.queue === "a" && lane.task === "mine")).toBe(true);
  });

  test("of lanes that gave less than asked for, those are asked again of which the store says that there may be more, and no others", async () => {
    const note = task("note", () => {});
    const asked: (readonly string[])[] = [];
    const polls = { count: 0 };
    // At first another holds the rows of one lane.
    const held = (store: Store): Store => ({
      ...store,
      leases: {
        ...store.leases,
        async claim(request) {
          asked.push(request.quotas.map(({ lane }) => lane.tenant).sort());
          if (asked.length > 1) return store.leases.claim(request);
          const more = request.quotas.flatMap(({ lane }) => (lane.tenant === "held" ? [lane] : []));
          const claimed = await store.leases.claim({ ...request, quotas: request.quotas.filter(({ lane }) => lane.tenant !== "held") });
          return claimed && { ...claimed, more };
        },
      },
    });
    fixture = new MemoryFixture({ tasks: [note], wrapStore: (store) => counted([], polls)(held(store)) });
    await fixture.enqueueMany(note, [{}, {}, {}], { lane: { tenant: "held" } });
    await fixture.enqueue(note, {}, { lane: { tenant: "few" } });
    await fixture.work({ concurrency: 10 });
    await fixture.clock.quiet();
    expect((await fixture.inner.records.counts())[0]?.counts.succeeded).toBe(4);
    const [first, ...others] = asked;
    expect(first).toEqual(["few", "held"]);
    expect(new Set(others.flat())).toEqual(new Set(["held"]));
    expect(polls.count, "it was not found by another look").toBe(1);
  });

  test("every lane gets its turn: tenants share, and urgent priorities get more without starving the rest", async () => {
    const order: string[] = [];
    const note = task("note", (_: unknown, ctx) => {
      order.push(ctx.tenant);
      return new Promise<void>((resolve) => fixture.clock.after(1_000, resolve));
    });
    open([note]);
    await fixture.enqueueMany(
      note,
      Array.from({ length: 500 }, () => ({})),
      { lane: { tenant: "big" } },
    );
    for (const tenant of ["s1", "s2", "s3"]) await fixture.enqueue(note, {}, { lane: { tenant } });
    await fixture.enqueueMany(
      note,
      Array.from({ length: 500 }, () => ({})),
      { lane: { tenant: "low", priority: 0 as Priority } },
    );
    await fixture.work({ concurrency: 8 });
    await fixture.clock.advance(3_000);
    expect(order.slice(0, 16)).toEqual(expect.arrayContaining(["s1", "s2", "s3", "big", "low"]));
  });

  test("a paused queue gives nothing, and its jobs start when it is resumed", async () => {
    const quick = task("quick", async () => {});
    const { requests } = open([quick]);
    await fixture.inner.lanes.pause("queue", "default");
    const id = await fixture.enqueue(quick);
    await fixture.work();
    await fixture.clock.advance(3_000);
    expect(await fixture.state(id)).toBe("ready");
    expect(requests.length).toBeLessThanOrEqual(1);
    await fixture.inner.lanes.resume("queue", "default");
    await fixture.clock.quiet();
    expect(await fixture.state(id)).toBe("succeeded");
  });
});

describe("when it is claimed", () => {
  test("a wakeup starts a job at once, with one claim and no look", async () => {
    const quick = task("quick", async () => {});
    const { requests, polls } = open([quick]);
    await fixture.work();
    const before = polls.count;
    for (let i = 1; i <= 5; i++) {
      const id = await fixture.enqueue(quick);
      await fixture.clock.quiet();
      expect(await fixture.state(id)).toBe("succeeded");
      expect([requests.length, polls.count]).toEqual([i, before]);
    }
  });

  test("a wakeup that comes while a claim of its lane is under way is not lost with the claim's answer", async () => {
    const quick = task("quick", async () => {});
    const answer = barrier();
    fixture = new MemoryFixture({
      tasks: [quick],
      wrapStore: (store) =>
        faultyStore(store, (operation, earlier) =>
          operation === "leases.claim" && earlier === 0 ? { kind: "delay", until: answer.opened } : undefined,
        ),
    });
    const first = await fixture.enqueue(quick);
    await fixture.work({ concurrency: 2 });
    const second = await fixture.enqueue(quick);
    await fixture.clock.quiet();
    answer.open();
    await fixture.clock.quiet();
    expect([await fixture.state(first), await fixture.state(second)]).toEqual(["succeeded", "succeeded"]);
  });

  test("without wakeups the poll finds it within the second", async () => {
    const quick = task("quick", async () => {});
    fixture = new MemoryFixture({ tasks: [quick], wrapStore: (store) => ({ ...store, onWakeup: () => () => {}, receivesWakeups: () => false }) });
    await fixture.work();
    const id = await fixture.enqueue(quick);
    await fixture.clock.advance(1_200);
    expect(await fixture.state(id)).toBe("succeeded");
  });

  test("an idle worker asks at most one question a second", async () => {
    const { requests, polls } = open([task("quick", async () => {})]);
    await fixture.work();
    polls.count = 0;
    await fixture.clock.advance(60_000);
    expect(requests).toEqual([]);
    expect(polls.count).toBeLessThanOrEqual(30);
    expect(polls.count).toBeGreaterThanOrEqual(20);
  });

  test("however often it is told to look, it rests as long as its last look took", async () => {
    let polls = 0;
    fixture = new MemoryFixture({
      tasks: [task("quick", async () => {})],
      wrapStore: (store) => ({
        ...store,
        lanes: {
          ...store.lanes,
          async live(queues, tasks) {
            polls++;
            await new Promise<void>((resolve) => fixture.clock.after(100, resolve));
            return store.lanes.live(queues, tasks);
          },
        },
      }),
    });
    await fixture.work();
    await fixture.clock.advance(900);
    polls = 0;
    for (let told = 0; told < 100; told++) {
      fixture.inner.sendWakeup({ kind: "lanes" });
      await fixture.clock.advance(10);
    }
    expect(polls, "at 0, 200, 400 … ms: the last one sees what it was told last").toBe(6);
  });

  test("never more than two claims are under way", async () => {
    const quick = task("quick", async () => {});
    let flying = 0;
    let most = 0;
    fixture = new MemoryFixture({
      tasks: [quick],
      wrapStore: (store) => ({
        ...store,
        leases: {
          ...store.leases,
          async claim(request) {
            most = Math.max(most, ++flying);
            await new Promise<void>((resolve) => fixture.clock.after(5, resolve));
            flying--;
            return store.leases.claim(request);
          },
        },
      }),
    });
    await fixture.enqueueMany(
      quick,
      Array.from({ length: 20_000 }, () => ({})),
    );
    await fixture.work();
    await fixture.clock.advance(2_000);
    expect((await fixture.inner.records.counts())[0]?.counts.succeeded).toBe(20_000);
    expect(most).toBe(2);
  });

  test("C3: after a long outage of the store it is alive, and resumes within three seconds", async () => {
    const quick = task("quick", async () => {});
    let away = false;
    fixture = new MemoryFixture({ tasks: [quick], wrapStore: (store) => faultyStore(store, () => (away ? { kind: "fail" } : undefined)) });
    const worker = await fixture.work();
    away = true;
    const id = await fixture.enqueue(quick);
    await fixture.clock.advance(15 * 60_000);
    expect(fixture.eventsNamed("duty.failed").length).toBeLessThan(2_000);
    away = false;
    await fixture.clock.advance(3_000);
    expect(await fixture.state(id)).toBe("succeeded");
    expect(worker.status().state).toBe("working");
  });

  test("C6: it starts while the store is away", async () => {
    const quick = task("quick", async () => {});
    let away = true;
    fixture = new MemoryFixture({ tasks: [quick], wrapStore: (store) => faultyStore(store, () => (away ? { kind: "fail" } : undefined)) });
    const id = await fixture.enqueue(quick);
    await fixture.work();
    await fixture.clock.advance(60_000);
    away = false;
    await fixture.clock.advance(3_000);
    expect(await fixture.state(id)).toBe("succeeded");
  });

  test("C9: claims that never come back are noticed after thirty seconds, and work goes on", async () => {
    const quick = task("quick", async () => {});
    const never = barrier();
    fixture = new MemoryFixture({
      tasks: [quick],
      wrapStore: (store) =>
        faultyStore(store, (operation, earlier) => (operation === "leases.claim" && earlier < 2 ? { kind: "hold", until: never.opened } : undefined)),
    });
    const ids = await fixture.enqueueMany(quick, [{}, {}]);
    await fixture.work({ concurrency: 1, maxJobsPerClaim: 1 });
    await fixture.clock.advance(29_000);
    expect(fixture.eventsNamed("worker.stalled")).toHaveLength(0);
    await fixture.clock.advance(6_500);
    expect(fixture.eventsNamed("worker.stalled").length).toBeGreaterThan(0);
    await fixture.clock.advance(35_000);
    for (const id of ids) expect(await fixture.state(id)).toBe("succeeded");
  });

  test("a claim whose answer was lost leaves its jobs to their lease, and takes nothing else down", async () => {
    const quick = task("quick", async () => {});
    fixture = new MemoryFixture({
      tasks: [quick],
      wrapStore: (store) =>
        faultyStore(store, (operation, earlier) => (operation === "leases.claim" && earlier === 0 ? { kind: "lose" } : undefined)),
    });
    const lost = await fixture.enqueue(quick);
    await fixture.work();
    await fixture.maintain();
    const other = await fixture.enqueue(quick);
    await fixture.clock.advance(5_000);
    expect([await fixture.state(lost), await fixture.state(other)]).toEqual(["running", "succeeded"]);
    await fixture.clock.advance(15_000);
    expect(await fixture.job(lost)).toMatchObject({ state: "succeeded", crashes: 1, attempts: 1 });
  });
});

describe("suspects", () => {
  test("A14: a job lost with its worker twice is run alone, one at a time, and spends crashes, not attempts", async () => {
    let most = 0;
    let now = 0;
    const suspect = task("suspect", async () => {
      most = Math.max(most, ++now);
      await new Promise<void>((resolve) => fixture.clock.after(50, resolve));
      now--;
    });
    open([suspect]);
    const ids = await fixture.enqueueMany(suspect, [{}, {}, {}]);
    const ghost = { name: "ghost", instance: "00000000-0000-4000-8000-000000000000" as never };
    const lane = { queue: "default", priority: 5 as Priority, tenant: "default", task: "suspect" };
    for (let crash = 0; crash < 2; crash++) {
      await fixture.inner.leases.claim({ worker: ghost, quotas: [{ lane, quota: 3 }], duration: 1_000 });
      fixture.clock.leap(1_001);
      await dutiesOf(fixture.inner).reap(10);
    }
    const leases = new Set<string>();
    fixture.bus.on("jobs.claimed", ({ lease, count }) => {
      leases.add(lease);
      expect(count).toBe(1);
    });
    await fixture.work({ concurrency: 10 });
    await fixture.clock.advance(5_000);
    for (const id of ids) expect(await fixture.job(id)).toMatchObject({ state: "succeeded", crashes: 2, attempts: 1 });
    expect([most, leases.size]).toEqual([1, 3]);
  });
});

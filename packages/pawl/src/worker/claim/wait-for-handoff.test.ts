import { afterEach, describe, expect, test } from "vitest";
import { barrier, MemoryFixture } from "../../../../../test/support/fixtures/memory-fixture.js";
import type { JobId } from "../../core/jobs/id.js";
import type { Lane } from "../../core/jobs/lane.js";
import { type AnyTask, task } from "../../core/jobs/task.js";
import type { IdleWorker, IdleWorkerOptions } from "../../store/port/claim/direct-handoff.js";
import type { Store, Wakeup } from "../../store/port/index.js";
import type { WorkerOptions } from "../options.js";

let fixture: MemoryFixture;
afterEach(() => fixture.close());

/** Idle workers as a store has them, but who is handed what, and who hears of what, is said by the test. */
class FakeHandoff {
  readonly asked: IdleWorkerOptions[] = [];
  /** what each was told, in order */
  readonly told: string[] = [];
  taken = false;
  /** whoever leaves waits for this */
  leaving: Promise<unknown> = Promise.resolve();
  readonly #listeners = new Set<(wakeup: Wakeup) => void>();
  constructor(private readonly store: Store) {}

  onWakeup(listener: (wakeup: Wakeup) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  async tell(name: string): Promise<void> {
    for (const listener of this.#listeners) listener({ kind: "ready", lanes: [laneOf(name)] });
    await fixture.clock.quiet();
  }

  of(options: IdleWorkerOptions): IdleWorker {
    this.asked.push(options);
    const now = (taken: boolean, what: string) => {
      this.taken = taken;
      this.told.push(what);
    };
    return {
      register: () => now(true, "register"),
      unregister: () => now(false, "unregister"),
      close: async () => {
        now(false, "close");
        await this.leaving;
      },
    };
  }

  /** Hands over the next job of the lane. */
  async hand(lane: Lane): Promise<void> {
    const { worker, duration, onHandoff } = this.asked.at(-1) as IdleWorkerOptions;
    const claimed = await this.store.leases.claim({ worker, quotas: [{ lane, quota: 1 }], duration });
    if (claimed === undefined) throw new Error("there is no job");
    this.taken = false;
    onHandoff({ claimed, since: fixture.clock.monotonic() });
  }
}

function open(tasks: readonly AnyTask[]): FakeHandoff {
  let handoff: FakeHandoff | undefined;
  fixture = new MemoryFixture({
    tasks,
    wrapStore: (store) => {
      handoff = new FakeHandoff(store);
      const made = handoff;
      return { ...store, handoff: { of: (options) => made.of(options) }, onWakeup: (listener) => made.onWakeup(listener) };
    },
  });
  return handoff as unknown as FakeHandoff;
}

const laneOf = (name: string): Lane => ({ queue: "default", priority: 5, tenant: "default", task: name });
const quick = task("quick", async () => {});

async function handOver(handoff: FakeHandoff, name: string): Promise<JobId> {
  const id = await fixture.enqueue(name);
  await handoff.hand(laneOf(name));
  await fixture.clock.quiet();
  return id;
}

/** A worker that knows of no job before it is handed one. */
const work = (options: WorkerOptions = {}) => fixture.work({ ...options, pollInterval: "1h" });

describe("an idle worker", () => {
  test("registers, runs what it is handed, and registers again", async () => {
    const handoff = open([quick]);
    await work();
    expect(handoff.asked).toMatchObject([{ tasks: ["quick"], queues: undefined, duration: 15_000 }]);
    const id = await handOver(handoff, "quick");
    expect(await fixture.state(id)).toBe("succeeded");
    expect(handoff.told).toEqual(["register", "register"]);
  });

  test("stands up while it has a job, since another may have none", async () => {
    const done = barrier();
    const slow = task("slow", () => done.opened);
    const handoff = open([quick, slow]);
    await work({ concurrency: 5 });
    await fixture.enqueue(slow);
    await handoff.tell("slow");
    expect(handoff.told).toEqual(["register", "unregister"]);
    done.open();
    await fixture.clock.quiet();
    expect(handoff.told).toEqual(["register", "unregister", "register"]);
  });

  test("holds what it is handed in the moment in which it unregisters, and runs it when it can", async () => {
    const done = barrier();
    const slow = task("slow", () => done.opened);
    const handoff = open([quick, slow]);
    await work({ concurrency: 1 });
    await fixture.enqueue(slow);
    await handoff.tell("slow");
    const id = await handOver(handoff, "quick");
    expect(await fixture.state(id), "its only slot is taken").toBe("running");
    done.open();
    await fixture.clock.quiet();
    expect(await fixture.state(id)).toBe("succeeded");
  });

  test("that is stopped unregisters, and gives back what it is handed in that moment", async () => {
    const handoff = open([quick]);
    const left = barrier();
    handoff.leaving = left.opened;
    const worker = await work();
    const stopped = worker.stop();
    await fixture.clock.quiet();
    const id = await handOver(handoff, "quick");
    left.open();
    await fixture.whileTimePasses(stopped);
    expect([await fixture.state(id), await fixture.outcomes(id)]).toEqual(["ready", ["released"]]);
    expect(handoff.told).toEqual(["register", "close"]);
  });

  test("does not register while wakeups come one after the other", async () => {
    const handoff = open([quick]);
    await work();
    const told = async () => {
      await fixture.enqueue(quick);
      await handoff.tell("quick");
    };
    await told();
    for (let n = 0; n < 20; n++) {
      await fixture.clock.advance(5);
      await told();
    }
    expect(handoff.taken).toBe(false);
    await fixture.clock.advance(20);
    await told();
    expect(handoff.taken, "twenty ms later it does").toBe(true);
  });
});

describe("nobody registers", () => {
  const once = task("once", { atMostOnce: true }, async () => {});
  test("for what runs at most once, or needs a part of the worker", async () => {
    const large = task("large", { needs: { resources: { memory: 1 } } }, async () => {});
    const handoff = open([once, quick, large]);
    await work();
    expect(handoff.asked.map(({ tasks }) => tasks)).toEqual([["quick"]]);
    const none = open([once]);
    await work();
    expect(none.asked).toEqual([]);
  });

  test.each<[string, WorkerOptions]>([
    ["some priorities", { priorities: [5] }],
    ["some tenants", { tenants: ["acme"] }],
    ["so many of a task", { concurrency: { tasks: { quick: 1 } } }],
    ["kept slots", { concurrency: 4, reserve: [{ tenant: "acme", slots: 1 }] }],
  ])("where a worker chooses among jobs: %s", async (_, options) => {
    const handoff = open([quick]);
    await work(options);
    expect(handoff.asked).toEqual([]);
  });
});

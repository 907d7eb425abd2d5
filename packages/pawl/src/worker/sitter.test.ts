import { afterEach, describe, expect, test } from "vitest";
import { gate, World } from "../../../../test/support/world.js";
import type { JobId } from "../core/id.js";
import type { Lane } from "../core/lane.js";
import type { Hint, Store } from "../store/port.js";
import type { Seat, SeatOptions } from "../store/port-seats.js";
import type { WorkerOptions } from "./options.js";
import { type AnyTask, task } from "./task.js";

let world: World;
afterEach(() => world.close());

/** Seats as a store has them, but who is handed what, and who hears of what, is said by the test. */
class FakeSeats {
  readonly asked: SeatOptions[] = [];
  /** what each was told, in order */
  readonly told: string[] = [];
  taken = false;
  /** whoever leaves waits for this */
  leaving: Promise<unknown> = Promise.resolve();
  readonly #listeners = new Set<(hint: Hint) => void>();
  constructor(private readonly store: Store) {}

  onHint(listener: (hint: Hint) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  async tell(name: string): Promise<void> {
    for (const listener of this.#listeners) listener({ kind: "ready", lanes: [laneOf(name)] });
    await world.clock.quiet();
  }

  of(options: SeatOptions): Seat {
    this.asked.push(options);
    const now = (taken: boolean, what: string) => {
      this.taken = taken;
      this.told.push(what);
    };
    return {
      sit: () => now(true, "sit"),
      standUp: () => now(false, "stand up"),
      leave: async () => {
        now(false, "leave");
        await this.leaving;
      },
    };
  }

  /** Hands over the next job of the lane. */
  async hand(lane: Lane): Promise<void> {
    const { worker, duration, onHanded } = this.asked.at(-1) as SeatOptions;
    const claimed = await this.store.leases.claim({ worker, quotas: [{ lane, quota: 1 }], duration });
    if (claimed === undefined) throw new Error("there is no job");
    this.taken = false;
    onHanded({ claimed, since: world.clock.monotonic() });
  }
}

function open(tasks: readonly AnyTask[]): FakeSeats {
  let seats: FakeSeats | undefined;
  world = new World({
    tasks,
    around: (store) => {
      seats = new FakeSeats(store);
      const made = seats;
      return { ...store, seats: { of: (options) => made.of(options) }, onHint: (listener) => made.onHint(listener) };
    },
  });
  return seats as unknown as FakeSeats;
}

const laneOf = (name: string): Lane => ({ queue: "default", band: 5, tenant: "default", task: name });
const quick = task("quick", async () => {});

async function handOver(seats: FakeSeats, name: string): Promise<JobId> {
  const id = await world.enqueue(name);
  await seats.hand(laneOf(name));
  await world.clock.quiet();
  return id;
}

/** A worker that knows of no job before it is handed one. */
const work = (options: WorkerOptions = {}) => world.work({ ...options, poll: "1h" });

describe("a worker with empty hands", () => {
  test("sits, runs what it is handed, and sits again", async () => {
    const seats = open([quick]);
    await work();
    expect(seats.asked).toMatchObject([{ tasks: ["quick"], queues: undefined, duration: 15_000 }]);
    const id = await handOver(seats, "quick");
    expect(await world.state(id)).toBe("succeeded");
    expect(seats.told).toEqual(["sit", "sit"]);
  });

  test("stands up while it has a job, since another may have none", async () => {
    const done = gate();
    const slow = task("slow", () => done.opened);
    const seats = open([quick, slow]);
    await work({ concurrency: 5 });
    await world.enqueue(slow);
    await seats.tell("slow");
    expect(seats.told).toEqual(["sit", "stand up"]);
    done.open();
    await world.clock.quiet();
    expect(seats.told).toEqual(["sit", "stand up", "sit"]);
  });

  test("holds what it is handed in the moment in which it stands up, and runs it when it can", async () => {
    const done = gate();
    const slow = task("slow", () => done.opened);
    const seats = open([quick, slow]);
    await work({ concurrency: 1 });
    await world.enqueue(slow);
    await seats.tell("slow");
    const id = await handOver(seats, "quick");
    expect(await world.state(id), "its only slot is taken").toBe("running");
    done.open();
    await world.clock.quiet();
    expect(await world.state(id)).toBe("succeeded");
  });

  test("that is stopped stands up, and gives back what it is handed in that moment", async () => {
    const seats = open([quick]);
    const left = gate();
    seats.leaving = left.opened;
    const worker = await work();
    const stopped = worker.stop();
    await world.clock.quiet();
    const id = await handOver(seats, "quick");
    left.open();
    await world.whilePassing(stopped);
    expect([await world.state(id), await world.outcomes(id)]).toEqual(["ready", ["released"]]);
    expect(seats.told).toEqual(["sit", "leave"]);
  });

  test("does not sit while wake-ups come one after the other", async () => {
    const seats = open([quick]);
    await work();
    const told = async () => {
      await world.enqueue(quick);
      await seats.tell("quick");
    };
    await told();
    for (let n = 0; n < 20; n++) {
      await world.clock.advance(5);
      await told();
    }
    expect(seats.taken).toBe(false);
    await world.clock.advance(20);
    await told();
    expect(seats.taken, "twenty ms later it does").toBe(true);
  });
});

describe("nobody sits", () => {
  const once = task("once", { atMostOnce: true }, async () => {});
  test("for what runs at most once, or needs a part of the worker", async () => {
    const large = task("large", { needs: { amounts: { memory: 1 } } }, async () => {});
    const seats = open([once, quick, large]);
    await work();
    expect(seats.asked.map(({ tasks }) => tasks)).toEqual([["quick"]]);
    const none = open([once]);
    await work();
    expect(none.asked).toEqual([]);
  });

  test.each<[string, WorkerOptions]>([
    ["some bands", { bands: [5] }],
    ["some tenants", { tenants: ["acme"] }],
    ["so many of a task", { slots: { tasks: { quick: 1 } } }],
    ["kept slots", { concurrency: 4, reserve: [{ tenant: "acme", slots: 1 }] }],
  ])("where a worker chooses among jobs: %s", async (_, options) => {
    const seats = open([quick]);
    await work(options);
    expect(seats.asked).toEqual([]);
  });
});

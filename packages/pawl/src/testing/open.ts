import { type Duration, milliseconds } from "../core/values/duration.js";
import { type Pawl, type PawlOptions, startPawl } from "../pawl.js";
import type { StateCounts } from "../scheduler/observe/counts.js";
import { memoryStore } from "../store/memory/index.js";
import { ADMIT, REAP } from "../store/port/duties/duties.js";
import type { Store } from "../store/port/index.js";
import type { WorkerOptions } from "../worker/options.js";
import type { Worker } from "../worker/worker.js";
import { generator, type VirtualClock, type VirtualClockOptions, virtualClock } from "./clock.js";

export interface TestOptions extends PawlOptions, VirtualClockOptions {
  /** how its worker works; false: without one */
  readonly work?: WorkerOptions | false;
  /** puts something around the store, `faultyStore` for one */
  readonly wrapStore?: (store: Store) => Store;
}

/** A pawl in memory whose time is yours. */
export interface TestPawl extends AsyncDisposable {
  readonly pawl: Pawl;
  readonly clock: VirtualClock;
  readonly worker: Worker | undefined;
  /** Lets everything happen that can happen now. */
  idle(): Promise<void>;
  /** Lets time pass, and everything happen in it, in order. */
  advance(duration: Duration): Promise<void>;
  /** Lets as much time pass as the jobs need, retries and delays included, until none is left that time alone can move. */
  drain(): Promise<StateCounts>;
  close(): Promise<void>;
}

/** ms of real time a handler may take for work outside, before time moves on without it */
const REAL_TIME_WAIT_MS = 250;
const MAX_STEPS = 100_000;

export async function openTest(options: TestOptions = {}): Promise<TestPawl> {
  const { work = {}, wrapStore = (store) => store, start, seed, ...rest } = options;
  const clock = virtualClock({ ...(start === undefined ? {} : { start }), ...(seed === undefined ? {} : { seed }) });
  const inner = memoryStore({ now: clock.now });
  const random = generator(seed ?? 1);
  const pawl = await startPawl(wrapStore(inner), rest, { clock, randomBytes: (size) => Uint8Array.from({ length: size }, () => random() * 256) });
  const worker = work === false ? undefined : await pawl.work(work);
  const realTimeWait = new RealTimeWait(clock, () => worker?.status().running ?? 0);

  /** One step of time, at most `most` ms, to the next moment at which something can happen; the answer is its length. */
  const step = async (max: number): Promise<number> => {
    const { due } = await inner.duties.poll();
    // While jobs are held every timer counts: renewals, timeouts; and while a breaker is not closed: probes. Otherwise
    // all there is between now and what the store waits for is polling, and that can be slept through.
    const busy = due.has(REAP) || (await inner.breakers.listNotClosed()).length > 0;
    const until = [...due].flatMap(([duty, ms]) => (duty === REAP && !busy ? [] : ms));
    const length = Math.max(0, Math.min(max, ...until, busy ? (clock.nextIn() ?? max) : max));
    clock.leap(length);
    await realTimeWait.settle();
    return length;
  };

  const test: TestPawl = {
    pawl,
    clock,
    worker,
    idle: () => realTimeWait.settle(),
    async advance(duration) {
      const end = clock.now() + milliseconds(duration);
      await realTimeWait.settle();
      for (let steps = 0; clock.now() < end; steps++) {
        if (steps > MAX_STEPS) throw new Error("advance: there is no end to what happens in this time");
        const length = await step(end - clock.now());
        // Something is due that nobody takes: no worker, a pause. Time must not stop for it.
        if (length === 0) clock.leap(Math.min(end - clock.now(), Math.max(1, clock.nextIn() ?? 1)));
      }
      await realTimeWait.settle();
    },
    async drain() {
      await realTimeWait.settle();
      for (let steps = 0; ; steps++) {
        const counts = await pawl.counts();
        // What waits for a token is parked, and time alone moves it.
        const toCome = counts.parked > 0 && (await inner.duties.poll()).due.has(ADMIT) ? counts.parked : 0;
        if (counts.ready + counts.running + counts.scheduled + toCome === 0) return counts;
        if (steps > MAX_STEPS) throw new Error("drain: there is no end to the work");
        if (worker === undefined && counts.scheduled + toCome === 0) return counts;
        const length = await step(Number.MAX_SAFE_INTEGER);
        if (length === 0) clock.leap(Math.max(1, clock.nextIn() ?? 1));
      }
    },
    close: () => closing(clock, pawl),
    [Symbol.asyncDispose]: () => closing(clock, pawl),
  };
  await realTimeWait.settle();
  return test;
}

/** Stopping waits for timers too: time passes until it is done. */
async function closing(clock: VirtualClock, pawl: Pawl): Promise<void> {
  let done = false;
  const closed = pawl.close().finally(() => {
    done = true;
  });
  await clock.quiet();
  while (!done) {
    clock.leap(clock.nextIn() ?? 1);
    await clock.quiet();
  }
  await closed;
}

/**
 * Handlers may do real work (files, a database), which the virtual clock knows nothing of. They get some real time
 * to finish before it moves on; one that does not is taken to be waiting for the clock, and is not waited for again.
 */
class RealTimeWait {
  #stuck = 0;

  constructor(
    readonly clock: VirtualClock,
    readonly running: () => number,
  ) {}

  async settle(): Promise<void> {
    await this.clock.quiet();
    const since = performance.now();
    while (this.running() > this.#stuck && performance.now() - since < REAL_TIME_WAIT_MS) {
      await new Promise((resolve) => setTimeout(resolve, 1));
      await this.clock.quiet();
    }
    this.#stuck = this.running();
  }
}

import type { Clock } from "../runtime/time/clock.js";

interface Timer {
  readonly at: number;
  readonly order: number;
  readonly call: () => void;
}

/** A clock that stands still until it is moved, and repeats itself for a seed. */
export interface VirtualClock extends Clock {
  /** ms since 1970, for a store's own clock */
  now(): number;
  /** ms until the next timer */
  nextIn(): number | undefined;
  /** Moves on by `ms` at one stroke; timers passed by call back once, in their order, when it is over, as after a sleep. */
  leap(ms: number): void;
  /** Resolves when nothing has used the clock for some turns of the event loop: all that can happen now has happened. */
  quiet(): Promise<void>;
  /** Moves on by `ms`, timer by timer, with quiet after each. */
  advance(ms: number): Promise<void>;
}

export interface VirtualClockOptions {
  /** ms since 1970 */
  readonly start?: number;
  readonly seed?: number;
}

const DEFAULT_START = Date.UTC(2030, 0, 1);
/** Work in memory goes on within one turn; a few more let chains of promises and `setImmediate` finish. */
const QUIET_TURNS = 4;

export function virtualClock({ start = DEFAULT_START, seed = 1 }: VirtualClockOptions = {}): VirtualClock {
  let time = 0;
  let order = 0;
  let uses = 0;
  const timers = new Set<Timer>();
  const random = generator(seed);

  const next = (): Timer | undefined => {
    let first: Timer | undefined;
    for (const timer of timers) if (first === undefined || timer.at < first.at || (timer.at === first.at && timer.order < first.order)) first = timer;
    return first;
  };

  const clock: VirtualClock = {
    monotonic() {
      uses++;
      return time;
    },
    after(ms, call) {
      uses++;
      const timer: Timer = { at: time + Math.max(0, ms), order: order++, call };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
    soon(call) {
      uses++;
      setImmediate(call);
    },
    random() {
      return random();
    },
    now: () => start + time,
    nextIn() {
      const first = next();
      return first === undefined ? undefined : Math.max(0, first.at - time);
    },
    leap(ms) {
      time += ms;
      const due = [...timers].filter(({ at }) => at <= time).sort((a, b) => a.at - b.at || a.order - b.order);
      for (const timer of due) if (timers.delete(timer)) timer.call();
    },
    async quiet() {
      let before = -1;
      let turns = 0;
      while (turns < QUIET_TURNS) {
        turns = uses === before ? turns + 1 : 0;
        before = uses;
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
    async advance(ms) {
      const end = time + ms;
      await clock.quiet();
      for (let first = next(); first !== undefined && first.at <= end; first = next()) {
        clock.leap(Math.max(0, first.at - time));
        await clock.quiet();
      }
      clock.leap(end - time);
      await clock.quiet();
    },
  };
  return clock;
}

/** Numbers in [0, 1) that are the same for the same seed (mulberry32). */
export function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/**
 * Time and chance, for everything that is not pure. Nothing else in the library touches timers, clocks or random
 * numbers, so that a simulation can own them all.
 */
export interface Clock {
  /** ms that only go forward; for measuring and for stopping in time, never for dates */
  monotonic(): number;
  /** Calls back once after `ms`; the answer takes it back. The timer does not keep the process alive by itself. */
  after(ms: number, call: () => void): () => void;
  /** When work queued in this turn of the loop should go out. */
  soon(call: () => void): void;
  random(): number;
}

const MAX_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  monotonic: () => performance.now(),
  after(ms, call) {
    const timer = setTimeout(call, Math.min(Math.max(0, ms), MAX_TIMER_MS));
    timer.unref();
    return () => clearTimeout(timer);
  },
  soon: (call) => void setImmediate(call),
  random: Math.random,
};

/** What this machine believes the time to be, in ms since 1970: to be compared with a store's and with the dates of certificates, and for nothing else. */
export function wallClock(): number {
  return Date.now();
}

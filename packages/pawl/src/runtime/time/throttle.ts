import type { Clock } from "./clock.js";

/** Says a thing at once, and then no more often than every so many ms, however often there is something to say. */
export function throttle<T>(clock: Clock, every: number, call: ((what: T) => void) | undefined): (what: () => T) => void {
  let calledAt = Number.NEGATIVE_INFINITY;
  return (what) => {
    const now = clock.monotonic();
    if (call === undefined || now - calledAt < every) return;
    calledAt = now;
    call(what());
  };
}

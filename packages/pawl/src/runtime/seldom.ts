import type { Clock } from "./clock.js";

/** Says a thing at once, and then no more often than every so many ms, however often there is something to say. */
export function seldom<T>(clock: Clock, every: number, tell: ((what: T) => void) | undefined): (what: () => T) => void {
  let saidAt = Number.NEGATIVE_INFINITY;
  return (what) => {
    const now = clock.monotonic();
    if (tell === undefined || now - saidAt < every) return;
    saidAt = now;
    tell(what());
  };
}

import type { Clock } from "../time/clock.js";

/**
 * Timers of the clock do not keep a process alive, so that an idle pawl never holds up an exit. What people wait
 * for (a worker at work, a result) does: it holds the process until the answer is called.
 */
export function keepAlive(): () => void {
  const timer = setInterval(() => {}, 2 ** 30);
  return () => clearInterval(timer);
}

/** Waits inside something that somebody waits for: between two looks nothing else may be under way. */
export async function keepAliveFor(clock: Clock, ms: number): Promise<void> {
  const release = keepAlive();
  await new Promise<void>((resolve) => void clock.after(ms, resolve));
  release();
}

import { setTimeout as pause } from "node:timers/promises";

/** Looks again and again until the answer is neither undefined nor false; throws with what was waited for when time is up. */
export async function eventually<T>(
  what: string | (() => string),
  check: () => T | undefined | false | Promise<T | undefined | false>,
  ms = 60_000,
): Promise<T> {
  const giveUp = performance.now() + ms;
  for (;;) {
    const answer = await check();
    if (answer !== undefined && answer !== false) return answer;
    if (performance.now() >= giveUp) throw new Error(`not within ${ms} ms: ${typeof what === "string" ? what : what()}`);
    await pause(25);
  }
}

/** Looks again and again for that long: what must not happen has to be given the time to happen. */
export async function throughout(ms: number, check: () => void | Promise<void>): Promise<void> {
  const end = performance.now() + ms;
  do {
    await check();
    await pause(25);
  } while (performance.now() < end);
}

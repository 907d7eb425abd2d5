import { setTimeout as pause } from "node:timers/promises";

export { pause };

const POLL_MS = 15;

/** A moment on the monotonic clock: a wall clock that is set back must not prolong a wait. */
export type Deadline = number & { readonly deadline: unique symbol };

export function deadlineIn(ms: number): Deadline {
  return (performance.now() + ms) as Deadline;
}

export function isPast(deadline: Deadline): boolean {
  return performance.now() >= deadline;
}

/** Polls until the check answers something; undefined when the deadline passes first. */
export async function until<T>(check: () => T | undefined, deadline: Deadline): Promise<T | undefined> {
  for (;;) {
    const answer = check();
    if (answer !== undefined || isPast(deadline)) return answer;
    await pause(POLL_MS);
  }
}

import type { Clock } from "./clock.js";

/** Something that happens once, and that others can wait for. */
export class Signal {
  give: () => void = () => {};
  readonly given = new Promise<void>((resolve) => {
    this.give = resolve;
  });
}

/** Waits, but not for ever. */
export async function within(clock: Clock, done: Promise<void>, ms: number): Promise<void> {
  const tooLong = new Signal();
  const cancel = clock.after(ms, tooLong.give);
  await Promise.race([done, tooLong.given]);
  cancel();
}

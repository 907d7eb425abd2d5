import type { Clock } from "./clock.js";

/** Something that happens once, and that others can wait for. */
export class Signal {
  resolve: () => void = () => {};
  readonly promise = new Promise<void>((resolve) => {
    this.resolve = resolve;
  });
}

/** Waits, but not for ever. */
export async function within(clock: Clock, done: Promise<void>, ms: number): Promise<void> {
  const tooLong = new Signal();
  const cancel = clock.after(ms, tooLong.resolve);
  await Promise.race([done, tooLong.promise]);
  cancel();
}

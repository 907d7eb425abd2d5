import type { Pulse } from "../store/port-duties.js";

/**
 * Something that must be done for the whole store now and then, by whoever gets to it first. Level-triggered: the pulse
 * says that there is work, not that something happened, so a duty that failed or was missed is simply due again.
 */
export interface Duty {
  readonly name: string;
  /** ms until there is something to do, by what the pulse saw: zero or less is now, undefined is not in sight */
  due(pulse: Pulse): number | undefined;
  run(): Promise<Ran>;
}

export interface Ran {
  readonly count: number;
  /** ms until it knows that there is more to do; zero if there is more now */
  readonly nextIn?: number;
}

const NOTHING: Ran = { count: 0 };

/** For duties that handle up to `batch` at a time: a full batch means that there may be more. */
export function ran(count: number, batch: number): Ran {
  return count === 0 ? NOTHING : count < batch ? { count } : { count, nextIn: 0 };
}

import type { Poll } from "../store/port/duties/duties.js";

/**
 * Something that must be done for the whole store now and then, by whoever gets to it first. Level-triggered: the poll
 * says that there is work, not that something happened, so a duty that failed or was missed is simply due again.
 */
export interface Duty {
  readonly name: string;
  /** ms until there is something to do, by what the poll saw: zero or less is now, undefined is not in sight */
  due(poll: Poll): number | undefined;
  run(): Promise<DutyResult>;
}

export interface DutyResult {
  readonly count: number;
  /** ms until it knows that there is more to do; zero if there is more now */
  readonly nextIn?: number;
}

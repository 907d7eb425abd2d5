import type { Outcome, Result } from "./scenario.ts";
import type { SystemAbout } from "./system.ts";

/** What is handed to `report/`. */

export interface Report extends Outcome {
  readonly scenario: string;
  readonly measures: string;
  readonly jobs: number;
  readonly runs: number;
  /** those that took part */
  readonly systems: readonly SystemAbout[];
  /** one line each: the servers' versions and configuration, the Node of the children */
  readonly servers: Readonly<Record<string, string>>;
  /** what could not take part, and why */
  readonly skipped: Readonly<Record<string, string>>;
  /** what each system did in each repetition, in the order they were taken: how far figures spread */
  readonly turns: readonly Result[];
  readonly took: { readonly ms: number };
}

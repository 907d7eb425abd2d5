import type { Child } from "./child.ts";
import type { Inspector } from "./inspector.ts";
import type { Aim, StoreLocation, SystemAbout } from "./system.ts";

/** What is asked: a scenario measures systems by giving their children commands. */

/** One repetition's view of one system: an empty store, and everything started on it ends with it. */
export interface Turn {
  readonly system: SystemAbout;
  readonly location: StoreLocation;
  readonly inspect: Inspector;
  /** a process of the system; the first one of a turn has called `prepare` */
  start(): Promise<Child>;
  /** the live line */
  say(text: string): void;
  /** throws unless the store has no unfinished job left and, where it keeps history, so many finished ones */
  verify(finished: number): Promise<void>;
  /** waits until the store has recorded every outcome; answers the monotonic ms at which that was so (if not `shared`: now) */
  recorded(finished: number): Promise<number>;
}

/** Figures of one repetition, or of all: names end in their unit (`perSecond`, `p99Ms`, `walKB`, `rssMB`, `cpuSeconds`). */
export type Figures = Readonly<Record<string, number>>;

export interface TurnOptions {
  /** of the systems taking part; left out: all of the scenario's that were asked for */
  readonly systems?: readonly SystemAbout[];
  /** which of their best settings systems use (default: throughput) */
  readonly aim?: Aim;
  /** count statements on Postgres, which costs a little */
  readonly countStatements?: boolean;
  /** what this round is about, for the live line ("pinned", "1M ready") */
  readonly title?: string;
  /** left out: the scenario's */
  readonly runs?: number;
  /** which repetition it is, for the live line, where the scenario counts them itself ("2 of 9") */
  readonly round?: string;
}

/** The samples of each system, by its name, one per repetition. */
export type Samples<F extends Figures = Figures> = ReadonlyMap<string, readonly F[]>;

/** What a scenario gets. */
export interface Bench {
  readonly jobs: number;
  readonly runs: number;
  /** the scenario's systems that were asked for and can run here */
  readonly systems: readonly SystemAbout[];
  /** measures every system in every repetition, in turns: a, b, c, a, b, c */
  turns<F extends Figures>(measure: (turn: Turn) => Promise<F>, options?: TurnOptions): Promise<Samples<F>>;
  say(text: string): void;
}

/** One row of the table. `case` tells rows of the same system apart. */
export interface Result {
  readonly system: string;
  readonly case?: string;
  readonly [figure: string]: number | string | undefined;
}

/** Something that is better seen as lines than as bars. */
export interface Curve {
  readonly head: string;
  readonly stops: readonly string[];
  /** one value per stop; null where there is none */
  readonly lines: readonly { readonly name: string; readonly values: readonly (number | null)[] }[];
  readonly unit?: string;
}

export interface Outcome {
  readonly results: readonly Result[];
  /** as the issue of each scenario defines it; null where it was not measured (`--only pawl`) */
  readonly ratio: number | null;
  /** what `bars.ts` has a bar for, by its name there, and what else is worth a name */
  readonly parts: Readonly<Record<string, number>>;
  /** drawn in place of bars */
  readonly curves?: readonly Curve[];
}

export interface Scenario {
  readonly name: string;
  /** one sentence */
  readonly measures: string;
  readonly systems: readonly string[];
  readonly jobs: number;
  readonly runs: number;
  run(bench: Bench): Promise<Outcome>;
}

import type { CountsByState, StepSum } from "../../../core/observe/series.js";

/** What happened to jobs over time, by queue and task: kept minute by minute, beside the counts and from the same deltas. */
export interface SeriesStore {
  /**
   * What happened from the step of `from` to that of `to`, by the store's clock; what came in just now may be told a second
   * later. The busiest first where there is more than one.
   */
  read(query: SeriesQuery): Promise<SeriesAnswer>;
}

/** Rows of the series that are kept at most: names of tasks are made up by callers, and must not fill the disk. */
export const MAX_SERIES_ROWS = 1_000_000;

export interface SeriesQuery {
  /** ms since 1970; left out: so that what is read is `last` long */
  readonly from?: number;
  /** ms since 1970, not included; left out: now, included */
  readonly to?: number;
  /** ms */
  readonly last: number;
  /** minutes */
  readonly step: number;
  readonly queue?: string;
  readonly task?: string;
  /** one series each; left out: one of all */
  readonly by?: "queue" | "task";
  /** most series */
  readonly limit: number;
}

export interface SeriesAnswer {
  /** numbers of steps, see `StepSum` */
  readonly first: number;
  readonly last: number;
  readonly series: readonly SeriesSums[];
}

export interface SeriesSums {
  /** of the queue or task it is about */
  readonly name?: string;
  /** steps in which nothing happened are left out; those after the last are put together */
  readonly sums: readonly StepSum[];
  readonly now: CountsByState;
}

import type { Breaker, BreakerRule, BreakerState, ObservedOutcomes, OutcomeCounts } from "../../../core/limits/breaker.js";

/** Whose breaker, and of what. */
export interface BreakerRef {
  readonly tenant: string;
  readonly task: string;
}

export interface BreakerReport extends BreakerRef, ObservedOutcomes {
  readonly rule: BreakerRule;
}

/** A breaker as the store knows it, with its counts summed up. One that nobody has reported failures of is closed and not there. */
export interface BreakerRecord extends BreakerRef, Omit<Breaker, "counts">, OutcomeCounts {
  /** the store's clock when it was read */
  readonly asOf: number;
}

export interface BreakerFilter {
  readonly tenant?: string;
  readonly task?: string;
  readonly state?: BreakerState;
}

/**
 * Breakers of tenants and tasks, by the rules of `core/limits/breaker.ts`. What they say is kept by the workers, who do not
 * offer the lanes of an open one.
 */
export interface BreakerStore {
  /**
   * Adds what workers saw. Answers how the breakers stand, in the order given. Outcomes are a matter of statistics: a
   * report whose answer was lost is not repeated.
   */
  report(reports: readonly BreakerReport[]): Promise<readonly BreakerRecord[]>;
  /** Asks for leave to try one job of each. Of all who ask, one is given it, and again only after the rule's `probe`. */
  probe(refs: readonly BreakerRef[]): Promise<readonly BreakerRecord[]>;
  /** Those of these that are there, each once, by tenant and task. */
  get(refs: readonly BreakerRef[]): Promise<readonly BreakerRecord[]>;
  /** by tenant and task; `after` is where the last page ended */
  list(filter: BreakerFilter, page: { readonly limit: number; readonly after?: BreakerRef }): Promise<readonly BreakerRecord[]>;
  /** What is not closed, forced or not: what a worker has to know. */
  listNotClosed(): Promise<readonly BreakerRecord[]>;
  /** Opens or closes it until it is reset; reset, it begins anew by itself. */
  force(ref: BreakerRef, how: "open" | "closed" | "reset"): Promise<BreakerRecord>;
}

import type { Events } from "pawl";
import { Frequent } from "./frequent.js";
import { type Sample, Times } from "./series.js";

interface Tally {
  attempts: number;
  failures: number;
  readonly total: Times;
}

/** Candidates for one place among the first. */
const CANDIDATES = 4;

/**
 * Numbers of the tenants that most is seen of, however many there are. Who they are is decided anew by `elect`; one that
 * is elected begins at zero, which to Prometheus is a counter that was reset.
 */
export class TenantTallies {
  readonly #frequent: Frequent;
  #elected = new Map<string, Tally>();

  constructor(readonly most: number) {
    this.#frequent = new Frequent(Math.max(64, CANDIDATES * most));
  }

  /** For each settled attempt. */
  note({ lane, outcome, next, sinceDue }: Events["attempt.settled"]): void {
    this.#frequent.note(lane.tenant);
    const tally = this.#elected.get(lane.tenant);
    if (tally === undefined) return;
    tally.attempts++;
    if (outcome === "failed") tally.failures++;
    if (next === "succeeded" || next === "dead" || next === "cancelled") tally.total.record(sinceDue);
  }

  elect(): readonly string[] {
    const names = this.#frequent.top(this.most);
    this.#elected = new Map(names.map((name) => [name, this.#elected.get(name) ?? { attempts: 0, failures: 0, total: new Times() }]));
    this.#frequent.age();
    return names;
  }

  *attempts(): Generator<Sample> {
    for (const [tenant, { attempts }] of this.#elected) yield { labels: { tenant }, value: attempts };
  }

  *failures(): Generator<Sample> {
    for (const [tenant, { failures }] of this.#elected) yield { labels: { tenant }, value: failures };
  }

  *totals(name: string): Generator<Sample> {
    for (const [tenant, { total }] of this.#elected) yield* total.samples(name, { tenant });
  }
}

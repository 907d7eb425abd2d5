import type { Events } from "pawl";
import { FrequentKeys } from "./frequent-keys.js";
import { DurationHistogram, type Sample } from "./samples.js";

interface TenantNumbers {
  attempts: number;
  failures: number;
  readonly total: DurationHistogram;
}

/** Candidates for one place among the first. */
const CANDIDATES_PER_PLACE = 4;

/**
 * Numbers of the tenants that most is seen of, however many there are. Who they are is decided anew by `elect`; one that
 * is elected begins at zero, which to Prometheus is a counter that was reset.
 */
export class TenantCounters {
  readonly #frequent: FrequentKeys;
  #elected = new Map<string, TenantNumbers>();

  constructor(readonly maxTenants: number) {
    this.#frequent = new FrequentKeys(Math.max(64, CANDIDATES_PER_PLACE * maxTenants));
  }

  /** For each settled attempt. */
  note({ lane, outcome, next, sinceDue }: Events["attempt.settled"]): void {
    this.#frequent.note(lane.tenant);
    const counter = this.#elected.get(lane.tenant);
    if (counter === undefined) return;
    counter.attempts++;
    if (outcome === "failed") counter.failures++;
    if (next === "succeeded" || next === "dead" || next === "cancelled") counter.total.record(sinceDue);
  }

  elect(): readonly string[] {
    const names = this.#frequent.top(this.maxTenants);
    this.#elected = new Map(names.map((name) => [name, this.#elected.get(name) ?? { attempts: 0, failures: 0, total: new DurationHistogram() }]));
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

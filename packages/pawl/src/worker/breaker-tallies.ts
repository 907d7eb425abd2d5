import { add, type BreakerRule, type Counted, partOf, recent } from "../core/breaker.js";
import type { Lane } from "../core/lane.js";
import type { BreakerReport } from "../store/port-breakers.js";

/** Outcomes of one tenant and task that were not reported yet. */
interface Tally {
  readonly tenant: string;
  readonly task: string;
  counts: readonly Counted[];
  /** the newest part of the window, counted in place */
  latest: { at: number; succeeded: number; failed: number };
  passes: { turn: number; succeeded: number; failed: number } | undefined;
}

interface OfTask {
  readonly rule: BreakerRule;
  readonly tenants: Map<string, Tally>;
}

/** Tenants and tasks counted at a time. Beyond that the oldest count is let go: its successes will be missed, if ever. */
const MOST_TALLIES = 10_000;

/**
 * What came of attempts, by tenant and task. Successes are only counted, so that they can be told if failures follow;
 * a failure makes a pair due for a report.
 */
export class BreakerTallies {
  readonly #tasks: ReadonlyMap<string, OfTask>;
  readonly #due = new Set<Tally>();
  #size = 0;

  constructor(rules: ReadonlyMap<string, BreakerRule>) {
    this.#tasks = new Map([...rules].map(([task, rule]) => [task, { rule, tenants: new Map() }]));
  }

  get isDue(): boolean {
    return this.#due.size > 0;
  }

  /** `now` in monotonic ms; `pass`: the turn of the breaker that let it through */
  note({ tenant, task }: Lane, seen: "succeeded" | "failed", now: number, pass: number | undefined): void {
    const ofTask = this.#tasks.get(task);
    if (ofTask === undefined) return;
    const tally = ofTask.tenants.get(tenant) ?? this.#make(ofTask, tenant, task);
    if (pass !== undefined) {
      if (tally.passes?.turn !== pass) tally.passes = { turn: pass, succeeded: 0, failed: 0 };
      tally.passes[seen]++;
      this.#due.add(tally);
      return;
    }
    const size = partOf(ofTask.rule.window);
    if (now >= tally.latest.at + size) {
      tally.counts = recent(add(tally.counts, tally.latest, tally.latest.at, ofTask.rule.window), ofTask.rule.window, now);
      tally.latest = { at: Math.floor(now / size) * size, succeeded: 0, failed: 0 };
    }
    tally.latest[seen]++;
    if (seen === "failed") this.#due.add(tally);
  }

  /** Somebody doubts this one: what was seen here is worth telling, also if all went well. */
  ask(tenant: string, task: string): void {
    const tally = this.#tasks.get(task)?.tenants.get(tenant);
    if (tally !== undefined) this.#due.add(tally);
  }

  /** What is to be reported, which is forgotten with it. */
  take(limit: number, now: number): readonly BreakerReport[] {
    const reports: BreakerReport[] = [];
    for (const tally of this.#due) {
      if (reports.length === limit) break;
      this.#due.delete(tally);
      const { tenant, task, passes } = tally;
      const { rule, tenants } = this.#tasks.get(task) as OfTask;
      const counts = recent(add(tally.counts, tally.latest, tally.latest.at, rule.window), rule.window, now);
      if (tenants.delete(tenant)) this.#size--;
      const samples = counts.map(({ at, succeeded, failed }) => ({ succeeded, failed, ago: Math.max(0, now - at) }));
      if (samples.length > 0 || passes !== undefined) reports.push({ tenant, task, rule, samples, ...(passes === undefined ? {} : { passes }) });
    }
    return reports;
  }

  #make({ tenants }: OfTask, tenant: string, task: string): Tally {
    const tally: Tally = { tenant, task, counts: [], latest: { at: Number.NEGATIVE_INFINITY, succeeded: 0, failed: 0 }, passes: undefined };
    if (this.#size >= MOST_TALLIES) this.#letGo(tenants);
    tenants.set(tenant, tally);
    this.#size++;
    return tally;
  }

  /** The oldest of the same task, or of the first that has any. */
  #letGo(own: Map<string, Tally>): void {
    for (const tenants of [own, ...[...this.#tasks.values()].map((ofTask) => ofTask.tenants)]) {
      const [oldest] = tenants;
      if (oldest === undefined) continue;
      tenants.delete(oldest[0]);
      this.#due.delete(oldest[1]);
      this.#size--;
      return;
    }
  }
}

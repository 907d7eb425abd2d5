import type { Lane } from "../../core/jobs/lane.js";
import { add, type BreakerRule, type CountedOutcomes, partOf, recent } from "../../core/limits/breaker.js";
import type { BreakerReport } from "../../store/port/limits/breakers.js";

/** Outcomes of one tenant and task that were not reported yet. */
interface UnreportedOutcomes {
  readonly tenant: string;
  readonly task: string;
  counts: readonly CountedOutcomes[];
  /** the newest part of the window, counted in place */
  latest: { at: number; succeeded: number; failed: number };
  probes: { opening: number; succeeded: number; failed: number } | undefined;
}

interface OutcomesOfTask {
  readonly rule: BreakerRule;
  readonly tenants: Map<string, UnreportedOutcomes>;
}

/** Tenants and tasks counted at a time. Beyond that the oldest count is let go: its successes will be missed, if ever. */
const MAX_TENANT_TASKS = 10_000;

/**
 * What came of attempts, by tenant and task. Successes are only counted, so that they can be told if failures follow;
 * a failure makes a pair due for a report.
 */
export class BreakerCounts {
  readonly #tasks: ReadonlyMap<string, OutcomesOfTask>;
  readonly #due = new Set<UnreportedOutcomes>();
  #size = 0;

  constructor(rules: ReadonlyMap<string, BreakerRule>) {
    this.#tasks = new Map([...rules].map(([task, rule]) => [task, { rule, tenants: new Map() }]));
  }

  get isDue(): boolean {
    return this.#due.size > 0;
  }

  /** `now` in monotonic ms; `pass`: the opening of the breaker that let it through */
  record({ tenant, task }: Lane, outcome: "succeeded" | "failed", now: number, probeOf: number | undefined): void {
    const outcomesOfTask = this.#tasks.get(task);
    if (outcomesOfTask === undefined) return;
    const unreported = outcomesOfTask.tenants.get(tenant) ?? this.#make(outcomesOfTask, tenant, task);
    if (probeOf !== undefined) {
      if (unreported.probes?.opening !== probeOf) unreported.probes = { opening: probeOf, succeeded: 0, failed: 0 };
      unreported.probes[outcome]++;
      this.#due.add(unreported);
      return;
    }
    const size = partOf(outcomesOfTask.rule.window);
    if (now >= unreported.latest.at + size) {
      unreported.counts = recent(
        add(unreported.counts, unreported.latest, unreported.latest.at, outcomesOfTask.rule.window),
        outcomesOfTask.rule.window,
        now,
      );
      unreported.latest = { at: Math.floor(now / size) * size, succeeded: 0, failed: 0 };
    }
    unreported.latest[outcome]++;
    if (outcome === "failed") this.#due.add(unreported);
  }

  /** Somebody doubts this one: what was seen here is worth telling, also if all went well. */
  requestReport(tenant: string, task: string): void {
    const unreported = this.#tasks.get(task)?.tenants.get(tenant);
    if (unreported !== undefined) this.#due.add(unreported);
  }

  /** What is to be reported, which is forgotten with it. */
  take(limit: number, now: number): readonly BreakerReport[] {
    const reports: BreakerReport[] = [];
    for (const unreported of this.#due) {
      if (reports.length === limit) break;
      this.#due.delete(unreported);
      const { tenant, task, probes } = unreported;
      const { rule, tenants } = this.#tasks.get(task) as OutcomesOfTask;
      const counts = recent(add(unreported.counts, unreported.latest, unreported.latest.at, rule.window), rule.window, now);
      if (tenants.delete(tenant)) this.#size--;
      const samples = counts.map(({ at, succeeded, failed }) => ({ succeeded, failed, ago: Math.max(0, now - at) }));
      if (samples.length > 0 || probes !== undefined) reports.push({ tenant, task, rule, samples, ...(probes === undefined ? {} : { probes }) });
    }
    return reports;
  }

  #make({ tenants }: OutcomesOfTask, tenant: string, task: string): UnreportedOutcomes {
    const unreported: UnreportedOutcomes = {
      tenant,
      task,
      counts: [],
      latest: { at: Number.NEGATIVE_INFINITY, succeeded: 0, failed: 0 },
      probes: undefined,
    };
    if (this.#size >= MAX_TENANT_TASKS) this.#dropOldest(tenants);
    tenants.set(tenant, unreported);
    this.#size++;
    return unreported;
  }

  /** The oldest of the same task, or of the first that has any. */
  #dropOldest(first: Map<string, UnreportedOutcomes>): void {
    for (const tenants of [first, ...[...this.#tasks.values()].map((outcomesOfTask) => outcomesOfTask.tenants)]) {
      const [oldest] = tenants;
      if (oldest === undefined) continue;
      tenants.delete(oldest[0]);
      this.#due.delete(oldest[1]);
      this.#size--;
      return;
    }
  }
}

import type { Pawl } from "pawl";
import { AttemptTallies } from "./attempt-tallies.js";
import { METRICS, type MetricName } from "./metric-table.js";
import { Names, Numbers, type Sample, Times } from "./series.js";
import { TenantTallies } from "./tenant-tallies.js";

const MOST_NAMES = 200;

/** What the events of this process add up to. */
export class BusTallies {
  readonly attempts = new AttemptTallies();
  readonly tenants: TenantTallies | undefined;
  readonly #numbers = new Map<MetricName, Numbers>();
  readonly #queues = new Names(MOST_NAMES);
  readonly #tasks = new Names(MOST_NAMES);
  readonly #operations = new Map<string, Times>();
  readonly #tickLateness = new Times();
  readonly #stops: (() => void)[];
  #pulsedAt = 0;
  #late = { schedules: 0, delayed: 0 };

  constructor(
    pawl: Pick<Pawl, "on">,
    mostTenants: number,
    private readonly now: () => number,
  ) {
    if (mostTenants > 0) this.tenants = new TenantTallies(mostTenants);
    this.#stops = [...this.#hearWork(pawl), ...this.#hearUpkeep(pawl)];
    // A counter that is not there until its first event has no first rise.
    for (const name of ONCE) this.#count(name, 0);
  }

  stop(): void {
    for (const stop of this.#stops) stop();
  }

  numbers(name: MetricName): Iterable<Sample> {
    return this.#numbers.get(name)?.samples() ?? [];
  }

  *operations(name: string): Generator<Sample> {
    for (const [operation, times] of this.#operations) yield* times.samples(name, { operation });
  }

  tickLateness(name: string): Iterable<Sample> {
    return this.#tickLateness.samples(name, {});
  }

  *late(): Generator<Sample> {
    for (const [what, ms] of Object.entries(this.#late)) yield { labels: { what }, value: ms / 1_000 };
  }

  *pulsed(): Generator<Sample> {
    yield { labels: {}, value: this.#pulsedAt / 1_000 };
  }

  #hearWork(pawl: Pick<Pawl, "on">): (() => void)[] {
    return [
      pawl.on("jobs.enqueued", ({ lanes, counts }) => {
        for (const [place, { queue, task }] of lanes.entries())
          this.#count("pawl_jobs_enqueued_total", counts[place] as number, this.#queues.of(queue), this.#tasks.of(task));
      }),
      pawl.on("ingest.refused", ({ kind, limit, jobs }) => this.#count("pawl_ingest_refused_total", jobs, kind, limit)),
      pawl.on("jobs.claimed", ({ count }) => {
        this.#count("pawl_jobs_claimed_total", count);
        this.#count("pawl_leases_claimed_total", 1);
      }),
      pawl.on("attempt.settled", (attempt) => {
        this.attempts.note(attempt);
        this.tenants?.note(attempt);
      }),
      pawl.on("attempt.stale", () => this.#count("pawl_attempts_stale_total", 1)),
      pawl.on("attempt.blocked", () => this.#count("pawl_worker_blocked_total", 1)),
      pawl.on("lines.lost", ({ lines }) => this.#count("pawl_log_lines_lost_total", lines)),
      pawl.on("worker.stalled", () => this.#count("pawl_worker_stalls_total", 1)),
      pawl.on("lease.lost", () => this.#count("pawl_leases_lost_total", 1)),
      pawl.on("store.operation", ({ operation, duration, error }) => {
        let times = this.#operations.get(operation);
        if (times === undefined) {
          times = new Times();
          this.#operations.set(operation, times);
        }
        times.record(duration);
        if (error !== undefined) this.#count("pawl_store_errors_total", 1, operation);
      }),
    ];
  }

  #hearUpkeep(pawl: Pick<Pawl, "on">): (() => void)[] {
    return [
      pawl.on("leases.reaped", ({ leases, jobs }) => {
        this.#count("pawl_leases_reaped_total", leases);
        this.#count("pawl_jobs_recovered_total", jobs);
      }),
      pawl.on("duties.pulsed", ({ schedulesLate, delayedLate }) => {
        this.#pulsedAt = this.now();
        this.#late = { schedules: schedulesLate, delayed: delayedLate };
      }),
      pawl.on("schedules.ticked", ({ jobs, latest }) => {
        this.#count("pawl_schedule_jobs_total", jobs);
        this.#tickLateness.record(latest);
      }),
      pawl.on("jobs.promoted", ({ count }) => this.#count("pawl_jobs_promoted_total", count)),
      pawl.on("duty.ran", ({ duty, count }) => this.#count("pawl_duty_items_total", count, duty)),
      pawl.on("duty.failed", ({ duty }) => this.#count("pawl_duty_failures_total", 1, duty)),
    ];
  }

  #count(name: MetricName, by: number, ...labels: readonly string[]): void {
    let numbers = this.#numbers.get(name);
    if (numbers === undefined) {
      numbers = new Numbers(METRICS[name].labels);
      this.#numbers.set(name, numbers);
    }
    numbers.add(by, ...labels);
  }
}

const ONCE = (Object.keys(METRICS) as MetricName[]).filter((name) => {
  const { type, of, labels } = METRICS[name];
  return type === "counter" && of === "process" && labels.length === 0;
});

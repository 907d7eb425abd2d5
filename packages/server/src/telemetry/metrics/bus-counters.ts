import type { Pawl } from "pawl";
import { AttemptCounters } from "./attempt-counters.js";
import { METRICS, type MetricName } from "./metric-table.js";
import { BoundedNames, DurationHistogram, LabelledNumbers, type Sample } from "./samples.js";
import { TenantCounters } from "./tenant-counters.js";

const MAX_NAMES = 200;

/** What the events of this process add up to. */
export class BusCounters {
  readonly attempts = new AttemptCounters();
  readonly tenants: TenantCounters | undefined;
  readonly #numbers = new Map<MetricName, LabelledNumbers>();
  readonly #queues = new BoundedNames(MAX_NAMES);
  readonly #tasks = new BoundedNames(MAX_NAMES);
  readonly #operations = new Map<string, DurationHistogram>();
  readonly #tickLateness = new DurationHistogram();
  readonly #stops: (() => void)[];
  #lastPollAt = 0;
  #overdue = { schedules: 0, delayed: 0 };

  constructor(
    pawl: Pick<Pawl, "on">,
    maxTenants: number,
    private readonly now: () => number,
  ) {
    if (maxTenants > 0) this.tenants = new TenantCounters(maxTenants);
    this.#stops = [...this.#subscribeToWork(pawl), ...this.#subscribeToMaintenance(pawl)];
    // A counter that is not there until its first event has no first rise.
    for (const name of ALWAYS_PRESENT) this.#count(name, 0);
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

  *overdue(): Generator<Sample> {
    for (const [kind, ms] of Object.entries(this.#overdue)) yield { labels: { kind }, value: ms / 1_000 };
  }

  *lastPoll(): Generator<Sample> {
    yield { labels: {}, value: this.#lastPollAt / 1_000 };
  }

  #subscribeToWork(pawl: Pick<Pawl, "on">): (() => void)[] {
    return [
      pawl.on("jobs.enqueued", ({ lanes }) => {
        for (const { lane, count } of lanes) this.#count("pawl_jobs_enqueued_total", count, this.#queues.of(lane.queue), this.#tasks.of(lane.task));
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
      pawl.on("worker.blocked", () => this.#count("pawl_worker_event_loop_blocks_total", 1)),
      pawl.on("lines.lost", ({ lines }) => this.#count("pawl_log_lines_lost_total", lines)),
      pawl.on("worker.stalled", () => this.#count("pawl_worker_stalls_total", 1)),
      pawl.on("lease.lost", () => this.#count("pawl_leases_lost_total", 1)),
      pawl.on("store.operation", ({ operation, duration, error }) => {
        let times = this.#operations.get(operation);
        if (times === undefined) {
          times = new DurationHistogram();
          this.#operations.set(operation, times);
        }
        times.record(duration);
        if (error !== undefined) this.#count("pawl_store_errors_total", 1, operation);
      }),
    ];
  }

  #subscribeToMaintenance(pawl: Pick<Pawl, "on">): (() => void)[] {
    return [
      pawl.on("leases.reaped", ({ leases, jobs }) => {
        this.#count("pawl_leases_reaped_total", leases);
        this.#count("pawl_jobs_recovered_total", jobs);
      }),
      pawl.on("maintenance.polled", ({ schedulesLate, delayedLate }) => {
        this.#lastPollAt = this.now();
        this.#overdue = { schedules: schedulesLate, delayed: delayedLate };
      }),
      pawl.on("schedules.ticked", ({ jobs, lateness }) => {
        this.#count("pawl_schedule_jobs_total", jobs);
        this.#tickLateness.record(lateness);
      }),
      pawl.on("jobs.promoted", ({ count }) => this.#count("pawl_jobs_promoted_total", count)),
      pawl.on("duty.ran", ({ duty, count }) => this.#count("pawl_duty_items_total", count, duty)),
      pawl.on("duty.failed", ({ duty }) => this.#count("pawl_duty_failures_total", 1, duty)),
    ];
  }

  #count(name: MetricName, by: number, ...labels: readonly string[]): void {
    let numbers = this.#numbers.get(name);
    if (numbers === undefined) {
      numbers = new LabelledNumbers(METRICS[name].labels);
      this.#numbers.set(name, numbers);
    }
    numbers.add(by, ...labels);
  }
}

const ALWAYS_PRESENT = (Object.keys(METRICS) as MetricName[]).filter((name) => {
  const { type, of, labels } = METRICS[name];
  return type === "counter" && of === "process" && labels.length === 0;
});

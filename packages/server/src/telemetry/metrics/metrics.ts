import type { Pawl, PawlError } from "pawl";
import { pawlError, VERSION } from "pawl/service";
import { collectDefaultMetrics, type Metric, Registry } from "prom-client";
import { BusCounters } from "./bus-counters.js";
import { METRICS, type MetricName } from "./metric-table.js";
import type { Sample } from "./samples.js";
import { StoreGauges } from "./store-gauges.js";

export interface MetricsOptions {
  /** how many tenants have numbers of their own: those that most is seen of (default 20, at most 100; 0: none) */
  readonly tenants?: number;
  /** ms for which what was read of the store serves again (default 5,000) */
  readonly fresh?: number;
  /** ms that jobs of a task may take from due to finished, by task; "*" is for those that are not named */
  readonly objectives?: Readonly<Record<string, number>>;
  /** also those of the process: memory, CPU, event loop (default: yes) */
  readonly process?: boolean;
}

export interface Metrics {
  /** what Prometheus scrapes */
  text(): Promise<string>;
  readonly contentType: string;
  /** of prom-client, to be merged with an application's own */
  readonly registry: Registry;
  stop(): void;
}

const MAX_TENANTS = 100;
/** ms that a scrape waits for the store; Prometheus itself gives up after ten seconds */
const STORE_TIMEOUT_MS = 3_000;

/** Metrics of a pawl: what its events add up to from now on, and what its store says when it is asked. */
export function metricsOf(pawl: Pawl, options: MetricsOptions = {}): Metrics {
  const { tenants, fresh, objectives, process } = checkOptions(options);
  const bus = new BusCounters(pawl, tenants, Date.now);
  const store = new StoreGauges(pawl, fresh, STORE_TIMEOUT_MS, () => bus.tenants?.elect() ?? []);
  const registry = new Registry();
  for (const [name, read] of Object.entries(readers(pawl, bus, store, objectives)) as [MetricName, () => Iterable<Sample>][]) {
    registry.registerMetric(family(name, read) as unknown as Metric);
  }
  if (process) collectDefaultMetrics({ register: registry });
  return {
    async text() {
      await store.refresh();
      return registry.metrics();
    },
    contentType: registry.contentType,
    registry,
    stop: () => bus.stop(),
  };
}

/** Options are checked as those of `open` are: a misspelt one would silently do nothing. */
function checkOptions(options: MetricsOptions): Required<MetricsOptions> {
  const { tenants = 20, fresh = 5_000, objectives = {}, process = true, ...rest } = options;
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined) throw optionInvalid(unknown, "there is no such option; there are tenants, fresh, objectives, process");
  if (!Number.isInteger(tenants) || tenants < 0 || tenants > MAX_TENANTS)
    throw optionInvalid("tenants", `it is not a whole number from 0 to ${MAX_TENANTS}`);
  if (!(fresh >= 0)) throw optionInvalid("fresh", "it is not a time in ms");
  for (const [task, ms] of Object.entries(objectives)) if (!(ms > 0)) throw optionInvalid(`objectives.${task}`, "it is not a time in ms");
  if (typeof process !== "boolean") throw optionInvalid("process", "it is neither true nor false");
  return { tenants, fresh, objectives, process };
}

function optionInvalid(option: string, reason: string): PawlError {
  return pawlError("option_invalid", { option: `metrics.${option}`, reason });
}

/** A metric as a registry asks for it, its numbers taken from where they were counted. */
function family(name: MetricName, read: () => Iterable<Sample>) {
  const { help, type } = METRICS[name];
  return { name, help, type, get: async () => ({ name, help, type, values: [...read()], aggregator: "sum" }), reset() {} };
}

/** Complete by its type: a metric of the table that nobody reads does not compile. */
function readers(
  pawl: Pawl,
  bus: BusCounters,
  store: StoreGauges,
  objectives: Readonly<Record<string, number>>,
): Readonly<Record<MetricName, () => Iterable<Sample>>> {
  const counted = (name: MetricName) => () => bus.numbers(name);
  const ofWorkers = (figure: (status: WorkerStatus) => number) => () => [
    { labels: {}, value: pawl.workers.local().reduce((sum, worker) => sum + figure(worker.status()), 0) },
  ];
  return {
    pawl_build_info: () => [{ labels: { version: VERSION }, value: 1 }],
    pawl_jobs_enqueued_total: counted("pawl_jobs_enqueued_total"),
    pawl_ingest_refused_total: counted("pawl_ingest_refused_total"),
    pawl_jobs_claimed_total: counted("pawl_jobs_claimed_total"),
    pawl_attempts_settled_total: () => bus.attempts.settled(),
    pawl_attempt_failures_total: () => bus.attempts.failures(),
    pawl_attempts_stale_total: counted("pawl_attempts_stale_total"),
    pawl_attempt_duration_seconds: () => bus.attempts.times("pawl_attempt_duration_seconds", "duration"),
    pawl_job_wait_seconds: () => bus.attempts.times("pawl_job_wait_seconds", "wait"),
    pawl_job_end_to_end_seconds: () => bus.attempts.times("pawl_job_end_to_end_seconds", "total"),
    pawl_job_objective_seconds: () => bus.attempts.objectives(objectives),
    pawl_leases_claimed_total: counted("pawl_leases_claimed_total"),
    pawl_leases_lost_total: counted("pawl_leases_lost_total"),
    pawl_leases_reaped_total: counted("pawl_leases_reaped_total"),
    pawl_jobs_recovered_total: counted("pawl_jobs_recovered_total"),
    pawl_worker_slots: ofWorkers(({ concurrency }) => concurrency),
    pawl_worker_slots_busy: ofWorkers(({ concurrency, free }) => concurrency - free),
    pawl_worker_overruns: ofWorkers(({ overrun }) => overrun),
    pawl_workers_stuck: ofWorkers(({ stuck }) => (stuck ? 1 : 0)),
    pawl_worker_jobs_buffered: ofWorkers(({ buffered }) => buffered),
    pawl_worker_jobs_settling: ofWorkers(({ settling }) => settling),
    pawl_worker_stalls_total: counted("pawl_worker_stalls_total"),
    pawl_worker_event_loop_blocks_total: counted("pawl_worker_event_loop_blocks_total"),
    pawl_log_lines_lost_total: counted("pawl_log_lines_lost_total"),
    pawl_maintenance_last_poll_timestamp_seconds: () => bus.lastPoll(),
    pawl_overdue_seconds: () => bus.overdue(),
    pawl_schedule_lateness_seconds: () => bus.tickLateness("pawl_schedule_lateness_seconds"),
    pawl_schedule_jobs_total: counted("pawl_schedule_jobs_total"),
    pawl_jobs_promoted_total: counted("pawl_jobs_promoted_total"),
    pawl_duty_items_total: counted("pawl_duty_items_total"),
    pawl_duty_failures_total: counted("pawl_duty_failures_total"),
    pawl_store_up: () => store.up(),
    pawl_store_operation_duration_seconds: () => bus.operations("pawl_store_operation_duration_seconds"),
    pawl_store_errors_total: counted("pawl_store_errors_total"),
    pawl_jobs: () => store.jobs(),
    pawl_jobs_parked: () => store.parked(),
    pawl_oldest_wait_seconds: () => store.oldest(),
    pawl_jobs_died_total: () => store.deaths(),
    pawl_queue_paused: () => store.paused("queue"),
    pawl_task_paused: () => store.paused("task"),
    pawl_breakers: () => store.breakers(),
    pawl_workers_live: () => store.workers(),
    pawl_live_slots: () => store.slots(),
    pawl_tenant_attempts_total: () => bus.tenants?.attempts() ?? [],
    pawl_tenant_failures_total: () => bus.tenants?.failures() ?? [],
    pawl_tenant_end_to_end_seconds: () => bus.tenants?.totals("pawl_tenant_end_to_end_seconds") ?? [],
    pawl_tenant_jobs_waiting: () => store.tenantDepths(),
  };
}

type WorkerStatus = ReturnType<ReturnType<Pawl["workers"]["local"]>[number]["status"]>;

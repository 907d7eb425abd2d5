/** Every metric: the one place that says what there is. docs/metrics.md is printed from it. */
export interface MetricRow {
  readonly type: "counter" | "gauge" | "histogram";
  readonly labels: readonly string[];
  /** process: add up what processes say; store: they all say the same of one store, so take the highest */
  readonly of: "process" | "store";
  readonly help: string;
}

const counter = (help: string, ...labels: readonly string[]): MetricRow => ({ type: "counter", labels, of: "process", help });
const histogram = (help: string, ...labels: readonly string[]): MetricRow => ({ type: "histogram", labels, of: "process", help });
const gauge = (help: string, ...labels: readonly string[]): MetricRow => ({ type: "gauge", labels, of: "process", help });
const storeGauge = (help: string, ...labels: readonly string[]): MetricRow => ({ type: "gauge", labels, of: "store", help });

export const METRICS = {
  pawl_build_info: gauge("Always 1: the version of Pawl that this process runs.", "version"),

  pawl_jobs_enqueued_total: counter("Jobs stored by this process, but for those in transactions of its callers.", "queue", "task"),
  pawl_ingest_refused_total: counter("Jobs that an ingest limit refused.", "kind", "limit"),
  pawl_jobs_claimed_total: counter("Jobs claimed by the workers of this process."),
  pawl_attempts_settled_total: counter("Attempts settled by the workers of this process, by outcome.", "queue", "task", "outcome"),
  pawl_attempt_failures_total: counter("Failed attempts, by what was thrown or by the kind of failure.", "task", "failure"),
  pawl_attempts_stale_total: counter("Outcomes that came after their lease was lost, and changed nothing."),
  pawl_attempt_duration_seconds: histogram("Time that handlers took.", "task"),
  pawl_job_wait_seconds: histogram("Time from when a job was due to the start of its first attempt.", "task"),
  pawl_job_end_to_end_seconds: histogram("Time from when a job was due until it was finished, retries included.", "task"),
  pawl_job_objective_seconds: gauge("How long jobs of a task may take from due to finished, where somebody has said so.", "task"),

  pawl_leases_claimed_total: counter("Leases taken by the workers of this process."),
  pawl_leases_lost_total: counter("Leases that workers of this process found lost."),
  pawl_leases_reaped_total: counter("Expired leases that this process reaped, whoever held them."),
  pawl_jobs_recovered_total: counter("Jobs taken out of expired leases by this process."),

  pawl_worker_slots: gauge("Slots of the workers of this process."),
  pawl_worker_slots_busy: gauge("Slots with a handler in them."),
  pawl_worker_overruns: gauge("Handlers that go on though their attempts are over: their timeout has passed, or their lease was lost."),
  pawl_workers_stuck: gauge("Workers of this process that take nothing more, as too many of their handlers do not end."),
  pawl_worker_jobs_buffered: gauge("Jobs claimed and not started."),
  pawl_worker_jobs_settling: gauge("Outcomes that the store has not confirmed."),
  pawl_worker_stalls_total: counter("Times that a worker with free slots got nothing though work was known."),
  pawl_worker_event_loop_blocks_total: counter("Times that handlers kept the event loop from running for long."),
  pawl_log_lines_lost_total: counter("Log lines and progress of jobs that the store did not take."),

  pawl_maintenance_last_poll_timestamp_seconds: gauge("When this process last looked for what is due; 0 if it takes no part in maintenance."),
  pawl_overdue_seconds: gauge("How late what is due and not seen to yet was at the last look.", "kind"),
  pawl_schedule_lateness_seconds: histogram("How late the latest schedule of each batch of ticks was."),
  pawl_schedule_jobs_total: counter("Jobs made by ticks that this process saw to."),
  pawl_jobs_promoted_total: counter("Delayed jobs that this process made ready."),
  pawl_duty_items_total: counter("What duties of this process have done.", "duty"),
  pawl_duty_failures_total: counter("Duties, and steps of workers, that failed and are tried again.", "duty"),

  pawl_store_up: gauge("Whether the store answered when this was read."),
  pawl_store_operation_duration_seconds: histogram("Time that operations of the store took.", "operation"),
  pawl_store_errors_total: counter("Operations of the store that failed.", "operation"),

  pawl_jobs: storeGauge("Jobs by state.", "queue", "task", "state"),
  pawl_jobs_parked: storeGauge("Parked jobs by what they wait for; a part stands for all from 10,000 on.", "reason"),
  pawl_oldest_wait_seconds: storeGauge("How long the ready job that has waited longest has.", "queue", "priority"),
  pawl_jobs_died_total: { ...storeGauge("Rise of the number of dead jobs, as seen from one read to the next.", "queue", "task"), type: "counter" },
  pawl_queue_paused: storeGauge("1 for every queue that is paused.", "queue"),
  pawl_task_paused: storeGauge("1 for every task that is paused.", "task"),
  pawl_breakers: storeGauge("Breakers that are not closed.", "task", "state"),
  pawl_workers_live: storeGauge("Workers that gave a sign of life in the last 45 s."),
  pawl_live_slots: storeGauge("Slots of those workers, free and busy, as they said last, up to 15 s ago.", "state"),

  pawl_tenant_attempts_total: counter("Attempts of the tenants that this process sees most of.", "tenant"),
  pawl_tenant_failures_total: counter("Failed attempts of the tenants that this process sees most of.", "tenant"),
  pawl_tenant_end_to_end_seconds: histogram("From due to finished, of the tenants that this process sees most of.", "tenant"),
  pawl_tenant_jobs_waiting: storeGauge(
    "Jobs ready or parked at a limit, of the tenants that this process sees most of; counted to 10,000.",
    "tenant",
  ),
} as const satisfies Readonly<Record<`pawl_${string}`, MetricRow>>;

export type MetricName = keyof typeof METRICS;

/** For docs/metrics.md. */
export function metricTable(): string {
  const lines = ["| metric | type | labels | of | what it says |", "|---|---|---|---|---|"];
  for (const [name, { type, labels, of, help }] of Object.entries(METRICS) as readonly (readonly [string, MetricRow])[])
    lines.push(`| \`${name}\` | ${type} | ${labels.map((label) => `\`${label}\``).join(", ")} | ${of} | ${help} |`);
  return lines.join("\n");
}

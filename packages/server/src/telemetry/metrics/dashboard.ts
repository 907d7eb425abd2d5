interface DashboardPanel {
  readonly title: string;
  readonly unit: "short" | "s" | "ops" | "percentunit";
  readonly kind?: "stat";
  readonly queries: readonly (readonly [legend: string, expr: string])[];
}

interface DashboardRow {
  readonly title: string;
  readonly panels: readonly DashboardPanel[];
}

const JOB = 'job="$job"';
const store = (metric: string, labels: string, more = "") => `max by (${labels}) (${metric}{${JOB}${more}})`;
const rate = (metric: string, by: string, more = "") => `sum by (${by}) (rate(${metric}{${JOB}${more}}[$__rate_interval]))`;
const quantiles = (metric: string) =>
  [0.5, 0.95, 0.99].map(
    (q) => [`p${q * 100} {{task}}`, `histogram_quantile(${q}, sum by (task, le) (rate(${metric}_bucket{${JOB}}[$__rate_interval])))`] as const,
  );

/** One look: what is stuck, why, and since when. Rows from the question to its causes. */
const ROWS: readonly DashboardRow[] = [
  {
    title: "Is it well?",
    panels: [
      {
        title: "Settled per second",
        unit: "ops",
        kind: "stat",
        queries: [["settled", `sum(rate(pawl_attempts_settled_total{${JOB}}[$__rate_interval]))`]],
      },
      { title: "Ready", unit: "short", kind: "stat", queries: [["ready", `sum(${store("pawl_jobs", "queue, task", ',state="ready"')})`]] },
      { title: "Running", unit: "short", kind: "stat", queries: [["running", `sum(${store("pawl_jobs", "queue, task", ',state="running"')})`]] },
      { title: "Dead", unit: "short", kind: "stat", queries: [["dead", `sum(${store("pawl_jobs", "queue, task", ',state="dead"')})`]] },
      { title: "Longest wait", unit: "s", kind: "stat", queries: [["longest", `max(pawl_oldest_wait_seconds{${JOB}}) or vector(0)`]] },
      {
        title: "Utilisation",
        unit: "percentunit",
        kind: "stat",
        queries: [["busy", `sum(pawl_worker_slots_busy{${JOB}}) / sum(pawl_worker_slots{${JOB}})`]],
      },
      {
        title: "Since the last maintenance",
        unit: "s",
        kind: "stat",
        queries: [["age", `time() - max(pawl_maintenance_last_poll_timestamp_seconds{${JOB}})`]],
      },
      { title: "Store", unit: "short", kind: "stat", queries: [["up", `max(pawl_store_up{${JOB}})`]] },
    ],
  },
  {
    title: "What waits",
    panels: [
      {
        title: "Jobs by state",
        unit: "short",
        queries: [["{{state}}", `sum by (state) (${store("pawl_jobs", "queue, task, state", ',state!~"succeeded|cancelled"')})`]],
      },
      { title: "Ready by queue", unit: "short", queries: [["{{queue}}", `sum by (queue) (${store("pawl_jobs", "queue, task", ',state="ready"')})`]] },
      { title: "Parked, and for what", unit: "short", queries: [["{{reason}}", store("pawl_jobs_parked", "reason")]] },
      {
        title: "Longest wait by queue and priority",
        unit: "s",
        queries: [["{{queue}} {{priority}}", store("pawl_oldest_wait_seconds", "queue, priority")]],
      },
      { title: "Late", unit: "s", queries: [["{{kind}}", store("pawl_overdue_seconds", "kind")]] },
      {
        title: "How late schedules tick, p99",
        unit: "s",
        queries: [["p99", `histogram_quantile(0.99, sum by (le) (rate(pawl_schedule_lateness_seconds_bucket{${JOB}}[$__rate_interval])))`]],
      },
    ],
  },
  {
    title: "What gets done",
    panels: [
      {
        title: "In and out",
        unit: "ops",
        queries: [
          ["enqueued", `sum(rate(pawl_jobs_enqueued_total{${JOB}}[$__rate_interval]))`],
          ["claimed", `sum(rate(pawl_jobs_claimed_total{${JOB}}[$__rate_interval]))`],
          ["settled", `sum(rate(pawl_attempts_settled_total{${JOB}}[$__rate_interval]))`],
        ],
      },
      { title: "Outcomes", unit: "ops", queries: [["{{outcome}}", rate("pawl_attempts_settled_total", "outcome")]] },
      { title: "Time in handlers", unit: "s", queries: quantiles("pawl_attempt_duration_seconds") },
      { title: "Wait before the first attempt", unit: "s", queries: quantiles("pawl_job_wait_seconds") },
      { title: "From due to finished", unit: "s", queries: quantiles("pawl_job_end_to_end_seconds") },
      {
        title: "Slots",
        unit: "short",
        queries: [
          ["slots", `sum(pawl_worker_slots{${JOB}})`],
          ["busy", `sum(pawl_worker_slots_busy{${JOB}})`],
          ["live workers", store("pawl_workers_live", "job")],
        ],
      },
    ],
  },
  {
    title: "What goes wrong",
    panels: [
      {
        title: "Failed attempts by task and failure",
        unit: "ops",
        queries: [["{{task}} {{failure}}", rate("pawl_attempt_failures_total", "task, failure")]],
      },
      {
        title: "Deaths a minute",
        unit: "short",
        queries: [["{{queue}} {{task}}", `max by (queue, task) (rate(pawl_jobs_died_total{${JOB}}[$__rate_interval])) * 60`]],
      },
      {
        title: "Leases: claimed, reaped, lost",
        unit: "ops",
        queries: [
          ["claimed", `sum(rate(pawl_leases_claimed_total{${JOB}}[$__rate_interval]))`],
          ["reaped", `sum(rate(pawl_leases_reaped_total{${JOB}}[$__rate_interval]))`],
          ["lost", `sum(rate(pawl_leases_lost_total{${JOB}}[$__rate_interval]))`],
        ],
      },
      {
        title: "Jobs recovered, outcomes too late",
        unit: "ops",
        queries: [
          ["recovered", `sum(rate(pawl_jobs_recovered_total{${JOB}}[$__rate_interval]))`],
          ["stale", `sum(rate(pawl_attempts_stale_total{${JOB}}[$__rate_interval]))`],
        ],
      },
      { title: "Breakers that are not closed", unit: "short", queries: [["{{task}} {{state}}", store("pawl_breakers", "task, state")]] },
      { title: "Duties that failed", unit: "ops", queries: [["{{duty}}", rate("pawl_duty_failures_total", "duty")]] },
    ],
  },
  {
    title: "The store and its upkeep",
    panels: [
      {
        title: "Operations of the store, p99",
        unit: "s",
        queries: [
          [
            "{{operation}}",
            `histogram_quantile(0.99, sum by (operation, le) (rate(pawl_store_operation_duration_seconds_bucket{${JOB}}[$__rate_interval])))`,
          ],
        ],
      },
      { title: "Errors of the store", unit: "ops", queries: [["{{operation}}", rate("pawl_store_errors_total", "operation")]] },
      { title: "What duties do", unit: "ops", queries: [["{{duty}}", rate("pawl_duty_items_total", "duty")]] },
    ],
  },
  {
    title: "Tenants that most is seen of",
    panels: [
      { title: "Attempts", unit: "ops", queries: [["{{tenant}}", rate("pawl_tenant_attempts_total", "tenant")]] },
      { title: "Failures", unit: "ops", queries: [["{{tenant}}", rate("pawl_tenant_failures_total", "tenant")]] },
      {
        title: "From due to finished, p95",
        unit: "s",
        queries: [
          ["{{tenant}}", `histogram_quantile(0.95, sum by (tenant, le) (rate(pawl_tenant_end_to_end_seconds_bucket{${JOB}}[$__rate_interval])))`],
        ],
      },
      { title: "Waiting", unit: "short", queries: [["{{tenant}}", store("pawl_tenant_jobs_waiting", "tenant")]] },
    ],
  },
];

/** Every query of the dashboard, for the test that runs them all. */
export function dashboardQueries(): readonly { readonly panel: string; readonly expr: string }[] {
  return ROWS.flatMap(({ panels }) => panels.flatMap(({ title, queries }) => queries.map(([, expr]) => ({ panel: title, expr }))));
}

/** The dashboard as Grafana imports it (schema 39, Grafana 10 or newer). */
export function dashboardJson(): string {
  const source = { type: "prometheus", uid: "$source" };
  const panels: object[] = [];
  let y = 0;
  for (const { title, panels: own } of ROWS) {
    panels.push({ type: "row", title, collapsed: false, gridPos: { x: 0, y, w: 24, h: 1 }, panels: [] });
    y += 1;
    const [w, h] = own.every(({ kind }) => kind === "stat") ? [3, 4] : [8, 8];
    own.forEach(({ title: name, unit, kind, queries }, position) => {
      panels.push({
        type: kind ?? "timeseries",
        title: name,
        datasource: source,
        gridPos: { x: (position * w) % 24, y: y + Math.floor((position * w) / 24) * h, w, h },
        fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
        targets: queries.map(([legendFormat, expr], index) => ({ refId: String.fromCharCode(65 + index), datasource: source, expr, legendFormat })),
      });
    });
    y += Math.ceil((own.length * w) / 24) * h;
  }
  const variables = [
    { name: "source", label: "Prometheus", type: "datasource", query: "prometheus" },
    { name: "job", label: "Pawl", type: "query", datasource: source, query: "label_values(pawl_store_up, job)", refresh: 2 },
  ];
  const about = { uid: "pawl", title: "Pawl", tags: ["pawl"], schemaVersion: 39, refresh: "30s", time: { from: "now-1h", to: "now" } };
  return `${JSON.stringify({ ...about, templating: { list: variables }, panels }, undefined, 2)}\n`;
}

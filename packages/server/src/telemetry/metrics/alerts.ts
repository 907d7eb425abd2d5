/** An alert, as Prometheus takes it and as people read it at night. */
export interface Alert {
  readonly name: string;
  readonly severity: "critical" | "high" | "medium" | "info";
  readonly expr: string;
  /** seconds that it must hold */
  readonly for: number;
  /** one line, with Prometheus's labels */
  readonly summary: string;
  readonly means: string;
  readonly firstLook: string;
  readonly act: string;
}

/**
 * The rules. Every time in them, windows and thresholds alike, is multiplied by `scale`, so that a test can have a day's
 * trouble in half a minute. One Prometheus job is one store: what is said of a store is the same from all its processes.
 */
export function alerts(scale = 1): readonly Alert[] {
  const s = (seconds: number) => seconds * scale;
  const over = (seconds: number) => `[${Math.round(s(seconds) * 1_000)}ms]`;
  const MINUTE = 60;
  const DAY = 86_400;
  // Over a while, so that one scrape that failed does not make an alert begin anew.
  const recentWindow = over(2 * MINUTE);
  const notPaused = `unless on (job, queue) last_over_time(pawl_queue_paused${recentWindow}) unless on (job, task) last_over_time(pawl_task_paused${recentWindow})`;
  const inStore = (metric: string) => `max by (job, queue, task, state) (${metric})`;
  const quantile = (q: number, metric: string) => `histogram_quantile(${q}, sum by (job, task, le) (rate(${metric}_bucket${over(5 * MINUTE)})))`;
  const utilisation = `sum by (job) (avg_over_time(pawl_worker_slots_busy${over(5 * MINUTE)})) / sum by (job) (avg_over_time(pawl_worker_slots${over(5 * MINUTE)}))`;
  return [
    {
      name: "PawlNothingSettled",
      severity: "critical",
      expr: `sum by (job, queue) (${inStore(`min_over_time(pawl_jobs{state="ready"}${recentWindow}) ${notPaused}`)}) > 0 unless on (job, queue) sum by (job, queue) (rate(pawl_attempts_settled_total${recentWindow})) > 0`,
      for: s(3 * MINUTE),
      summary: "Nothing of queue {{ $labels.queue }} was settled for 5 min, and {{ $value }} jobs are ready.",
      means: "Work waits and none of it gets done: no worker serves the queue, all of them hang, or the store refuses settlements.",
      firstLook: "`pawl workers`; `pawl jobs explain <id>` of one that waits; `pawl_duty_failures_total`.",
      act: "Start a worker that has the tasks, or restart the one whose slots are all busy and whose handlers do not end. If a breaker is open or a limit holds them, explain says so.",
    },
    {
      name: "PawlWorkerStuck",
      severity: "high",
      expr: `max by (job, instance) (pawl_workers_stuck) > 0`,
      for: s(MINUTE),
      summary: "A worker of {{ $labels.instance }} is stuck: its handlers do not end.",
      means: "So many handlers went on long after their time that the worker takes nothing more. Nothing in JavaScript can end them.",
      firstLook: "The log: `worker.stuck`, and what timed out before. `pawl_worker_overruns`.",
      act: "Replace the process, if it was not replaced by itself. Then have the handler heed `ctx.signal`, or give what it calls a timeout.",
    },
    {
      name: "PawlStoreAway",
      severity: "critical",
      expr: `max by (job) (max_over_time(pawl_store_up${over(MINUTE)})) == 0`,
      for: 0,
      summary: "No process of {{ $labels.job }} can read its store.",
      means: "The database is down, unreachable, or too busy to answer within three seconds.",
      firstLook: "The database's own log and connections; `pawl doctor`.",
      act: "Bring it back. Processes need no restart: they go on by themselves, and no lease is reaped for the length of one.",
    },
    {
      name: "PawlUnseen",
      severity: "critical",
      expr: `max by (job) (up{job=~"pawl.*"} or up and on (job) present_over_time(pawl_store_up${over(DAY)})) == 0 or absent(pawl_store_up)`,
      for: s(2 * MINUTE),
      summary: 'Prometheus gets no numbers from any process of {{ or $labels.job "any store" }}.',
      means:
        "Nobody can tell how the work goes, and no other alert of Pawl can be raised: all processes are down or cannot be reached, they refuse Prometheus's key, or they were started while the store was away.",
      firstLook:
        "The error of the target in Prometheus (Status, Targets): no connection, 401 or 403 (the key), 503 (the store). `/livez` and `/readyz` of the processes, and their log.",
      act: "No connection: start them. The key: make another, `pawl api-keys create prometheus --role viewer`. The store: see PawlStoreAway.",
    },
    {
      name: "PawlDeadLettersRising",
      severity: "high",
      expr: `sum by (job) (max by (job, queue, task) (rate(pawl_jobs_died_total${over(5 * MINUTE)}))) * 60 > 10`,
      for: s(10 * MINUTE),
      summary: "{{ $value | humanize }} jobs a minute die.",
      means: "Many jobs run out of attempts: as a rule a release, or something that handlers depend on.",
      firstLook: "`pawl dead`: groups by failure; `pawl_attempt_failures_total` by task and failure.",
      act: "Mend the cause, then redrive a few of a group, watch, then the rest. If a dependency is down, give the task a breaker.",
    },
    {
      name: "PawlDeadLetters",
      severity: "info",
      expr: `sum by (job) (${inStore('pawl_jobs{state="dead"}')}) > 0`,
      for: 0,
      summary: "{{ $value }} dead jobs wait for somebody.",
      means: "Jobs are dead. They are kept, and run again only when somebody says so.",
      firstLook: "`pawl dead`.",
      act: "Redrive or delete them.",
    },
    {
      name: "PawlAttemptsSlow",
      severity: "high",
      expr: `${quantile(0.95, "pawl_attempt_duration_seconds")} > ${s(30)}`,
      for: s(15 * MINUTE),
      summary: "One attempt in twenty of {{ $labels.task }} takes more than {{ $value | humanizeDuration }}.",
      means: "Handlers take much longer than a job should: they hold slots that others wait for.",
      firstLook: "Traces of the task; what it calls.",
      act: "Give what it calls a timeout, make the work smaller, or raise the threshold for a task that is meant to be long.",
    },
    {
      name: "PawlEndToEndSlow",
      severity: "high",
      expr: `${quantile(0.99, "pawl_job_end_to_end_seconds")} > on (job, task) max by (job, task) (last_over_time(pawl_job_objective_seconds${recentWindow}))`,
      for: s(5 * MINUTE),
      summary: "One job in a hundred of {{ $labels.task }} takes {{ $value | humanizeDuration }} from due to finished, over its objective.",
      means: "The objective that was set for the task is missed: jobs wait too long, run too long, or fail too often.",
      firstLook: "`pawl_job_wait_seconds` beside `pawl_attempt_duration_seconds`: which of them is it?",
      act: "Waiting: more slots, a higher priority, or a share of its own. Running: see PawlAttemptsSlow. Failing: see the panel of failed attempts by task and failure.",
    },
    {
      name: "PawlBacklogGrowing",
      severity: "medium",
      expr: `sum by (job, queue) (max by (job, queue, task, state) (deriv(pawl_jobs{state=~"ready|parked"}${over(5 * MINUTE)}))) * 60 > 500`,
      for: s(15 * MINUTE),
      summary: "Queue {{ $labels.queue }} grows by {{ $value | humanize }} jobs a minute.",
      means: "More comes in than gets done, and has for a while.",
      firstLook: "Who enqueues: `pawl_jobs_enqueued_total`, `pawl_tenant_jobs_waiting`. Whether workers are busy: utilisation.",
      act: "More workers if they are busy; a limit on ingest if one tenant floods; explain if they are not busy.",
    },
    {
      name: "PawlLate",
      severity: "high",
      expr: `max by (job) (pawl_overdue_seconds) > ${s(30)} or histogram_quantile(0.99, sum by (job, le) (rate(pawl_schedule_lateness_seconds_bucket${over(5 * MINUTE)}))) > ${s(30)}`,
      for: 0,
      summary: "Schedules or delayed jobs are {{ $value | humanizeDuration }} late.",
      means: "What was due is seen to late, or not at all: maintenance is away, overwhelmed, or failing.",
      firstLook: "`pawl_duty_failures_total` by duty; `pawl_maintenance_last_poll_timestamp_seconds`; `pawl doctor`.",
      act: "Let a process take part in maintenance. If a duty fails, its error is in the log.",
    },
    {
      name: "PawlRecoveries",
      severity: "medium",
      expr: `sum by (job) (rate(pawl_jobs_recovered_total${recentWindow})) > 0`,
      for: s(5 * MINUTE),
      summary: "Jobs are being taken from vanished workers, {{ $value | humanize }} a second.",
      means: "Workers keep vanishing with jobs in hand: killed, out of memory, frozen, or cut off from the store.",
      firstLook: "Restarts of worker processes; `pawl_leases_lost_total`; jobs whose history shows `crashed`.",
      act: "A job that takes its worker down dies of that by itself after `maxCrashes`. Otherwise: memory limits, shutdown grace of deployments.",
    },
    {
      name: "PawlLeasesExpiring",
      severity: "medium",
      expr: `sum by (job) (rate(pawl_leases_reaped_total${over(5 * MINUTE)})) / sum by (job) (rate(pawl_leases_claimed_total${over(5 * MINUTE)})) > 0.05`,
      for: s(MINUTE),
      summary: "{{ $value | humanizePercentage }} of leases expire.",
      means: "Workers do not renew in time: the store is slow, or processes stand still.",
      firstLook: "`pawl_store_operation_duration_seconds` of `leases.renew`; `pawl_worker_event_loop_blocks_total`; CPU throttling.",
      act: "Give processes the CPU they need; a longer lease where machines stand still.",
    },
    {
      name: "PawlNoMaintenance",
      severity: "medium",
      expr: `time() - max by (job) (pawl_maintenance_last_poll_timestamp_seconds) > ${s(2 * MINUTE)}`,
      for: 0,
      summary: "Nobody has looked for what is due for {{ $value | humanizeDuration }}.",
      means: "Delayed jobs stay delayed, schedules do not tick, jobs of vanished workers are not recovered.",
      firstLook: "Whether a process with the component maintenance runs, and can reach the store.",
      act: "Start one. Any number may run; none leads.",
    },
    {
      name: "PawlLowPriorityWaiting",
      severity: "medium",
      expr: `max by (job, queue, priority) (pawl_oldest_wait_seconds{priority=~"[0-4]"} unless on (job, queue) last_over_time(pawl_queue_paused${recentWindow})) > ${s(5 * MINUTE)}`,
      for: 0,
      summary: "Jobs of priority {{ $labels.priority }} in {{ $labels.queue }} have waited for {{ $value | humanizeDuration }}.",
      means: "What is less urgent hardly gets its turn.",
      firstLook: "`pawl queues show`: the weights of the priorities; whether workers are busy all the time.",
      act: "More slots, a minimum share for the priority, or slots reserved for it.",
    },
    {
      name: "PawlWorkersIdle",
      severity: "info",
      expr: `${utilisation} < 0.2`,
      for: s(10 * MINUTE),
      summary: "Workers of {{ $labels.job }} use {{ $value | humanizePercentage }} of their slots.",
      means: "There are more slots than work.",
      firstLook: "The utilisation over a day: is it always so?",
      act: "Fewer workers, or fewer slots.",
    },
    {
      name: "PawlWorkersBusy",
      severity: "info",
      expr: `${utilisation} > 0.9`,
      for: s(10 * MINUTE),
      summary: "Workers of {{ $labels.job }} use {{ $value | humanizePercentage }} of their slots.",
      means: "There is no room for more: what comes now waits.",
      firstLook: "Waits by priority; whether the backlog grows.",
      act: "More workers, or more slots where handlers mostly wait.",
    },
  ];
}

/** The rules as Prometheus reads them. JSON's strings are YAML's. */
export function alertsYaml(rules: readonly Alert[] = alerts()): string {
  const lines = [
    "# Printed from packages/server/src/telemetry/metrics/alerts.ts by `npm run docs:states`. What each means: docs/alerts.md",
    "groups:",
    "  - name: pawl",
    "    rules:",
  ];
  for (const { name, severity, expr, for: holdSeconds, summary } of rules) {
    lines.push(`      - alert: ${name}`, `        expr: ${JSON.stringify(expr)}`);
    if (holdSeconds > 0) lines.push(`        for: ${Math.round(holdSeconds * 1_000)}ms`);
    lines.push("        labels:", `          severity: ${severity}`, "        annotations:", `          summary: ${JSON.stringify(summary)}`);
  }
  return `${lines.join("\n")}\n`;
}

/** For docs/alerts.md. */
export function alertSections(): string {
  return alerts()
    .map(({ name, severity, means, firstLook, act }) => `### ${name}\n\n_${severity}._ ${means}\n\n- First look: ${firstLook}\n- What to do: ${act}`)
    .join("\n\n");
}

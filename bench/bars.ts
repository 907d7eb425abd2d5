/** What a figure has to reach: a scenario's ratio, or one of its parts. */
export interface Bar {
  readonly scenario: string;
  /** `"ratio"`, or the key in `parts` */
  readonly figure: string;
  readonly what: string;
  readonly better: "higher" | "lower";
  /** an aim without a must is wished for, not asked for */
  readonly must?: number;
  readonly aim?: number;
}

const atLeast = (scenario: string, figure: string, what: string, must: number, aim?: number): Bar => ({
  scenario,
  figure,
  what,
  better: "higher",
  must,
  ...(aim === undefined ? {} : { aim }),
});

const atMost = (scenario: string, figure: string, what: string, must: number, aim?: number): Bar => ({
  ...atLeast(scenario, figure, what, must, aim),
  better: "lower",
});

/** Every bar of the benchmark, in the order people read them. */
export const BARS: readonly Bar[] = [
  atLeast("enqueue", "ratio", "in bulk, over the best Postgres peer", 2, 2.5),
  atLeast("enqueue", "single", "one by one, over the best Postgres peer", 1.1, 1.5),
  atLeast("enqueue", "inFlight64", "64 in flight, over the best Postgres peer", 1.1, 1.5),
  atLeast("drain", "ratio", "over the best peer", 3, 4),
  atLeast("sustained", "ratio", "over the best peer", 2, 3),
  atLeast("latency", "ratio", "best Postgres peer over Pawl, the worse of p50 and p99", 0.9, 1.2),
  atMost("lateness", "p99Ms", "start minus due, p99", 100, 50),
  { scenario: "lateness", figure: "ratio", what: "p99 of the best peer over Pawl's", better: "higher", aim: 1 },
  // "99.9 % within 5 s" said as a percentile.
  atMost("herd", "p999Ms", "start minus due, p99.9", 5_000, 1_000),
  atMost("schedules", "midnightP99Ms", "a time of day in 50,000 tenants' own zones: start minus tick, p99", 1_000),
  atMost("schedules", "minuteP99Ms", "100,000 schedules due over a minute: start minus tick, p99", 1_000),
  { scenario: "schedules", figure: "instantP99Ms", what: "20,000 schedules due at one instant: start minus tick, p99", better: "lower", aim: 1_000 },
  atLeast("backlog", "ratio", "rate with 1M ready over the small backlog's", 0.6, 0.8),
  atLeast("backlog", "delayed", "rate with 1M delayed over none", 0.9, 0.95),
  atLeast("backlog", "delayedTenfold", "rate with 10M delayed over none", 0.9, 0.95),
  // Flat and no slower, give or take what equal stretches differ by.
  atMost("fanout", "rssGrowth", "RSS of the last tenth over the first", 1.1),
  atMost("fanout", "slowdown", "time per job of the last tenth over the first", 1.1),
  atLeast("pinned", "ratio", "pinned, over the best peer pinned", 3, 5),
  atLeast("pinned", "ofUnpinned", "pinned, over its own unpinned rate", 0.6, 0.8),
  atLeast("pinned", "ofUnpinnedAfter1M", "pinned and after 1M more, over its own unpinned rate", 0.6, 0.8),
  atLeast("tenants", "ratio", "rate with 10,000 tenants over one", 0.5, 0.75),
  atLeast("fairness", "ratio", "worker time of the worst-off tenant over its due", 0.9),
  atLeast("fairness", "evenness", "of tenants' worker time over their due (Jain)", 0.95),
  atMost("newcomers", "ratio", "longest wait of a small tenant's job beside another's backlog, over twice that on an empty system or 1 s", 1),
  atLeast("limits", "ratio", "rate with a concurrency limit on one key of a hundred, over none", 0.8),
  atLeast("limits", "parked", "rate beside 100,000 parked jobs, over none", 0.9),
  atLeast("embedded", "ratio", "native embedded store over the best peer on its server", 2.5, 3.5),
  atMost("cost", "walKB", "WAL per job over its life", 1, 0.8),
  atMost("cost", "diskKB", "disk per job over its life", 1, 0.8),
  atMost("cost", "cpuOfBestPeer", "CPU per job, over the thriftiest peer's", 1),
  atLeast("service", "ratio", "drain over HTTP by the pull protocol, over the local one", 0.2),
  atLeast("service", "enqueue", "enqueueMany over HTTP, over the local one", 0.25),
  atLeast("authentication", "ratio", "requests a second with keys, over without", 0.9),
  atMost("connections", "ratio", "p99 of a request with 500 streams and 200 workers connected, over its value with none", 5),
  atMost("bodies", "rssGrowthMB", "what 50 oversized bodies at a time add to the service's memory", 50),
  atLeast("telemetry", "ratio", "rate with metrics, logs and events, over none", 0.9),
  atLeast("telemetry", "traced", "and with one job of a hundred traced, over none", 0.85),
  atLeast("workers", "ratio", "8 processes over the best total", 0.8, 1),
  atMost("workers", "errors", "errors", 0),
  atMost("workers", "twice", "jobs run twice", 0),
  atMost("idle", "queriesPerSecond", "queries of an idle worker", 2, 1),
];

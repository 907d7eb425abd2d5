/**
 * Every default, in one place; `docs/operations.md` publishes this table.
 * Those of `job` can be set per queue, task and job; those of `worker` and `maintenance` where they are started.
 */
export const DEFAULTS = {
  job: {
    queue: "default",
    priority: 5,
    tenant: "default",
    /** they last for longer than ten minutes, whatever chance does: so long a job survives what it depends on being down */
    retries: 10,
    /** ms for one attempt */
    timeout: 5 * 60_000,
    maxCrashes: 3,
  },
  backoff: {
    /** ms before the first retry; each next one waits `factor` times as long, up to `max` */
    min: 1_000,
    max: 5 * 60_000,
    factor: 2,
    /** the share of a delay that chance may take away, so that jobs that failed together return apart */
    jitter: 0.2,
  },
  lease: {
    /** ms a lease lasts unless it is renewed */
    duration: 15_000,
    /** ms between renewals */
    renewInterval: 5_000,
  },
  worker: {
    concurrency: 10,
    /** most jobs taken by one claim */
    maxJobsPerClaim: 1_000,
    /** ms of work a worker may hold ahead of its free slots */
    lookahead: 50,
    /** ms an idle worker waits before it looks again; a wakeup cuts it short */
    pollInterval: 1_000,
    /** ms a stopping worker lets its handlers finish */
    shutdownGrace: 30_000,
    /** ms a handler may go on after its time before it counts as lost */
    overrun: 30_000,
    /** ms between looks for cancellations while jobs run and no wakeup is heard */
    intentPoll: 500,
  },
  breaker: {
    /** the share of failures at which it opens */
    failureRate: 0.9,
    /** ms over which they are counted */
    window: 5 * 60_000,
    /** outcomes in the window below which it never opens */
    minOutcomes: 20,
    /** ms between probes while it is open */
    probeInterval: 60_000,
  },
  capacity: {
    /** ms a worker is believed to live after a sign of life, and ms between them */
    life: 45_000,
    sign: 15_000,
    /** ms a task waits for room that smaller ones keep taking before room is kept for it */
    patience: 5_000,
  },
  schedule: {
    timeZone: "UTC",
    /** what becomes of missed ticks, and of ticks while an earlier job is unfinished */
    missed: "latest",
    overlap: "skip",
    /** ms a tick may be late and still be on time */
    tolerance: 60_000,
    /** ms after which a missed tick is not made up for */
    window: 60 * 60_000,
    /** missed ticks made up for, where all are asked for */
    max: 100,
    /** ms between two of them */
    pace: 1_000,
    /** schedules seen to by one transaction */
    batch: 500,
    app: "default",
  },
  maintenance: {
    /** ms between looks at what is due, expired or asked for */
    pollInterval: 1_000,
    /** ms between sweeps for expired leases */
    reapInterval: 2_000,
    /** ms between prunings */
    pruneInterval: 10 * 60_000,
    /** rows handled by one statement */
    batchSize: 2_000,
  },
  keep: {
    /** ms finished jobs are kept */
    jobs: 30 * 86_400_000,
    /** ms dead jobs are kept */
    dead: 90 * 86_400_000,
    /** ms the time series of counts are */
    series: 7 * 86_400_000,
    /** ms what happened is kept for who watches */
    events: 10 * 60_000,
    /** ms an idempotency key answers with its first job */
    idempotencyKey: 86_400_000,
  },
  target: {
    /** deliveries at a time, of each process that delivers */
    concurrency: 10,
    /** ms until a delivery must be answered */
    timeout: 15_000,
    /** ms the secret before signs beside a new one */
    keepOldFor: 86_400_000,
  },
  apiKeys: {
    /** ms the secret before is good beside a new one */
    keepOldFor: 86_400_000,
  },
  replies: {
    /** ms an answer is kept for the same request again */
    keep: 86_400_000,
    /** ms after which a request that was not answered is taken for dead */
    patience: 60_000,
  },
  ingest: {
    /** ms a stream of jobs waits to be let in */
    patience: 60_000,
  },
} as const;

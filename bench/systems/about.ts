import type { SystemAbout } from "../contract/system.ts";

/** Where a system comes from: this workspace, the peers' lock in `bench/`, or Debian's packages. */
export type Origin = { readonly workspace: string } | { readonly npm: string } | { readonly debian: readonly string[] };

export interface SystemEntry extends Omit<SystemAbout, "version"> {
  readonly origin: Origin;
  /** the file in `systems/` and, by its ending, the language it runs in */
  readonly file: string;
}

const pawl = { origin: { workspace: "pawl" }, keepsHistory: true, delays: true } as const;
const DEFAULTS = "public API, default options; bulk by enqueueMany; 10 handlers at a time";

export const SYSTEMS: readonly SystemEntry[] = [
  { ...pawl, name: "pawl", label: "Pawl", store: "postgres", file: "pawl.ts", settings: DEFAULTS },
  {
    ...pawl,
    name: "pawl-embedded",
    label: "Pawl, embedded",
    store: "folder",
    file: "pawl.ts",
    settings: `on a folder: its own Postgres, started from nothing; ${DEFAULTS}`,
  },
  { ...pawl, name: "pawl-pglite", label: "Pawl, PGlite", store: "folder", file: "pawl-pglite.ts", settings: `PGlite on a folder; ${DEFAULTS}` },
  {
    ...pawl,
    name: "pawl-http",
    label: "Pawl, over HTTP",
    store: "postgres",
    file: "pawl-http.ts",
    settings: `the library's client, and pawl serve in a process of its own; ${DEFAULTS}`,
  },
  {
    ...pawl,
    name: "pawl-observed",
    label: "Pawl, observed",
    store: "postgres",
    file: "pawl-observed.ts",
    settings: `metrics scraped every second, logs at info level, events; ${DEFAULTS}`,
  },
  {
    ...pawl,
    name: "pawl-traced",
    label: "Pawl, observed and traced",
    store: "postgres",
    file: "pawl-traced.ts",
    settings: `the same, and one job of a hundred followed with OpenTelemetry; ${DEFAULTS}`,
  },
  {
    name: "graphile-worker",
    label: "graphile-worker",
    store: "postgres",
    origin: { npm: "graphile-worker" },
    file: "graphile-worker.ts",
    keepsHistory: false,
    delays: true,
    settings:
      "local queue of 500 and batched completions (1 ms), as its page on performance advises; 100 concurrent jobs, pool of 10, the best of those tried here; no local queue where latency counts; bulk by addJobs, chunks of 10,000, 2 in flight; it deletes finished jobs",
  },
  {
    name: "pg-boss",
    label: "pg-boss",
    store: "postgres",
    origin: { npm: "pg-boss" },
    file: "pg-boss.ts",
    keepsHistory: true,
    delays: true,
    settings:
      "work() with batches of 1,000 completed at once, 2 local workers, burst while batches are full, pool of 25; LISTEN/NOTIFY where latency counts; bulk by insert without ids returned, chunks of 10,000, 2 in flight",
  },
  {
    name: "bullmq-postgres",
    label: "BullMQ on Postgres",
    store: "postgres",
    origin: { npm: "bullmq" },
    file: "bullmq-postgres.ts",
    keepsHistory: true,
    delays: true,
    slow: true,
    settings: "concurrency 32, pool of 32; addBulk in chunks of 1,000, 4 in flight; completed jobs kept, as by default",
  },
  {
    name: "bullmq",
    label: "BullMQ on Redis",
    store: "redis",
    origin: { npm: "bullmq" },
    file: "bullmq.ts",
    keepsHistory: true,
    delays: true,
    settings: "ioredis, concurrency 100; addBulk in chunks of 1,000, 4 in flight; completed jobs kept, as by default",
  },
  {
    name: "bee-queue",
    label: "bee-queue",
    store: "redis",
    origin: { npm: "bee-queue" },
    file: "bee-queue.ts",
    keepsHistory: true,
    delays: true,
    settings: "concurrency 100, no events, jobs not stored in memory; saveAll in chunks of 1,000; succeeded jobs kept, as by default",
  },
  {
    name: "sidekiq",
    label: "Sidekiq",
    store: "redis",
    origin: { debian: ["ruby-sidekiq"] },
    file: "sidekiq.rb",
    keepsHistory: false,
    delays: true,
    settings: "10 threads, its default; push_bulk in chunks of 1,000, its advice; it keeps no finished jobs",
  },
  {
    name: "celery",
    label: "Celery",
    store: "redis",
    origin: { debian: ["python3-celery", "python3-redis"] },
    file: "celery_system.py",
    keepsHistory: true,
    delays: true,
    slow: true,
    settings: "prefork pool of 2 (one per core), prefetch 64 per process, JSON, events and gossip off, results kept in Redis; it has no bulk enqueue",
  },
];

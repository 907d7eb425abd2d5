/** `pawl/worker`: types of workers. A worker is started by `pawl.work`. */
// biome-ignore-all assist/source/organizeImports: grouped by hand

/** Claims jobs and runs them in this process. */
export type { Worker } from "./worker/worker.js";
/** Options of `pawl.work`. */
export type { WorkerOptions } from "./worker/options.js";
/** A worker at a glance. */
export type { WorkerStatus } from "./worker/status.js";
/** A job that runs now. */
export type { RunningJob } from "./worker/status.js";
/** Handlers at a time of a worker, with smaller numbers for some queues and tasks. */
export type { ConcurrencyOptions } from "./worker/options.js";
/** Slots that only jobs of a priority or tenant may take. */
export type { Reservation } from "./worker/options.js";
/** Needs of a task: capabilities of its worker, and resources while a handler runs. */
export type { Needs } from "./core/limits/capacity.js";
/** Capabilities and resources of a worker, for tasks that need them. */
export type { Provides } from "./core/limits/capacity.js";
/** When the breakers of a task open, and when they try again. */
export type { BreakerOptions } from "./core/limits/breaker-check.js";
/** So many per period, with a burst. */
export type { RateOptions } from "./core/limits/token-bucket.js";

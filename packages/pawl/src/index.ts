/** `pawl`: everything an application needs. Workers, adapters, tests, services and stores have doors of their own. */
// biome-ignore-all assist/source/organizeImports: grouped by hand

/** Opens a store by its URL: memory, a folder, Postgres, or a service. */
export { open } from "./open.js";
/** An open store: enqueue, work, look at jobs, operate. */
export type { Pawl } from "./pawl.js";
/** Options of `open`, beside the URL. */
export type { OpenOptions } from "./open.js";
/** Defines a task: a name, options and a handler. */
export { task } from "./core/jobs/task.js";
/** A task: named code with its options. */
export type { Task } from "./core/jobs/task.js";
/** A task of any input and output. */
export type { AnyTask } from "./core/jobs/task.js";
/** Options of a task: defaults of its jobs, input schema, limits, needs, breaker. */
export type { TaskOptions } from "./core/jobs/task.js";
/** The input of a task. */
export type { InputOf } from "./core/jobs/task.js";
/** The output of a task. */
export type { OutputOf } from "./core/jobs/task.js";
/** Defines a schedule in code, for `open(url, { schedules })`. */
export { schedule } from "./scheduler/schedules/schedule.js";
/** When a schedule ticks, and the job of each tick. */
export type { ScheduleOptions } from "./scheduler/schedules/schedule.js";
/** A schedule as read. */
export type { ScheduleView } from "./scheduler/schedules/schedule-view.js";
/** Retry delays that grow: `exponential({ first, max })`. */
export { exponential } from "./core/jobs/retry.js";
/** Retry delays by the class of the error. */
export { retryRules } from "./core/jobs/retry.js";
/** How a failed attempt is retried: a number, delays, `exponential()`, `retryRules()`, a function. */
export type { RetryPolicy } from "./core/jobs/retry.js";
/** Thrown by a handler: the job is dead, without a retry. */
export { NonRetryable } from "./core/jobs/failure.js";
/** Thrown by a handler: retry, but not before this time. */
export { RetryAfter } from "./core/jobs/failure.js";
/** Thrown by a handler: run again later; no attempt is counted. */
export { Snooze } from "./core/jobs/failure.js";
/** Every error of a call: a code, a message with what to do, details. */
export { PawlError } from "./core/values/error.js";
/** Whether an error is a `PawlError`, of a code if one is named. */
export { isPawlError } from "./core/values/error.js";
/** The codes of errors. */
export type { ErrorCode } from "./core/values/error.js";
/** The eight states of a job. */
export { JOB_STATES } from "./core/jobs/job.js";
/** A state of a job. */
export type { JobState } from "./core/jobs/job.js";
/** The second argument of a handler: job, signal, log, progress. */
export type { Context } from "./core/jobs/context.js";
/** Code around every attempt. */
export type { Middleware } from "./core/jobs/context.js";
/** Enqueues, reads and verbs for one tenant, or for all. */
export type { Scheduler } from "./scheduler/scheduler.js";
/** Your own transaction: anything with `query(text, values)`. */
export type { Transaction } from "./core/jobs/transaction.js";
/** Defaults of jobs, per queue, task and job. */
export type { JobDefaults } from "./core/jobs/task.js";
/** Options of one job. */
export type { EnqueueOptions } from "./scheduler/options.js";
/** Options of `enqueueMany`: shared by all, and `each` its own. */
export type { EnqueueManyOptions } from "./scheduler/options.js";
/** Options of `enqueueStream`. */
export type { EnqueueStreamOptions } from "./scheduler/options.js";
/** One job of `enqueueAll`. */
export type { EnqueueItem } from "./scheduler/options.js";
/** The answer of `enqueueAll`: a handle or an error per item. */
export type { EnqueueAllResult } from "./scheduler/scheduler.js";
/** Makes a job the only one of its key. */
export type { UniqueOptions } from "./scheduler/options.js";
/** A limit on the jobs of one key, over all workers. */
export type { Limit } from "./core/limits/limit-options.js";
/** Milliseconds, or a text such as `"30s"`, `"5m"`, `"1h30m"`. */
export type { Duration } from "./core/values/duration.js";
/** A `Date`, ms since 1970, or an ISO 8601 text. */
export type { Instant } from "./scheduler/schedules/schedule.js";
/** 0 to 9 (9 is most urgent), or `low`, `normal`, `high`, `critical`. */
export type { PriorityOption as Priority } from "./core/jobs/task.js";
/** The handle of an enqueued job. */
export type { Job } from "./scheduler/scheduler.js";
/** A job's id, or its handle or view. */
export type { JobRef } from "./scheduler/options.js";
/** A job's id. */
export type { JobId } from "./core/jobs/id.js";
/** A job as read. */
export type { JobView } from "./scheduler/jobs/view.js";
/** One attempt of a job as read. */
export type { AttemptView } from "./scheduler/jobs/view.js";
/** Which jobs a list or a bulk call is about. */
export type { JobFilter } from "./scheduler/scheduler.js";
/** One page of a list: `items`, and the `next` cursor where more follow. */
export type { Page } from "./scheduler/page.js";
/** The recorded failure of an attempt. */
export type { Failure } from "./core/jobs/failure.js";
/** The kinds of failures. */
export type { FailureKind } from "./core/jobs/failure.js";
/** Why a job is not running, and when it will. */
export type { Explanation } from "./scheduler/observe/explain.js";
/** How long a call waits (`wait`), and a `signal` that ends it. */
export type { WaitOptions } from "./scheduler/scheduler.js";
/** Every event of `pawl.on`, by name. */
export type { Events } from "./core/observe/event.js";

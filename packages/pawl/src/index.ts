export type { IngestOptions } from "./core/backpressure.js";
export type { BreakerState } from "./core/breaker.js";
export type { BreakerOptions } from "./core/breaker-check.js";
export type { Lack, Needs, Serves } from "./core/capacity.js";
export { DEFAULTS } from "./core/defaults.js";
export type { DeathPolicy } from "./core/dependency.js";
export type { Duration } from "./core/duration.js";
export { type ErrorCode, type ErrorDetails, errorTable, isPawlError, PawlError } from "./core/error.js";
export type { EventName, Events } from "./core/event.js";
export type { CapStanding, KeyStanding, Parent, Reason } from "./core/explain.js";
export { type Failure, type FailureKind, NonRetryable, RetryAfter, Snooze } from "./core/failure.js";
export type { JobId } from "./core/id.js";
export { FINISHED, isFinished, type LogLevel, PENDING, type Priority, STATES, type State } from "./core/job.js";
export type { Lane } from "./core/lane.js";
export { allowed, applies, LIFECYCLE, lifecycleTable, VERBS, type Verb } from "./core/lifecycle.js";
export type { GateReason, JobLimit, LimitRule } from "./core/limit.js";
export type { Limit, LimitKey } from "./core/limit-options.js";
export type { OutcomeKind } from "./core/outcome.js";
export type {
  Policies,
  PolicyChanges,
  PolicyKind,
  QueueChanges,
  QueuePolicy,
  TaskChanges,
  TaskPolicy,
  TenantChanges,
  TenantPolicy,
} from "./core/policy.js";
export type { Rate, RateOptions } from "./core/rate.js";
export { exponential, type Retry, rules } from "./core/retry.js";
export type { MissedPolicy, OverlapPolicy, ScheduleRef, SkipReason, TickStamp, TickWay } from "./core/schedule.js";
export type { DstNote, DstPolicy } from "./core/schedule-rule.js";
export type { MaintenanceOptions } from "./maintenance/maintenance.js";
export { type OpenOptions, open, type Waiting } from "./open.js";
export type { KeepOptions, Pawl, PawlOptions, WorkOptions } from "./pawl.js";
export { fromDrizzle, fromKnex, fromKysely, fromPrisma } from "./scheduler/adapters.js";
export type { BreakerListing, BreakersOperator, BreakerView } from "./scheduler/breakers.js";
export type { Explanation } from "./scheduler/explain.js";
export type {
  DebounceOptions,
  EnqueueOptions,
  JobReference,
  ManyOptions,
  QueueDefaults,
  StreamOptions,
  StreamSummary,
  ThrottleOptions,
  UniqueOptions,
} from "./scheduler/options.js";
export {
  type CodeSchedule,
  type Instant,
  type MissedOptions,
  type ScheduledJobOptions,
  type ScheduleOptions,
  type ScheduleTimes,
  schedule,
} from "./scheduler/schedule.js";
export type { ScheduleView, TickView } from "./scheduler/schedule-view.js";
export type {
  BulkReport,
  Dead,
  DeadFilter,
  Info,
  Job,
  JobChange,
  JobPage,
  Jobs,
  JobsFilter,
  Named,
  Operator,
  QueueView,
  RedriveHow,
  RedriveMany,
  Scheduler,
  StateCounts,
  TaskView,
  TenantView,
  WaitOptions,
} from "./scheduler/scheduler.js";
export type {
  BackfillRange,
  BackfillReport,
  PreviewedTick,
  ScheduleChanges,
  ScheduleListing,
  ScheduleReference,
  Schedules,
  SchedulesFilter,
} from "./scheduler/schedules.js";
export type { LiveWorkerView, UnservedLane } from "./scheduler/unserved.js";
export type { AttemptView, JobView, LogView } from "./scheduler/view.js";
export type { ExportedJob, ForeignTransaction, StoreInfo } from "./store/port.js";
export type { BreakerFilter, BreakerRef } from "./store/port-breakers.js";
export type { Context, Middleware } from "./worker/context.js";
export type { Reservation, WorkerOptions } from "./worker/options.js";
export { type AnyTask, type InputOf, type OutputOf, type PriorityName, type Task, type TaskDefaults, type TaskOptions, task } from "./worker/task.js";
export type { RunningJob, Worker, WorkerStatus } from "./worker/worker.js";

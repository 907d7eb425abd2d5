export { ACCESS, ACTIONS, type Action, type Grant, type Identity, type Permission, permit, ROLES, type Role, type Subject } from "./core/access.js";
export { type ApiKeyText, apiKeyText, type Credential, parseApiKey, type Refusal, type Verified } from "./core/api-key.js";
export { AUDIT_OUTCOMES, type AuditEntry, type AuditFault, type AuditLink, type AuditNote, type AuditOutcome } from "./core/audit.js";
export type { IngestOptions } from "./core/backpressure.js";
export { BOUNDS } from "./core/bounds.js";
export type { BreakerState } from "./core/breaker.js";
export type { BreakerOptions } from "./core/breaker-check.js";
export { type Fate, fateOf } from "./core/bulk.js";
export type { Lack, Needs, Serves } from "./core/capacity.js";
export { DEFAULTS } from "./core/defaults.js";
export type { DeathPolicy } from "./core/dependency.js";
export { CHECKS, type Check, type Finding } from "./core/doctor.js";
export { type Duration, milliseconds } from "./core/duration.js";
export {
  type DetailsByCode,
  type ErrorCode,
  type ErrorDetails,
  errorTable,
  isPawlError,
  PawlError,
  type PawlErrorOf,
  pawlError,
} from "./core/error.js";
export type { EventName, Events, JobVerb } from "./core/event.js";
export type { CapStanding, KeyHolder, KeyStanding, Parent, Reason } from "./core/explain.js";
export { reasonInWords } from "./core/explain-words.js";
export { type Failure, type FailureKind, NonRetryable, RetryAfter, Snooze } from "./core/failure.js";
export { blockOf, GuessLimit } from "./core/guess-limit.js";
export type { JobId, LeaseId } from "./core/id.js";
export { FINISHED, isFinished, type LogLevel, PENDING, type Priority, STATES, type State } from "./core/job.js";
export type { CheckOptions, JsonSchema, SchemaCompiler } from "./core/json-schema.js";
export type { Lane } from "./core/lane.js";
export { allowed, applies, LIFECYCLE, lifecycleTable, VERBS, type Verb } from "./core/lifecycle.js";
export type { GateReason, JobLimit, LimitRule } from "./core/limit.js";
export type { Limit, LimitKey } from "./core/limit-options.js";
export { checkPeriod, nearest } from "./core/option.js";
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
export { type TargetRef, unseenIn } from "./core/target.js";
export { isOwnTask, OWN_TENANT } from "./core/tenant.js";
export { TOLD_EVENTS, type ToldEvent } from "./core/told.js";
export { isSampled, type TraceContext, traceOfHeaders } from "./core/trace.js";
export type { MaintenanceOptions } from "./maintenance/maintenance.js";
export { type OpenOptions, open, type Waiting } from "./open.js";
export type { KeepOptions, Pawl, PawlOptions } from "./pawl.js";
export { type CertificateFault, type CertificateTexts, certificateFaults } from "./runtime/certificates.js";
export { LOST_HANDLERS } from "./runtime/signals.js";
export { spawnThread } from "./runtime/thread.js";
export { fromDrizzle, fromKnex, fromKysely, fromPrisma } from "./scheduler/adapters.js";
export type { Audit, AuditListing, AuditMark, AuditQuery, AuditReport, AuditView, NewAudit } from "./scheduler/audit.js";
export type { BreakerListing, BreakersOperator, BreakerView } from "./scheduler/breakers.js";
export type { CheckupOptions } from "./scheduler/checkup.js";
export type { Counts, CountsOf, StateCounts } from "./scheduler/counts.js";
export type { Depths, DepthsOf } from "./scheduler/depths.js";
export type { Encryption, EncryptionOptions, MasterKeyView } from "./scheduler/encryption.js";
export type { Explanation } from "./scheduler/explain.js";
export { checkJobsFilter } from "./scheduler/filter.js";
export type { ClusterEvents, EventBatch, EventPage, EventPosition, EventTail } from "./scheduler/follower.js";
export type { KeyListing, KeyRing, Keys, KeysOptions, KeyView, NewKey, ShownKey } from "./scheduler/keys.js";
export { doubtfulLimits } from "./scheduler/limits.js";
export type { LimitListing, LimitsFilter, LimitsOperator, LimitsPage, LimitView } from "./scheduler/limits-view.js";
export type {
  BatchJob,
  BatchOptions,
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
export { SHORTEST_PEPPER } from "./scheduler/pepper.js";
export type { RepeatableRequest, Replies, Turn } from "./scheduler/replies.js";
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
  ActingAs,
  AttemptPage,
  Batch,
  BatchAnswer,
  BulkReport,
  Dead,
  DeadFilter,
  DeadGroupsFilter,
  DeadGroupView,
  Info,
  Job,
  JobChange,
  JobPage,
  Jobs,
  JobsFilter,
  LogPage,
  Named,
  Operator,
  PartOptions,
  QueueView,
  RedriveHow,
  RedriveMany,
  Scheduler,
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
export type { OneSeries, SeriesOf, SeriesPointView, SeriesView } from "./scheduler/series.js";
export type { CheckTarget, ShownTarget, TargetListing, TargetOptions, TargetReference, Targets, TargetView } from "./scheduler/targets.js";
export type { TaskDefinition, Tasks } from "./scheduler/tasks.js";
export type { ExportEntry } from "./scheduler/tenant-export.js";
export type { PurgeOptions, PurgeProgress, PurgeView } from "./scheduler/tenant-purge.js";
export type { LocalTenants, Tenants } from "./scheduler/tenants.js";
export type { EnqueueSpan, TracedEnqueue, Tracing } from "./scheduler/tracing.js";
export type { LiveLaneView, LiveWorkerView, UnservedLane } from "./scheduler/unserved.js";
export type { AttemptView, JobView, LogView } from "./scheduler/view.js";
export type { ForeignTransaction, StoreInfo } from "./store/port.js";
export type { AuditHead } from "./store/port-audit.js";
export type { BreakerFilter, BreakerRef } from "./store/port-breakers.js";
export type { ExportedJob } from "./store/port-duties.js";
export type { GateRef } from "./store/port-limits.js";
export type { Begun, Reply, ReplyRef } from "./store/port-replies.js";
export { rolesScript, rolesScriptForPsql } from "./store/postgres/roles.js";
export { isMasterKey } from "./store/sealed/masters.js";
export type { Context, Middleware } from "./worker/context.js";
export type { ClaimAsk, HandedJob, HandedLease, Host, HostedTask, HostOptions, HostRenewal } from "./worker/host/host.js";
export {
  checkEnding,
  type Holding,
  TOLD_KINDS,
  type ToldEnding,
  type ToldFailure,
  type ToldKind,
  type ToldNote,
  type ToldOutcome,
  type ToldRun,
} from "./worker/host/told.js";
export type { PulledAnswers, PulledEnding, PulledJob, PulledLease, PulledNotices, PulledRecord, PulledRenewal } from "./worker/host/wire.js";
export type { Reservation, WorkerOptions, WorkOptions } from "./worker/options.js";
export type { Deliver, Delivery, Pusher } from "./worker/pusher.js";
export type { RunningJob, WorkerStatus } from "./worker/status.js";
export { type AnyTask, type InputOf, type OutputOf, type PriorityName, type Task, type TaskDefaults, type TaskOptions, task } from "./worker/task.js";
export type { Worker } from "./worker/worker.js";

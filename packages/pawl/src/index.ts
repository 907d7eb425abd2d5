export { type ApiKeyText, apiKeyText, type Credential, parseApiKey, type Refusal, type Verified } from "./core/access/api-key.js";
export { AUDIT_OUTCOMES, type AuditEntry, type AuditFault, type AuditLink, type AuditNote, type AuditOutcome } from "./core/access/audit-entry.js";
export { type BulkOutcome, bulkOutcomeOf } from "./core/access/bulk-outcome.js";
export { blockOf, GuessLimit } from "./core/access/guess-limit.js";
export { type TargetRef, unseenIn } from "./core/access/push-target.js";
export {
  ACCESS,
  ACTIONS,
  type Action,
  type Grant,
  type Identity,
  type Permission,
  permit,
  ROLES,
  type Role,
  type Subject,
} from "./core/access/roles.js";
export { isOwnTask, OWN_TENANT } from "./core/access/tenant.js";
export type { Context, Middleware } from "./core/jobs/context.js";
export type { DeathPolicy } from "./core/jobs/dependency.js";
export { type Failure, type FailureKind, NonRetryable, RetryAfter, Snooze } from "./core/jobs/failure.js";
export type { JobId, LeaseId } from "./core/jobs/id.js";
export { FINISHED, isFinished, JOB_STATES, type JobState, type LogLevel, PENDING, type Priority } from "./core/jobs/job.js";
export type { Lane } from "./core/jobs/lane.js";
export { allowed, applies, LIFECYCLE, lifecycleTable, VERBS, type Verb } from "./core/jobs/lifecycle.js";
export type { OutcomeKind } from "./core/jobs/outcome.js";
export { exponential, type RetryPolicy, retryRules } from "./core/jobs/retry.js";
export {
  type AnyTask,
  type InputOf,
  type JobDefaults,
  type OutputOf,
  type PriorityName,
  type Task,
  type TaskOptions,
  task,
} from "./core/jobs/task.js";
export type { BreakerState } from "./core/limits/breaker.js";
export type { BreakerOptions } from "./core/limits/breaker-check.js";
export type { Lack, Needs, Serves } from "./core/limits/capacity.js";
export type { IngestOptions } from "./core/limits/ingest-limit.js";
export type { Limit, LimitKeyValue } from "./core/limits/limit-options.js";
export type { JobLimit, LimitReason, LimitRule } from "./core/limits/limit-rule.js";
export type { Rate, RateOptions } from "./core/limits/token-bucket.js";
export { RECORDED_EVENTS, type RecordedEvent } from "./core/observe/cluster-event.js";
export { CHECKS, type Check, type Finding } from "./core/observe/doctor.js";
export type { EventName, Events, JobVerb } from "./core/observe/event.js";
export type { LimitKeyReason, Parent, PolicyLimitReason, Reason, SlotHolder } from "./core/observe/explain.js";
export { reasonInWords } from "./core/observe/explain-text.js";
export { isSampled, type TraceContext, traceOfHeaders } from "./core/observe/trace.js";
export type { DstNote, DstPolicy } from "./core/schedules/recurrence.js";
export type { JobTick, MissedPolicy, OverlapPolicy, ScheduleRef, SkipReason, TickWay } from "./core/schedules/schedule.js";
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
} from "./core/sharing/policy.js";
export { BOUNDS } from "./core/values/bounds.js";
export { DEFAULTS } from "./core/values/defaults.js";
export { type Duration, milliseconds } from "./core/values/duration.js";
export {
  type DetailsByCode,
  type ErrorCode,
  type ErrorDetails,
  errorTable,
  isPawlError,
  PawlError,
  type PawlErrorOf,
  pawlError,
} from "./core/values/error.js";
export type { CheckOptions, JsonSchema, SchemaCompiler } from "./core/values/json-schema.js";
export { checkPeriod, nearest } from "./core/values/option.js";
export type { MaintenanceOptions } from "./maintenance/maintenance.js";
export { type OpenOptions, type OpenWait, open } from "./open.js";
export type { KeepOptions, Pawl, PawlOptions } from "./pawl.js";
export { type CertificateFault, type CertificateTexts, certificateFaults } from "./runtime/io/certificates.js";
export { spawnThread } from "./runtime/io/thread.js";
export { LOST_HANDLER_EXIT_CODES } from "./runtime/process/signals.js";
export type {
  ApiKeyListing,
  ApiKeyOptions,
  ApiKeys,
  ApiKeyView,
  ApiKeyWithSecret,
  LocalApiKeys,
  PepperOptions,
} from "./scheduler/access/api-keys.js";
export type { AnchoredHead, Audit, AuditListing, AuditQuery, AuditReport, AuditView, NewAudit } from "./scheduler/access/audit.js";
export type { Encryption, EncryptionOptions, MasterKeyView } from "./scheduler/access/encryption.js";
export { MIN_PEPPER_BYTES } from "./scheduler/access/pepper.js";
export type {
  CheckTarget,
  TargetListing,
  TargetOptions,
  TargetReference,
  Targets,
  TargetView,
  TargetWithSecret,
} from "./scheduler/access/targets.js";
export type { ExportEntry } from "./scheduler/access/tenant-export.js";
export type { PurgeOptions, PurgeProgress, PurgeView } from "./scheduler/access/tenant-purge.js";
export type { LocalTenants, Tenants } from "./scheduler/access/tenants.js";
export { fromDrizzle, fromKnex, fromKysely, fromPrisma } from "./scheduler/enqueue/transaction-adapters.js";
export { checkJobsFilter } from "./scheduler/jobs/filter.js";
export type { IdempotentRequest, IdempotentRequestStart, Replies } from "./scheduler/jobs/replies.js";
export type { TaskDefinition, Tasks } from "./scheduler/jobs/tasks.js";
export type { AttemptView, JobView, LogView } from "./scheduler/jobs/view.js";
export type { BreakerListing, BreakersOperator, BreakerView } from "./scheduler/limits/breakers.js";
export { unknownLimitPaths } from "./scheduler/limits/limits.js";
export type { LimitListing, LimitsFilter, LimitsOperator, LimitsPageOptions, LimitView } from "./scheduler/limits/limits-view.js";
export type { Backlog, BacklogOptions } from "./scheduler/observe/backlog.js";
export type { CountsOptions, JobCounts, StateCounts } from "./scheduler/observe/counts.js";
export type { DoctorOptions } from "./scheduler/observe/doctor.js";
export type { ClusterEvents, EventBatch, EventPage, EventPosition, EventTail } from "./scheduler/observe/event-tail.js";
export type { Explanation } from "./scheduler/observe/explain.js";
export type { LiveLaneView, LiveWorkerView, UnservedLane } from "./scheduler/observe/lanes-and-workers.js";
export type { GroupSeries, SeriesOptions, SeriesPointView, SeriesView } from "./scheduler/observe/series.js";
export type { EnqueueSpan, TracedEnqueue, Tracing } from "./scheduler/observe/tracing.js";
export type {
  DebounceOptions,
  EnqueueAllOptions,
  EnqueueItem,
  EnqueueManyOptions,
  EnqueueOptions,
  EnqueueStreamOptions,
  JobRef,
  QueueDefaults,
  StreamSummary,
  ThrottleOptions,
  UniqueOptions,
} from "./scheduler/options.js";
export type {
  AttemptPage,
  BulkReport,
  Dead,
  DeadFilter,
  DeadGroupsFilter,
  DeadGroupView,
  EnqueueAllResult,
  EnqueueAnswer,
  Job,
  JobChange,
  JobFilter,
  JobPage,
  Jobs,
  LogPage,
  NumberedPageOptions,
  Operator,
  PawlInfo,
  PolicyOperator,
  QueueView,
  RedriveJobOptions,
  RedriveManyOptions,
  Scheduler,
  SchedulerScope,
  TaskView,
  TenantView,
  WaitOptions,
} from "./scheduler/scheduler.js";
export {
  type CodeSchedule,
  type Instant,
  type MissedOptions,
  type ScheduledJobOptions,
  type ScheduleOptions,
  type ScheduleTimes,
  schedule,
} from "./scheduler/schedules/schedule.js";
export type { ScheduleView, TickView } from "./scheduler/schedules/schedule-view.js";
export type {
  BackfillRange,
  BackfillReport,
  PreviewedTick,
  ScheduleChanges,
  ScheduleListing,
  ScheduleReference,
  Schedules,
  SchedulesFilter,
} from "./scheduler/schedules/schedules.js";
export { isMasterKey } from "./store/encrypted/master-keys.js";
export type { AuditHead } from "./store/port/access/audit.js";
export type { BeginReplyResult, Reply, ReplyRef } from "./store/port/access/replies.js";
export type { BreakerFilter, BreakerRef } from "./store/port/breakers.js";
export type { ExportedJob } from "./store/port/duties.js";
export type { StoreInfo, Transaction } from "./store/port/index.js";
export type { LimitKeyRef } from "./store/port/limits.js";
export { rolesScript, rolesScriptForPsql } from "./store/postgres/connection/roles.js";
export type { Reservation, WorkerOptions, WorkOptions } from "./worker/options.js";
export type { Deliver, Delivery, Pusher } from "./worker/push/pusher.js";
export type { Host, HostedTask, HostOptions, HostRenewal, LeasedJob, RemoteClaimRequest, RemoteLease } from "./worker/remote/host.js";
export type { PulledIntents, PulledJob, PulledLease, PulledOutcome, PulledRecord, PulledRenewal, PulledResults } from "./worker/remote/protocol.js";
export {
  type AttemptOutcome,
  type AttemptReport,
  checkAttemptOutcome,
  type HeldJobs,
  REPORTED_FAILURE_KINDS,
  type ReportedFailure,
  type ReportedFailureKind,
  type ReportedOutcome,
  type TaskRunOptions,
} from "./worker/remote/reported-outcome.js";
export type { RunningJob, WorkerStatus } from "./worker/status.js";
export type { Worker } from "./worker/worker.js";

/** `pawl/service`: everything that a service on top of Pawl needs. The package pawl-server is made with it. */
// biome-ignore-all assist/source/organizeImports: grouped by hand

/** Which role may do which action. */
export { ACCESS } from "./core/access/roles.js";
/** An action of the HTTP API, such as `jobs.cancel`. */
export type { Action } from "./core/access/roles.js";
/** A role, for the tasks and queues that match. */
export type { Grant } from "./core/access/roles.js";
/** The caller, as the credential says. */
export type { Identity } from "./core/access/roles.js";
/** Whether a caller may do an action. */
export { permit } from "./core/access/roles.js";
/** The roles of API keys. */
export { ROLES } from "./core/access/roles.js";
/** A role of API keys. */
export type { Role } from "./core/access/roles.js";
/** The subject of an action: task, queue, tenant. */
export type { Subject } from "./core/access/roles.js";
/** The text of an API key. */
export { apiKeyText } from "./core/access/api-key.js";
/** The parts of an API key's text; undefined if it is not one. */
export { parseApiKey } from "./core/access/api-key.js";
/** The result of checking an API key. */
export type { Verified } from "./core/access/api-key.js";
/** The outcomes of audit entries. */
export { AUDIT_OUTCOMES } from "./core/access/audit-entry.js";
/** The outcome of an audit entry. */
export type { AuditOutcome } from "./core/access/audit-entry.js";
/** The largest sizes of everything callers send. */
export { BOUNDS } from "./core/values/bounds.js";
/** The states of a breaker. */
export type { BreakerState } from "./core/limits/breaker.js";
/** The meaning of one job's error for a bulk operation. */
export { bulkOutcomeOf } from "./core/access/bulk-outcome.js";
/** The checks of the doctor. */
export { CHECKS } from "./core/observe/doctor.js";
/** One check of the doctor. */
export type { Check } from "./core/observe/doctor.js";
/** One thing that is wrong: evidence, cost, cure. */
export type { Finding } from "./core/observe/doctor.js";
/** Every default. */
export { DEFAULTS } from "./core/values/defaults.js";
/** A duration in ms. */
export { milliseconds } from "./core/values/duration.js";
/** Every error code with message and cure. */
export { errorTable } from "./core/values/error.js";
/** Builds the error of a code. */
export { pawlError } from "./core/values/error.js";
/** The names of events. */
export type { EventName } from "./core/observe/event.js";
/** One reason why a job waits. */
export type { Reason } from "./core/observe/explain.js";
/** A reason as text. */
export { reasonInWords } from "./core/observe/explain-text.js";
/** The network an address is counted by. */
export { blockOf } from "./core/access/guess-limit.js";
/** Slows down those who guess API keys. */
export { GuessLimit } from "./core/access/guess-limit.js";
/** Whether a state is final. */
export { isFinished } from "./core/jobs/job.js";
/** Options of input schemas with expensive checks. */
export type { CheckOptions } from "./core/values/json-schema.js";
/** A JSON Schema (2020-12). */
export type { JsonSchema } from "./core/values/json-schema.js";
/** Compiles a JSON Schema to a checker of inputs. */
export type { SchemaCompiler } from "./core/values/json-schema.js";
/** Queue, priority, tenant and task of a job. */
export type { Lane } from "./core/jobs/lane.js";
/** A lane as one text, and back. */
export { laneKey, parseLaneKey } from "./core/jobs/lane.js";
/** A lane as one text. */
export type { LaneKey } from "./core/jobs/lane.js";
/** The verbs a state allows. */
export { allowed } from "./core/jobs/lifecycle.js";
/** Whether a verb applies in a state. */
export { applies } from "./core/jobs/lifecycle.js";
/** The state machine as a table. */
export { LIFECYCLE } from "./core/jobs/lifecycle.js";
/** The state machine as Markdown. */
export { lifecycleTable } from "./core/jobs/lifecycle.js";
/** The verbs of jobs. */
export { VERBS } from "./core/jobs/lifecycle.js";
/** A verb of jobs. */
export type { Verb } from "./core/jobs/lifecycle.js";
/** Checks a duration above zero. */
export { checkPeriod } from "./core/values/option.js";
/** Checks a rate, such as `"100/5m"`, and answers it in ms. */
export { checkRate } from "./core/limits/token-bucket.js";
/** The choice nearest to a misspelt one. */
export { nearest } from "./core/values/option.js";
/** How an attempt ended. */
export type { OutcomeKind } from "./core/jobs/outcome.js";
/** Changes of a policy, by kind. */
export type { PolicyChanges } from "./core/sharing/policy.js";
/** Queue, task or tenant. */
export type { PolicyKind } from "./core/sharing/policy.js";
/** Defaults of jobs of a queue. */
export type { QueueDefaults } from "./scheduler/options.js";
/** Invisible characters of a URL, as text. */
export { unseenIn } from "./core/access/push-target.js";
/** Whether a task is Pawl's own. */
export { isOwnTask } from "./core/access/tenant.js";
/** The tenant of Pawl's own jobs. */
export { OWN_TENANT } from "./core/access/tenant.js";
/** Events that are recorded for other processes. */
export { RECORDED_EVENTS } from "./core/observe/cluster-event.js";
/** An event as other processes receive it. */
export type { RecordedEvent } from "./core/observe/cluster-event.js";
/** Whether a trace is recorded. */
export { isSampled } from "./core/observe/trace.js";
/** A W3C trace context. */
export type { TraceContext } from "./core/observe/trace.js";
/** The trace context of a request's headers. */
export { traceOfHeaders } from "./core/observe/trace.js";
/** Why `open` waits: no server yet, or a migration. */
export type { OpenWait } from "./store/postgres/options.js";
/** Certificates and keys as PEM. */
export type { CertificateTexts } from "./runtime/io/certificates.js";
/** Finds the faults of certificates. */
export { certificateFaults } from "./runtime/io/certificates.js";
/** Exit codes of a process whose handlers do not end. */
export { LOST_HANDLER_EXIT_CODES } from "./runtime/process/signals.js";
/** Starts a thread from a file beside the caller's. */
export { spawnThread } from "./runtime/io/thread.js";
/** The audit log. */
export type { Audit } from "./scheduler/access/audit.js";
/** Where a chain of the audit log was at a moment. */
export type { AnchoredHead } from "./scheduler/access/audit.js";
/** The result of verifying the audit log. */
export type { AuditReport } from "./scheduler/access/audit.js";
/** An audit entry as read. */
export type { AuditView } from "./scheduler/access/audit.js";
/** An audit entry to record. */
export type { NewAudit } from "./scheduler/access/audit.js";
/** The newest entry of a chain. */
export type { AuditHead } from "./store/port/access/audit.js";
/** Reads and forces breakers. */
export type { BreakersOperator } from "./scheduler/limits/breakers.js";
/** A breaker as read. */
export type { BreakerView } from "./scheduler/limits/breakers.js";
/** Which breakers a list is about. */
export type { BreakerFilter } from "./store/port/limits/breakers.js";
/** Jobs by state, of one tenant. */
export type { JobCounts } from "./scheduler/observe/counts.js";
/** Jobs by state. */
export type { StateCounts } from "./scheduler/observe/counts.js";
/** Waiting jobs: how many, how long, of which tenant. */
export type { Backlog } from "./scheduler/observe/backlog.js";
/** The keys that jobs are encrypted with. */
export type { Encryption } from "./scheduler/access/encryption.js";
/** Master keys, for `open({ encryption })`. */
export type { EncryptionOptions } from "./scheduler/access/encryption.js";
/** A master key by its name. */
export type { MasterKeyView } from "./scheduler/access/encryption.js";
/** Checks a filter that is used later. */
export { checkJobsFilter } from "./scheduler/jobs/filter.js";
/** Events of all processes on a store. */
export type { ClusterEvents } from "./scheduler/observe/event-tail.js";
/** Events that one process recorded together. */
export type { EventBatch } from "./scheduler/observe/event-tail.js";
/** A position in the recorded events. */
export type { EventPosition } from "./scheduler/observe/event-tail.js";
/** Follows the recorded events until stopped. */
export type { EventTail } from "./scheduler/observe/event-tail.js";
/** API keys, where they can be checked too. */
export type { LocalApiKeys } from "./scheduler/access/api-keys.js";
/** Creates, lists, rotates and revokes API keys. */
export type { ApiKeys } from "./scheduler/access/api-keys.js";
/** An API key as read, without its secret. */
export type { ApiKeyView } from "./scheduler/access/api-keys.js";
/** Name, tenant and grants of an API key to create. */
export type { ApiKeyOptions } from "./scheduler/access/api-keys.js";
/** An API key with its secret, shown once. */
export type { ApiKeyWithSecret } from "./scheduler/access/api-keys.js";
/** Pepper and environment of API keys, for `open({ apiKeys })`. */
export type { PepperOptions } from "./scheduler/access/api-keys.js";
/** Limit keys of a task whose path its schema does not know. */
export { unknownLimitPaths } from "./scheduler/limits/limits.js";
/** Reads limits on keys. */
export type { LimitsOperator } from "./scheduler/limits/limits-view.js";
/** Which limit keys a list is about. */
export type { LimitsFilter } from "./scheduler/limits/limits-view.js";
/** A limit key with waiting jobs, as read. */
export type { LimitView } from "./scheduler/limits/limits-view.js";
/** Options of `enqueueAll`. */
export type { EnqueueAllOptions } from "./scheduler/options.js";
/** The value of a limit key, as `limitKeys` takes it. */
export type { LimitKeyValue } from "./core/limits/limit-options.js";
/** Fewest bytes of a pepper. */
export { MIN_PEPPER_BYTES } from "./scheduler/access/pepper.js";
/** Answers kept for requests with an idempotency key. */
export type { Replies } from "./scheduler/jobs/replies.js";
/** A request with an idempotency key, and its hash. */
export type { IdempotentRequest } from "./scheduler/jobs/replies.js";
/** Whether to carry the request out, wait, or repeat its answer. */
export type { IdempotentRequestStart } from "./scheduler/jobs/replies.js";
/** A kept answer. */
export type { Reply } from "./store/port/access/replies.js";
/** A schedule of the code, as `schedule()` makes it. */
export type { CodeSchedule } from "./scheduler/schedules/schedule.js";
/** Options of a schedule's jobs. */
export type { ScheduledJobOptions } from "./scheduler/schedules/schedule.js";
/** A tick of a schedule as read. */
export type { TickView } from "./scheduler/schedules/schedule-view.js";
/** The result of a bulk operation. */
export type { BulkReport } from "./scheduler/scheduler.js";
/** Which dead jobs to group. */
export type { DeadGroupsFilter } from "./scheduler/scheduler.js";
/** Dead jobs of one cause, as read. */
export type { DeadGroupView } from "./scheduler/scheduler.js";
/** The store and its tasks. */
export type { PawlInfo } from "./scheduler/scheduler.js";
/** The number of a lease. */
export type { LeaseId } from "./core/jobs/id.js";
/** From which state to which a verb moved a job. */
export type { JobChange } from "./scheduler/scheduler.js";
/** Verbs and reads of jobs by id. */
export type { Jobs } from "./scheduler/scheduler.js";
/** Verbs and reads of dead jobs. */
export type { Dead } from "./scheduler/scheduler.js";
/** Pauses and changes queues, tasks or tenants. */
export type { PolicyOperator } from "./scheduler/scheduler.js";
/** Reads and verbs for the whole store. */
export type { Operator } from "./scheduler/scheduler.js";
/** A queue as read. */
export type { QueueView } from "./scheduler/scheduler.js";
/** A task as read. */
export type { TaskView } from "./scheduler/scheduler.js";
/** A tenant as read. */
export type { TenantView } from "./scheduler/scheduler.js";
/** The result of a backfill. */
export type { BackfillReport } from "./scheduler/schedules/schedules.js";
/** A tick to come. */
export type { PreviewedTick } from "./scheduler/schedules/schedules.js";
/** Changes of a schedule. */
export type { ScheduleChanges } from "./scheduler/schedules/schedules.js";
/** A schedule by name, or tenant and name. */
export type { ScheduleReference } from "./scheduler/schedules/schedules.js";
/** Verbs and reads of schedules. */
export type { Schedules } from "./scheduler/schedules/schedules.js";
/** The points of one queue or task, or of all. */
export type { GroupSeries } from "./scheduler/observe/series.js";
/** Which time series, of which time. */
export type { SeriesOptions } from "./scheduler/observe/series.js";
/** One point of a time series. */
export type { SeriesPointView } from "./scheduler/observe/series.js";
/** Time series as read. */
export type { SeriesView } from "./scheduler/observe/series.js";
/** Says whether jobs may be pushed to a URL. */
export type { CheckTarget } from "./scheduler/access/targets.js";
/** A push target, with its secret if it is new. */
export type { TargetWithSecret } from "./scheduler/access/targets.js";
/** The verbs of operations on many jobs. */
export { BULK_VERBS } from "./scheduler/scheduler.js";
/** A verb of operations on many jobs. */
export type { BulkVerb } from "./scheduler/scheduler.js";
/** How many jobs an operation on many changes, how fast, and why. */
export type { BulkOptions } from "./scheduler/scheduler.js";
/** The table of job options: what each does, holds, and is called elsewhere. */
export { OPTION_ROWS } from "./scheduler/enqueue/option-table.js";
/** The kind of value that an option of a job holds. */
export type { OptionKind } from "./scheduler/enqueue/option-table.js";
/** The name of an option of a job. */
export type { OptionName } from "./scheduler/enqueue/option-table.js";
/** One row of the table of job options. */
export type { OptionRow } from "./scheduler/enqueue/option-table.js";
/** The table of filters of jobs. */
export { FILTER_ROWS } from "./scheduler/jobs/filter-table.js";
/** The kind of value that a filter of jobs holds. */
export type { FilterKind } from "./scheduler/jobs/filter-table.js";
/** The name of a filter of jobs. */
export type { FilterName } from "./scheduler/jobs/filter-table.js";
/** Reads the time between two of many: a duration, or a rate such as "50/s". */
export { checkPace } from "./core/limits/token-bucket.js";
/** Reads an instant: a Date, ms since 1970, or an ISO 8601 text with an offset. */
export { checkInstant } from "./scheduler/check.js";
/** Checks the filter of an operation on many jobs. */
export { checkBulkFilter } from "./scheduler/jobs/bulk-change.js";
/** Checks the options of an operation on many jobs. */
export { checkBulkOptions } from "./scheduler/jobs/bulk-change.js";
/** A push target to put. */
export type { TargetOptions } from "./scheduler/access/targets.js";
/** A push target by task, or tenant and task. */
export type { TargetReference } from "./scheduler/access/targets.js";
/** Verbs and reads of push targets. */
export type { Targets } from "./scheduler/access/targets.js";
/** A push target as read. */
export type { TargetView } from "./scheduler/access/targets.js";
/** A task without code here: defaults and input schema. */
export type { TaskDefinition } from "./scheduler/jobs/tasks.js";
/** Verbs and reads of tasks. */
export type { Tasks } from "./scheduler/jobs/tasks.js";
/** One line of a tenant's export. */
export type { ExportEntry } from "./scheduler/access/tenant-export.js";
/** Options of a purge. */
export type { PurgeOptions } from "./scheduler/access/tenant-purge.js";
/** How far a purge is. */
export type { PurgeProgress } from "./scheduler/access/tenant-purge.js";
/** A purge that is not done. */
export type { PurgeView } from "./scheduler/access/tenant-purge.js";
/** Purges of tenants, requested by one process and carried out by another. */
export type { Purges } from "./scheduler/access/tenants.js";
/** Verbs and reads of tenants. */
export type { Tenants } from "./scheduler/access/tenants.js";
/** The span of an enqueue. */
export type { EnqueueSpan } from "./scheduler/observe/tracing.js";
/** An enqueue, as a tracer receives it. */
export type { TracedEnqueue } from "./scheduler/observe/tracing.js";
/** A tracer of enqueues and attempts. */
export type { Tracing } from "./scheduler/observe/tracing.js";
/** A lane with ready jobs, and its workers. */
export type { LiveLaneView } from "./scheduler/observe/lanes-and-workers.js";
/** A live worker of any process. */
export type { LiveWorkerView } from "./scheduler/observe/lanes-and-workers.js";
/** Lanes with ready jobs. */
export type { Lanes } from "./scheduler/observe/lanes-and-workers.js";
/** A choice among lanes with ready jobs. */
export type { LanesFilter } from "./scheduler/observe/lanes-and-workers.js";
/** The live workers of all processes. */
export type { LiveWorkers } from "./scheduler/observe/lanes-and-workers.js";
/** The workers of this process. */
export type { LocalWorkers } from "./worker/worker-group.js";
/** A log line of a job as read. */
export type { LogView } from "./scheduler/jobs/view.js";
/** The SQL script of the database roles. */
export { rolesScript } from "./store/postgres/connection/roles.js";
/** The same script, for psql. */
export { rolesScriptForPsql } from "./store/postgres/connection/roles.js";
/** Whether a text can be a master key. */
export { isMasterKey } from "./store/encrypted/master-keys.js";
/** A claim of a remote worker. */
export type { RemoteClaimRequest } from "./worker/remote/host.js";
/** A job of a remote worker's lease. */
export type { LeasedJob } from "./worker/remote/host.js";
/** A remote worker's lease. */
export type { RemoteLease } from "./worker/remote/host.js";
/** Claims and settles for a remote worker. */
export type { Host } from "./worker/remote/host.js";
/** A task of a remote worker. */
export type { HostedTask } from "./worker/remote/host.js";
/** The name and limits of a remote worker. */
export type { HostOptions } from "./worker/remote/host.js";
/** The answer to a renewal. */
export type { HostRenewal } from "./worker/remote/host.js";
/** Checks a reported outcome. */
export { checkAttemptOutcome } from "./worker/remote/reported-outcome.js";
/** Jobs a remote worker holds, by lane. */
export type { HeldJobs } from "./worker/remote/reported-outcome.js";
/** Failure kinds a remote worker may report. */
export { REPORTED_FAILURE_KINDS } from "./worker/remote/reported-outcome.js";
/** The outcome of one attempt, as reported. */
export type { AttemptOutcome } from "./worker/remote/reported-outcome.js";
/** An error thrown in a remote worker. */
export type { ReportedFailure } from "./worker/remote/reported-outcome.js";
/** A failure kind a remote worker may report. */
export type { ReportedFailureKind } from "./worker/remote/reported-outcome.js";
/** A log line or progress of a running attempt. */
export type { AttemptReport } from "./worker/remote/reported-outcome.js";
/** How an attempt ended, as a remote worker reports it. */
export type { ReportedOutcome } from "./worker/remote/reported-outcome.js";
/** How a remote worker runs a task. */
export type { TaskRunOptions } from "./worker/remote/reported-outcome.js";
/** Pull protocol: the answers to a settle. */
export type { PulledResults } from "./worker/remote/protocol.js";
/** Pull protocol: one outcome of a settle. */
export type { PulledOutcome } from "./worker/remote/protocol.js";
/** Pull protocol: one job. */
export type { PulledJob } from "./worker/remote/protocol.js";
/** Pull protocol: the answer to a claim. */
export type { PulledLease } from "./worker/remote/protocol.js";
/** Pull protocol: intents of held jobs. */
export type { PulledIntents } from "./worker/remote/protocol.js";
/** Pull protocol: a task record. */
export type { PulledRecord } from "./worker/remote/protocol.js";
/** Pull protocol: the answer to a renewal. */
export type { PulledRenewal } from "./worker/remote/protocol.js";
/** Delivers one job to its target. */
export type { Deliver } from "./worker/push/pusher.js";
/** One attempt at a job with a target. */
export type { Delivery } from "./worker/push/pusher.js";
/** Delivers jobs to registered targets. */
export type { Pusher } from "./worker/push/pusher.js";
/** The parts of an open Pawl for a service on top of it: API keys, audit log, events, pushes, pulls, purges and others. */
export { serviceOf } from "./service-of.js";
/** The answer of `serviceOf`. */
export type { PawlService } from "./service-of.js";
/** Says what `serviceOf` answers for a wrapper of a Pawl. */
export { attachService } from "./service-of.js";
/** The part of a list that a call asks for. */
export type { PageOptions } from "./scheduler/page.js";
/** A list: `await` gives one page, `for await` every item. */
export type { PagedList } from "./scheduler/page.js";
/** Reads all items of a list. */
export { allItems } from "./scheduler/page.js";
/** Gives the cursor of the page that begins after a job, in a list of jobs. */
export { jobsCursorAfter } from "./scheduler/jobs/pages.js";
/** Which API keys to list. */
export type { ApiKeysFilter } from "./scheduler/access/api-keys.js";
/** Which ticks of a schedule to preview. */
export type { PreviewOptions } from "./scheduler/schedules/schedules.js";
/** The version of this library. */
export { VERSION } from "./core/values/version.js";

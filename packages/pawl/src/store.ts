/** `pawl/store`: the port that every store implements, and the store in memory. */
// biome-ignore-all assist/source/organizeImports: grouped by hand

/** The port: both parts of a store, by noun. Requests and answers are the parameters and results of its verbs. */
export type { Store } from "./store/port/index.js";
/** The part of the port that every store implements: jobs, and all that is decided by them. */
export type { EngineStore } from "./store/port/index.js";
/** The part of the port that a store may leave out: keys, the audit log, kept replies, events. */
export type { ServiceStore } from "./store/port/index.js";
/** A noun of the port. API keys. */
export type { ApiKeyStore } from "./store/port/access/api-keys.js";
/** A noun of the port. The audit log. */
export type { AuditStore } from "./store/port/access/audit.js";
/** A noun of the port. Data keys of tenants. */
export type { DataKeyStore } from "./store/port/access/data-keys.js";
/** A noun of the port. Purges of tenants: what they delete. */
export type { TenantStore } from "./store/port/access/tenants.js";
/** A noun of the port. Purges that were requested. */
export type { PurgeStore } from "./store/port/access/purges.js";
/** A noun of the port. Answers kept for requests with an idempotency key. */
export type { ReplyStore } from "./store/port/access/replies.js";
/** A noun of the port. Jobs stored together, once per idempotency key. */
export type { BatchStore } from "./store/port/enqueue/batches.js";
/** A noun of the port. Breakers. */
export type { BreakerStore } from "./store/port/limits/breakers.js";
/** A noun of the port. Dead jobs, by filter and by cause. */
export type { DeadStore } from "./store/port/jobs/dead.js";
/** A noun of the port. Handing a new job to a worker that waits. */
export type { DirectHandoff } from "./store/port/claim/direct-handoff.js";
/** A noun of the port. Duties of maintenance. */
export type { DutyStore } from "./store/port/duties/duties.js";
/** A noun of the port. Rates of enqueues. */
export type { IngestStore } from "./store/port/enqueue/ingest.js";
/** A noun of the port. Jobs by id. */
export type { JobStore } from "./store/port/jobs/jobs.js";
/** A noun of the port. Lanes and pauses. */
export type { LaneStore } from "./store/port/claim/lanes.js";
/** A noun of the port. Leases: claim, renew, settle. */
export type { LeaseStore, Renewer } from "./store/port/settle/leases.js";
/** A noun of the port. Limits on keys. */
export type { LimitStore } from "./store/port/limits/limits.js";
/** A noun of the port. The state of the store itself, for the doctor. */
export type { CheckupStore } from "./store/port/observe/checkup.js";
/** A noun of the port. Events recorded for other processes. */
export type { EventStore } from "./store/port/observe/events.js";
/** A noun of the port. Facts for explanations. */
export type { ExplainStore } from "./store/port/observe/explain.js";
/** A noun of the port. Time series of counts. */
export type { SeriesStore } from "./store/port/observe/series.js";
/** A noun of the port. Policies of queues, tasks and tenants. */
export type { PolicyStore } from "./store/port/sharing/policies.js";
/** A noun of the port. Logs and progress of running jobs. */
export type { RecordStore } from "./store/port/settle/records.js";
/** A noun of the port. Schedules and their ticks. */
export type { ScheduleStore } from "./store/port/schedules/schedules.js";
/** A noun of the port. Push targets. */
export type { TargetStore } from "./store/port/jobs/targets.js";
/** A noun of the port. Published tasks. */
export type { TaskStore } from "./store/port/jobs/tasks.js";
/** A noun of the port. Live workers. */
export type { WorkerStore } from "./store/port/claim/workers.js";
/** The jobs that a call of the port may see, and the wakeups of those who wait. */
export type { Scope, Wakeup } from "./store/port/index.js";
/** The store in memory, which is also the specification. */
export { memoryStore } from "./store/memory/index.js";
/** Engine, version, schema and durability of a store. */
export type { StoreInfo } from "./store/port/index.js";
/** A finished job with its history, as `exportFinished` receives it and `jobs.restore` takes it. */
export type { ExportedJob } from "./store/port/duties/duties.js";

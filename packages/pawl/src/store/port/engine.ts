import type { WorkerRef } from "../../core/jobs/lease.js";
import type { TenantStore } from "./access/tenants.js";
import type { DirectHandoff } from "./claim/direct-handoff.js";
import type { LaneStore } from "./claim/lanes.js";
import type { WorkerStore } from "./claim/workers.js";
import type { DutyStore } from "./duties/duties.js";
import type { BatchStore } from "./enqueue/batches.js";
import type { IngestStore } from "./enqueue/ingest.js";
import type { DeadStore } from "./jobs/dead.js";
import type { JobStore } from "./jobs/jobs.js";
import type { TargetStore } from "./jobs/targets.js";
import type { TaskStore } from "./jobs/tasks.js";
import type { BreakerStore } from "./limits/breakers.js";
import type { LimitStore } from "./limits/limits.js";
import type { CheckupStore } from "./observe/checkup.js";
import type { ExplainStore } from "./observe/explain.js";
import type { SeriesStore } from "./observe/series.js";
import type { ScheduleStore } from "./schedules/schedules.js";
import type { LeaseStore, Renewer } from "./settle/leases.js";
import type { RecordStore } from "./settle/records.js";
import type { PolicyStore } from "./sharing/policies.js";
import type { StoreTransactions } from "./transactions.js";
import type { Wakeup } from "./wakeup.js";

/**
 * The engine: all that jobs need to be stored, claimed, settled and understood. Views and counts of jobs are here,
 * because they cannot live apart from the jobs.
 */
export interface EngineStore {
  readonly jobs: JobStore;
  readonly batches: BatchStore;
  readonly leases: LeaseStore;
  readonly lanes: LaneStore;
  readonly tasks: TaskStore;
  readonly limits: LimitStore;
  readonly policies: PolicyStore;
  readonly ingest: IngestStore;
  readonly explain: ExplainStore;
  readonly workers: WorkerStore;
  readonly breakers: BreakerStore;
  readonly dead: DeadStore;
  readonly checkup: CheckupStore;
  readonly schedules: ScheduleStore;
  readonly duties: DutyStore;
  readonly records: RecordStore;
  readonly series: SeriesStore;
  readonly targets: TargetStore;
  readonly tenants: TenantStore;
  readonly engine: StoreInfo;
  /** Tells of wakeups, given here or elsewhere. A wakeup may be lost, late or doubled. */
  onWakeup(listener: (wakeup: Wakeup) => void): () => void;
  /** Gives a wakeup, here and to whoever listens elsewhere. */
  sendWakeup(wakeup: Wakeup): void;
  /** Whether wakeups from other processes are known to arrive; while they are not, everyone polls more often. */
  receivesWakeups(): boolean;
  /** A renewer better than a timer in the worker's own event loop, where the store has one. ms */
  renewer?(worker: WorkerRef, options: { readonly duration: number; readonly every: number }): Renewer;
  /** absent: a job cannot be enqueued or settled in a transaction of the user's */
  readonly transactions?: StoreTransactions;
  /** where idle workers wait, if it has such a place */
  readonly handoff?: DirectHandoff;
  close(): Promise<void>;
}

export interface StoreInfo {
  /** a name for people; what follows from it is in the capabilities */
  readonly engine: string;
  /** where the data is, without secrets */
  readonly place: string;
  readonly version: string;
  /** of an embedded server: where an application in development can keep its own tables and enqueue in its own transactions */
  readonly url?: string;
  /** an acknowledged enqueue survives the end of the process, or a loss of power, or neither */
  readonly durability: "none" | "process" | "power loss";
  readonly schema: number;
  readonly capabilities: StoreCapabilities;
}

/** Abilities that not every engine has. */
export interface StoreCapabilities {
  /** jobs can be enqueued and settled in transactions of the user's */
  readonly transactions: boolean;
  /** a job can go to an idle worker with its enqueue */
  readonly handoff: boolean;
  /** several processes can work on it */
  readonly shared: boolean;
}

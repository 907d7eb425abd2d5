import type { JobId } from "../../core/jobs/id.js";
import type { Lane } from "../../core/jobs/lane.js";
import type { WorkerRef } from "../../core/jobs/lease.js";
import type { ApiKeyStore } from "./access/api-keys.js";
import type { AuditStore } from "./access/audit.js";
import type { DataKeyStore } from "./access/data-keys.js";
import type { PurgeStore } from "./access/purges.js";
import type { ReplyStore } from "./access/replies.js";
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
import type { EventStore } from "./observe/events.js";
import type { ExplainStore } from "./observe/explain.js";
import type { SeriesStore } from "./observe/series.js";
import type { ScheduleStore } from "./schedules/schedules.js";
import type { LeaseStore, Renewer } from "./settle/leases.js";
import type { RecordStore } from "./settle/records.js";
import type { PolicyStore } from "./sharing/policies.js";

export type { Transaction } from "../../core/jobs/transaction.js";

/**
 * The store port, by noun. Rules that hold for every verb:
 * - it is one atomic step, in batches, and time is decided inside by the store's clock;
 * - expected results are values: a lost lease, a taken key, a missing job are never exceptions;
 * - it survives an answer that was lost: repeating it changes nothing more and answers the same;
 * - nothing of the store's own (connections, bounds, tables) shows through.
 *
 * The memory store is the specification; `packages/pawl/conformance/` is the same thing as tests.
 */
export interface Store {
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
  readonly events: EventStore;
  readonly targets: TargetStore;
  readonly apiKeys: ApiKeyStore;
  readonly audit: AuditStore;
  readonly replies: ReplyStore;
  readonly dataKeys: DataKeyStore;
  readonly purges: PurgeStore;
  readonly engine: StoreInfo;
  /** What happens here or elsewhere that someone may be waiting for. A wakeup may be lost, late or doubled. */
  onWakeup(listener: (wakeup: Wakeup) => void): () => void;
  /** Gives a wakeup, here and to whoever listens elsewhere. */
  sendWakeup(wakeup: Wakeup): void;
  /** Whether wakeups from other processes are known to arrive; while they are not, everyone polls more often. */
  receivesWakeups(): boolean;
  /** A renewer better than a timer in the worker's own event loop, where the store has one. ms */
  renewer?(worker: WorkerRef, options: { readonly duration: number; readonly every: number }): Renewer;
  /** where idle workers wait, if it has such a place */
  readonly handoff?: DirectHandoff;
  close(): Promise<void>;
}

export interface StoreInfo {
  readonly engine: "memory" | "postgres" | "embedded" | "pglite";
  /** where the data is, without secrets */
  readonly place: string;
  readonly version: string;
  /** of an embedded server: where an application in development can keep its own tables and enqueue in its own transactions */
  readonly url?: string;
  /** what an acknowledged enqueue survives */
  readonly durability: "none" | "process" | "power loss";
  readonly schema: number;
}

/** Whose jobs a call may see and change. */
export type Scope = { readonly tenant: string } | "everyone";

export type Wakeup =
  /** `admittedSection`: jobs that waited at a limit key are in the admitted section of these lanes */
  | { readonly kind: "ready"; readonly lanes: readonly Lane[]; readonly admittedSection?: true }
  /** ms from now */
  | { readonly kind: "scheduled"; readonly dueIn: number }
  /** a schedule is to be looked at; ms from now */
  | { readonly kind: "tick"; readonly dueIn: number }
  /** a limit key is to be looked at; ms from now */
  | { readonly kind: "admit"; readonly dueIn: number }
  | { readonly kind: "intent" }
  | { readonly kind: "finished"; readonly jobs: readonly JobId[] }
  | { readonly kind: "lanes" }
  /** work may have come: look for it */
  | { readonly kind: "look" }
  /** somebody begins to watch, or goes on watching, what happens */
  | { readonly kind: "watch" }
  /** there is more to read of what happened */
  | { readonly kind: "events" };

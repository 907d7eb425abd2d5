import type { JobId } from "../core/id.js";
import type { Lane } from "../core/lane.js";
import type { WorkerRef } from "../core/lease.js";
import type { AuditStore } from "./port-audit.js";
import type { BatchStore } from "./port-batches.js";
import type { BreakerStore } from "./port-breakers.js";
import type { CheckupStore } from "./port-checkup.js";
import type { DataKeyStore } from "./port-data-keys.js";
import type { DeadStore } from "./port-dead.js";
import type { DutyStore } from "./port-duties.js";
import type { EventStore } from "./port-events.js";
import type { ExplainStore } from "./port-explain.js";
import type { IngestStore } from "./port-ingest.js";
import type { JobStore } from "./port-jobs.js";
import type { ApiKeyStore } from "./port-keys.js";
import type { LaneStore } from "./port-lanes.js";
import type { LeaseStore, Renewer } from "./port-leases.js";
import type { LimitStore } from "./port-limits.js";
import type { PolicyStore } from "./port-policies.js";
import type { PurgeStore } from "./port-purges.js";
import type { RecordStore } from "./port-records.js";
import type { ReplyStore } from "./port-replies.js";
import type { ScheduleStore } from "./port-schedules.js";
import type { Seats } from "./port-seats.js";
import type { SeriesStore } from "./port-series.js";
import type { TargetStore } from "./port-targets.js";
import type { TaskStore } from "./port-tasks.js";
import type { WorkerStore } from "./port-workers.js";

/**
 * The store port, by noun. Rules that hold for every verb:
 * - it is one atomic step, in batches, and time is decided inside by the store's clock;
 * - expected results are values: a lost lease, a taken key, a missing job are never exceptions;
 * - it survives an answer that was lost: repeating it changes nothing more and answers the same;
 * - nothing of the store's own (connections, bounds, tables) shows through.
 *
 * The memory store is the specification; `conformance/` is the same thing as tests.
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
  /** What happens here or elsewhere that someone may be waiting for. A hint may be lost, late or doubled. */
  onHint(listener: (hint: Hint) => void): () => void;
  /** Gives a hint, here and to whoever listens elsewhere. */
  hint(hint: Hint): void;
  /** Whether hints from other processes are known to arrive; while they are not, everyone polls more often. */
  hearsOthers(): boolean;
  /** A renewer better than a timer in the worker's own event loop, where the store has one. ms */
  renewer?(worker: WorkerRef, options: { readonly duration: number; readonly every: number }): Renewer;
  /** where workers with empty hands wait, if it has such a place */
  readonly seats?: Seats;
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

/** A transaction of the caller's own, as the store's driver needs it; anything with a query function. */
export interface ForeignTransaction {
  query(text: string, values: readonly unknown[]): Promise<{ readonly rows: readonly Record<string, unknown>[] }>;
}

export type Hint =
  /** `front`: jobs that waited at a gate are at the front of these lanes */
  | { readonly kind: "ready"; readonly lanes: readonly Lane[]; readonly front?: true }
  /** ms from now */
  | { readonly kind: "scheduled"; readonly dueIn: number }
  /** a schedule is to be looked at; ms from now */
  | { readonly kind: "tick"; readonly dueIn: number }
  /** a gate is to be looked at; ms from now */
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

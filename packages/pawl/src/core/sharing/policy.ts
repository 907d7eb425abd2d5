import type { Priority } from "../jobs/job.js";
import type { Lane } from "../jobs/lane.js";
import type { Ingest, IngestOptions } from "../limits/ingest-limit.js";
import type { Rate, RateOptions } from "../limits/token-bucket.js";
import type { Duration } from "../values/duration.js";

/** What a policy can be about. */
export type PolicyKind = "queue" | "task" | "tenant";

export interface PolicyRef {
  readonly kind: PolicyKind;
  readonly name: string;
}

/** Jobs running at a time, and jobs started per time, of everything under one name, over all workers. */
export interface Limits {
  readonly concurrency?: number;
  readonly rate?: Rate;
}

export interface TenantPolicy extends Limits {
  /** its share beside other tenants of the same priority; 1 unless set */
  readonly weight?: number;
  readonly ingest?: Ingest;
}

/** How the priorities of one queue share. */
export interface PriorityRules {
  /** by priority; those not named have the default */
  readonly priorityWeights?: Readonly<Partial<Record<Priority, number>>>;
  /** parts of 1 that a priority with work gets at least */
  readonly priorityMinimum?: Readonly<Partial<Record<Priority, number>>>;
  /** a priority gets what the priorities above it leave */
  readonly strictPriority?: true;
  /** ms that the head of a lane waits at most behind other lanes */
  readonly aging?: number;
}
export interface QueuePolicy extends Limits, PriorityRules {
  readonly ingest?: Ingest;
}

export type TaskPolicy = Limits;

export interface Policies {
  readonly queue: QueuePolicy;
  readonly task: TaskPolicy;
  readonly tenant: TenantPolicy;
}

export type Policy = Policies[PolicyKind];

/** A policy as stored. The version grows with every change of it. */
export interface PolicyRecord<K extends PolicyKind = PolicyKind> extends PolicyRef {
  readonly kind: K;
  readonly policy: Policies[K];
  readonly version: number;
}

/** Options as people give them: what is left out stays as it is, null takes it away. */
type Changes<T> = { readonly [K in keyof T]?: T[K] | null };

interface LimitOptions {
  /** jobs running at a time, over all workers */
  readonly concurrency?: number;
  /** jobs started per time, over all workers */
  readonly rate?: string | RateOptions;
}
interface IngestChanges {
  /** jobs that may come in per time, and that may wait; beyond it an enqueue is `ingest_limited` */
  readonly ingest?: IngestOptions;
}
export type TenantChanges = Changes<LimitOptions & IngestChanges & { readonly weight?: number }>;
export type QueueChanges = Changes<
  LimitOptions &
    IngestChanges & {
      readonly priorityWeights?: PriorityRules["priorityWeights"];
      readonly priorityMinimum?: PriorityRules["priorityMinimum"];
      readonly strictPriority?: boolean;
      readonly aging?: Duration;
    }
>;
export type TaskChanges = Changes<LimitOptions>;

export interface PolicyChanges {
  readonly queue: QueueChanges;
  readonly task: TaskChanges;
  readonly tenant: TenantChanges;
}

export function policyKey({ kind, name }: PolicyRef): string {
  return `${kind}\u0001${name}`;
}

export function isLimited({ concurrency, rate }: Limits): boolean {
  return concurrency !== undefined || rate !== undefined;
}

/** What a lane is under, in the order limits are locked in. */
export function refsOf(lane: Lane): readonly [PolicyRef, PolicyRef, PolicyRef] {
  return [
    { kind: "queue", name: lane.queue },
    { kind: "task", name: lane.task },
    { kind: "tenant", name: lane.tenant },
  ];
}

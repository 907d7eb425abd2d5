import type { JobId } from "../../../core/jobs/id.js";
import type { JobRecord, ParkReason, Priority } from "../../../core/jobs/job.js";
import type { Lane } from "../../../core/jobs/lane.js";
import type { LimitState } from "../../../core/limits/lane-limit.js";
import type { StartRate } from "../../../core/limits/start-rate.js";
import type { Parent, SlotHolder } from "../../../core/observe/explain.js";
import type { Scope } from "../index.js";

/** What the store sees of why a job waits. Each look costs the same, however much waits: counts end at a bound. */
export interface JobLook {
  readonly now: number;
  readonly job: JobRecord;
  /** of a running one: who has it, since when, and until when its lease lasts */
  readonly holder?: { readonly worker: string; readonly since: number; readonly until: number };
  /** of a blocked one: the first of those it waits for */
  readonly parents: readonly Parent[];
  /** of one that is parked at a key: the first of those that hold it, by id */
  readonly slotHolders: readonly SlotHolder[];
  readonly suspect: boolean;
  /** ready jobs of its lane before it, or all of them while it is not ready itself; `more`: and others, not counted */
  readonly ahead: number;
  readonly more: boolean;
  /** other lanes of its queue and task with ready jobs, as far as they were looked for */
  readonly rivals: readonly Lane[];
  /** of its queue and task */
  readonly startRate?: StartRate;
  /** limits on its queue, task and tenant as they stand */
  readonly limits: readonly LimitState[];
}

/** How long the first in line of a lane has waited. */
export interface LongestWait {
  readonly queue: string;
  readonly priority: Priority;
  /** ms since the one that has waited longest was due */
  readonly longest: number;
}

/** Answers for people who ask; nothing is decided by them. */
export interface ExplainStore {
  look(scope: Scope, id: JobId): Promise<JobLook | undefined>;
  /** The longest wait of each queue and priority with ready jobs, by queue and priority, as far as up to so many lanes tell. */
  waits(lanes: number): Promise<readonly LongestWait[]>;
  /** How many are parked for what, of up to `MAX_COUNTED` of them. */
  parked(): Promise<readonly { readonly reason: ParkReason; readonly count: number }[]>;
  /** Jobs of these tenants that are ready or parked at a limit key, as ingest limits count them; exact up to `MAX_COUNTED`. */
  depths(tenants: readonly string[]): Promise<readonly { readonly tenant: string; readonly depth: number }[]>;
}

/** Where counting ends. */
export const MAX_AHEAD = 10_000;
export const MAX_COUNTED = 10_000;
export const MAX_PARENTS = 20;
export const MAX_HOLDERS = 5;
export const MAX_RIVALS = 200;

import type { JobId, LeaseId } from "../../core/jobs/id.js";
import type { JobOptions, Priority } from "../../core/jobs/job.js";
import type { Settled } from "../../store/port/settle/leases.js";
import type { AttemptOutcome, ReportedOutcome, TaskRunOptions } from "./reported-outcome.js";

/** The pull protocol as it is spoken: docs/protocol.md in types. Service and client have them from here, so that they mean the same. */

/** What a claim is answered with. */
export interface PulledLease {
  readonly lease: LeaseId;
  /** ms after the request arrived at which it began; less than nothing, if it was waiting */
  readonly beganAfter: number;
  /** the store's clock, ISO 8601 */
  readonly now: string;
  /** ms within which it must be renewed */
  readonly duration: number;
  readonly suspect: boolean;
  readonly jobs: readonly PulledJob[];
}

export interface PulledJob {
  readonly id: JobId;
  readonly task: string;
  readonly queue: string;
  readonly priority: Priority;
  readonly tenant: string;
  readonly attempt: number;
  readonly input: unknown;
  readonly undecryptable?: true;
  /** ms after which its handler should be stopped */
  readonly timeout: number;
  /** ISO 8601 */
  readonly dueAt: string;
  readonly crashes: number;
  readonly options?: JobOptions;
}

/** One outcome of a settle, flat. */
export type PulledOutcome = Omit<AttemptOutcome, "reportedOutcome" | "taskOptions"> & TaskRunOptions & ReportedOutcome;

/** What is kept of a renewal, and what somebody asked meanwhile. */
export interface PulledRenewal extends PulledIntents {
  readonly held: readonly LeaseId[];
  readonly lost: readonly LeaseId[];
}
export interface PulledIntents {
  readonly cancel: readonly JobId[];
}
export interface PulledResults {
  /** `refused`: what was told of it is malformed, and nothing was changed */
  readonly results: readonly (Settled | "refused")[];
}
export interface PulledRecord {
  readonly found: boolean;
  readonly value?: unknown;
}

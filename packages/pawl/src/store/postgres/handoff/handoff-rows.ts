import type { JobId, LeaseId } from "../../../core/jobs/id.js";
import type { Lane } from "../../../core/jobs/lane.js";

export interface RegisteredRow {
  readonly id: string | null;
  /** of the lease that will come of it */
  readonly number: string | null;
  readonly lease: LeaseId | null;
  readonly now: number;
}

export interface HandoffRow extends Lane {
  readonly job: JobId;
  readonly home: number;
  readonly now: number;
  readonly intent: "cancel" | "pause" | null;
}

/** How a message begins. */
export interface HandoffMessage {
  /** of a message: the idle worker it was handed to */
  readonly registration?: string;
  readonly worker: number;
  readonly lease: LeaseId;
  readonly now: number;
  readonly job: JobId;
  /** the job's number, which never changes */
  readonly home: number;
  readonly lane: Lane;
}

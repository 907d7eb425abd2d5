import type { IdSuffix, IdSuffixSource } from "../../../core/jobs/id.js";
import type { Enqueued, JobRequest } from "../../../core/jobs/job.js";
import type { Definition, FiredTick, ScheduleRecord, ScheduleRef, TickGap } from "../../../core/schedules/schedule.js";
import type { PutAnswer } from "../../../core/schedules/schedule-change.js";
import type { Scope } from "../index.js";

export interface ScheduleStore {
  /**
   * Makes and changes schedules, all of them or none. One that is there with the same definition stays as it is, its
   * pause and its next tick included; one that is changed begins anew from now. With `app` they are the code of that
   * application: schedules it had and has no more are marked as missing, and go on ticking. Whose word holds where code and
   * people differ is `afterPut`'s to say.
   */
  put(
    entries: readonly SchedulePut[],
    app?: string,
  ): Promise<{ readonly answers: readonly SchedulePutAnswer[]; readonly missing: readonly ScheduleRef[] }>;
  get(ref: ScheduleRef): Promise<ScheduleRecord | undefined>;
  /** by tenant and name; `after` is where the last page ended */
  list(scope: Scope, filter: ScheduleFilter, page: { readonly limit: number; readonly after?: ScheduleRef }): Promise<SchedulePage>;
  /** Whether there is such a schedule. Its next tick stays where it is: what passes meanwhile is missed. */
  pause(ref: ScheduleRef): Promise<boolean>;
  resume(ref: ScheduleRef): Promise<boolean>;
  /** Gone with the record of its ticks; its jobs stay. */
  delete(ref: ScheduleRef): Promise<boolean>;
  /** One more job, now, whatever else it does; undefined if there is no such schedule. */
  trigger(
    ref: ScheduleRef,
    how: { readonly idSuffix: IdSuffix; readonly input?: string; readonly idempotencyKey?: JobRequest },
  ): Promise<Enqueued | undefined>;
  /** Jobs for ticks of the past, but for those that have one. Answers how many were made. */
  backfill(ref: ScheduleRef, how: BackfillRequest): Promise<number | undefined>;
  /** Newest first: ticks with a job, and those without. `before` is an instant. */
  ticks(ref: ScheduleRef, page: { readonly limit: number; readonly before?: number }): Promise<readonly TickEntry[]>;
  /** Which of these ticks have a job. */
  fired(ref: ScheduleRef, ticks: readonly number[]): Promise<readonly number[]>;
}

export interface BackfillRequest {
  readonly ticks: readonly number[];
  /** ms until the first of the jobs, and between two of them */
  readonly after: number;
  readonly pace: number;
  readonly idSuffix: IdSuffixSource;
}

export interface SchedulePut extends ScheduleRef {
  readonly definition: Definition;
}
export type SchedulePutAnswer = PutAnswer;
export interface ScheduleFilter {
  readonly undeclared?: boolean;
  readonly paused?: boolean;
}
export interface SchedulePage {
  readonly schedules: readonly ScheduleRecord[];
  readonly next?: ScheduleRef;
}
export type TickEntry = FiredTick | TickGap;

export interface TickReport {
  /** how many schedules were looked at */
  readonly schedules: number;
  readonly jobs: number;
  /** ms that the latest of them was late */
  readonly latest: number;
  /** ms until the next one */
  readonly nextIn?: number;
  /** why some could not be planned; they are tried again later */
  readonly failures?: readonly unknown[];
}

import type { JobState } from "../jobs/job.js";

/** What happens to jobs, as it is counted minute by minute. */
export const ACTIVITIES = ["enqueued", "started", "succeeded", "retried", "died", "cancelled"] as const;
export type Activity = (typeof ACTIVITIES)[number];
export type ActivityCounts = Readonly<Record<Activity, number>>;

/** States whose jobs are counted at the end of each step: those in which a job waits, runs, or stays until somebody looks. */
export const COUNTED_STATES = ["blocked", "scheduled", "ready", "parked", "running", "dead"] as const satisfies readonly JobState[];
export type CountedState = (typeof COUNTED_STATES)[number];
export type CountsByState = Readonly<Record<CountedState, number>>;

export const MINUTE_MS = 60_000;

/** What a move from one state to another counts as; from undefined: the job is new. */
export function activitiesOf(from: JobState | undefined, to: JobState): readonly Activity[] {
  const made: readonly Activity[] = from === undefined ? ["enqueued"] : [];
  if (to === "running") return [...made, "started"];
  if (to === "succeeded" || to === "cancelled") return [...made, to];
  if (to === "dead") return [...made, "died"];
  return from === "running" && to === "scheduled" ? ["retried"] : made;
}

/** What one step adds up to. Steps are numbered from 1970 on, by their own length. */
export interface StepSum {
  readonly step: number;
  readonly activities: ActivityCounts;
  /** by how much each state has more jobs after it than before */
  readonly changes: CountsByState;
}

export interface SeriesPoint extends ActivityCounts {
  /** how many jobs were in each state at the end of the step; of one that is not over, how many are now */
  readonly states: CountsByState;
}

/**
 * One point for every step from `first` to `last`. What stood then is told backwards from what stands now, by the changes
 * since: so it is right however long nothing happened, and sums over queues and tasks are right too. `sums` may hold steps
 * after the last, for that reason alone.
 */
export function pointsOf(first: number, last: number, sums: readonly StepSum[], now: CountsByState): readonly SeriesPoint[] {
  const byStep = new Map(sums.map((sum) => [sum.step, sum]));
  const counts: Record<CountedState, number> = { ...now };
  const undo = (sum: StepSum | undefined) => {
    if (sum !== undefined) for (const state of COUNTED_STATES) counts[state] -= sum.changes[state];
  };
  for (const sum of sums) if (sum.step > last) undo(sum);
  const points: SeriesPoint[] = [];
  for (let step = last; step >= first; step--) {
    const sum = byStep.get(step);
    points.push({ ...(sum?.activities ?? NO_ACTIVITIES), states: { ...counts } });
    undo(sum);
  }
  return points.reverse();
}

export const NO_ACTIVITIES: ActivityCounts = { enqueued: 0, started: 0, succeeded: 0, retried: 0, died: 0, cancelled: 0 };
export const NO_JOBS: CountsByState = { blocked: 0, scheduled: 0, ready: 0, parked: 0, running: 0, dead: 0 };

import { JOB_STATES, type JobState, type LogLine } from "../../../core/jobs/job.js";
import { OUTCOMES, type OutcomeKind } from "../../../core/jobs/outcome.js";

/** The small numbers stored for states, outcomes and levels. Only ever appended to. */
const STATE_CODES: Readonly<Record<JobState, number>> = {
  blocked: 0,
  scheduled: 1,
  ready: 2,
  parked: 3,
  running: 4,
  succeeded: 5,
  dead: 6,
  cancelled: 7,
};

export function stateCode(state: JobState): number {
  return STATE_CODES[state];
}
export function stateOf(code: number): JobState {
  return JOB_STATES[code] as JobState;
}

/** `redriven` is a mark by a person, not an outcome of an attempt. */
const OUTCOME_CODES: Readonly<Record<OutcomeKind | "redriven", number>> = {
  succeeded: 0,
  failed: 1,
  snoozed: 2,
  released: 3,
  cancelled: 4,
  crashed: 5,
  redriven: 6,
};
export function outcomeCode(outcome: OutcomeKind | "redriven"): number {
  return OUTCOME_CODES[outcome];
}
export function outcomeOf(code: number): OutcomeKind | "redriven" {
  return OUTCOMES[code] ?? "redriven";
}

const LEVELS = ["debug", "info", "warn", "error", "progress"] as const;
export function levelCode(level: LogLine["level"] | "progress"): number {
  return LEVELS.indexOf(level);
}
export function levelOf(code: number): (typeof LEVELS)[number] {
  return LEVELS[code] ?? "info";
}

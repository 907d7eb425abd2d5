import { JOB_STATES } from "../../../core/jobs/job.js";
import { OUTCOMES, SUSPECT_FROM } from "../../../core/jobs/outcome.js";
import { SERIAL_HOLDER_RANK } from "../../../core/limits/limit-rule.js";
import { outcomeCode, stateCode } from "./codes.js";

/** The step of `pawl.ready_seq`: the places of a row's jobs lie between its number and the next. */
export const SEQ_STEP = 1024;

/**
 * Numbers of the admitted section of a lane, where jobs are that waited at a limit key, begin here and stay below zero; those of all others
 * are above it. Both are drawn from one sequence, so that one safe sequence serves both.
 */
export const ADMITTED_SECTION_START = -(2 ** 52);

/** How far the numbers of jobs in one row of history may be apart: a job's row is at most so far below its own number. */
export const MAX_HOME_DISTANCE = 65_536;

/** Between the inputs, or the options, of a row's jobs, and between records of an answer: JSON cannot hold this character anywhere. */
export const RECORD_SEPARATOR = "\u001e";
/** Between the fields of a record. */
export const FIELD_SEPARATOR = "\u001f";

/** Stands in the template of an id where its time goes. */
export const TIME_PLACEHOLDER = "@";

/** Numbers in `history.outcomes` for each attempt that was not a first one that succeeded: its index in the row, outcome, next state, attempts, crashes. */
export const NUMBERS_PER_OUTCOME = 5;

/** The constants that statements write as `{{name}}`, each with its text in SQL. */
export const SQL_CONSTANTS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(JOB_STATES.map((state) => [`state.${state}`, String(stateCode(state))])),
  ...Object.fromEntries([...OUTCOMES, "redriven" as const].map((outcome) => [`outcome.${outcome}`, String(outcomeCode(outcome))])),
  seq_step: String(SEQ_STEP),
  admitted_section_start: String(ADMITTED_SECTION_START),
  max_home_distance: String(MAX_HOME_DISTANCE),
  record_separator: quoted(RECORD_SEPARATOR),
  field_separator: quoted(FIELD_SEPARATOR),
  time_placeholder: `'${TIME_PLACEHOLDER}'`,
  numbers_per_outcome: String(NUMBERS_PER_OUTCOME),
  suspect_from: String(SUSPECT_FROM),
  serial_holder_rank: String(SERIAL_HOLDER_RANK),
};

/** A control character as an escape. */
function quoted(character: string): string {
  return `E'\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}'`;
}

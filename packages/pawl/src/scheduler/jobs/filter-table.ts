import { isFingerprint } from "../../core/jobs/fingerprint.js";
import { JOB_STATES } from "../../core/jobs/job.js";
import { checkName } from "../../core/values/name.js";
import { checkOneOf, checkText, invalid, show } from "../../core/values/option.js";
import { checkInstant } from "../check.js";
import type { JobFilter } from "../scheduler.js";

/** The kind of value that a filter of jobs holds: one JSON Schema in a query, and one way to be written on a command line. */
export type FilterKind = "state" | "queue" | "task" | "tenant" | "label" | "key" | "failure" | "fingerprint" | "instant";

/** All that is known of one filter of jobs. The reader, contract, command line and docs are made of it. */
export interface FilterRow {
  readonly kind: FilterKind;
  /** the jobs that it finds: text for docs, API reference and help of the flag */
  readonly finds: string;
  /** the flag of lists and verbs on many, with its value */
  readonly flag: string;
  /** the value in the form that stores compare; throws where it is wrong */
  readonly check: (option: string, value: unknown) => unknown;
}

/** A missing row does not compile. The order is that of docs and help. */
export const FILTER_TABLE = {
  state: { kind: "state", finds: "in this state", flag: "--state <state>", check: (option, value) => checkOneOf(option, value, JOB_STATES) },
  queue: { kind: "queue", finds: "of this queue", flag: "--queue <queue>", check: (option, value) => checkName("queue", value, option) },
  task: { kind: "task", finds: "of this task", flag: "--task <task>", check: (option, value) => checkName("task", value, option) },
  tenant: { kind: "tenant", finds: "of this tenant", flag: "--tenant <tenant>", check: (option, value) => checkName("tenant", value, option) },
  tag: { kind: "label", finds: "with this tag", flag: "--tag <tag>", check: (option, value) => checkName("tag", value, option) },
  uniqueKey: { kind: "key", finds: "with this unique key", flag: "--unique <key>", check: (option, value) => checkName("key", value, option) },
  failure: {
    kind: "failure",
    finds: "that died of this kind of failure, or of an error of this class",
    flag: "--failure <class>",
    check: checkFailure,
  },
  fingerprint: {
    kind: "fingerprint",
    finds: "that died of this, as dead groups tell it",
    flag: "--fingerprint <fingerprint>",
    check: checkFingerprint,
  },
  since: {
    kind: "instant",
    finds: "due then or later: an instant with an offset, on a command line also a time ago (1h)",
    flag: "--since <time>",
    check: checkInstant,
  },
  until: { kind: "instant", finds: "due before then", flag: "--until <time>", check: checkInstant },
} as const satisfies { readonly [Name in keyof Required<JobFilter>]: FilterRow };

export type FilterName = keyof typeof FILTER_TABLE;

/** Rows in order, with their names. */
export const FILTER_ROWS = Object.entries(FILTER_TABLE) as unknown as readonly (readonly [name: FilterName, row: FilterRow])[];

/** A kind, or the class of what was thrown: no name of ours, so no rule for names. */
function checkFailure(option: string, value: unknown): string {
  if (typeof value === "string" && value !== "" && value.length <= 200) return checkText(option, value);
  throw invalid(option, `${show(value)} is no kind or class of failures`);
}

function checkFingerprint(option: string, value: unknown): string {
  if (isFingerprint(value)) return value;
  throw invalid(option, `${show(value)} is not the 16 hex digits that pawl.dead.groups() tells`);
}

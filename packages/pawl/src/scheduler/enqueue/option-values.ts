import { isJobId, type JobId } from "../../core/jobs/id.js";
import type { JobOptions, NewJob, Priority } from "../../core/jobs/job.js";
import { checkUniqueRule } from "../../core/jobs/task-unique.js";
import type { Transaction } from "../../core/jobs/transaction.js";
import type { UniqueRule } from "../../core/jobs/unique-key.js";
import type { LimitKeyValue } from "../../core/limits/limit-options.js";
import { BOUNDS } from "../../core/values/bounds.js";
import { checkName } from "../../core/values/name.js";
import { checkKeys, checkObject, checkPeriod, invalid, show } from "../check.js";
import type { EnqueueOptions } from "../options.js";

/** Parts of a new job that most jobs lack. */
export interface JobExtras extends Omit<NewJob, "idSuffix" | "lane" | "input" | "options" | "idempotencyKey"> {
  /** its digest is made when the input is known */
  readonly idempotencyKey?: string;
}

/** The caller's options, checked, in stored form. */
export interface JobDraft {
  queue?: string;
  priority?: Priority;
  tenant?: string;
  tx?: Transaction;
  limitKeys?: Readonly<Record<string, LimitKeyValue>>;
  readonly options: { -readonly [K in keyof JobOptions]: JobOptions[K] };
  readonly extras: { -readonly [K in keyof JobExtras]: JobExtras[K] };
}

export function setUnique(draft: JobDraft, unique: UniqueRule): void {
  draft.extras.unique = unique;
  draft.options.uniqueKey = unique.key;
}

const DEBOUNCE_KEYS = new Set(["key", "wait", "maxWait"]);

export function checkDebounce(value: unknown): UniqueRule & Required<Pick<UniqueRule, "debounce">> {
  const fields = checkObject("debounce", value) as { key?: unknown; wait?: unknown; maxWait?: unknown };
  checkKeys(fields, DEBOUNCE_KEYS, "debounce.");
  const wait = checkPeriod("debounce.wait", fields.wait);
  const longest = fields.maxWait === undefined ? undefined : checkPeriod("debounce.maxWait", fields.maxWait);
  if (longest !== undefined && longest < wait) throw invalid("debounce.maxWait", "it is shorter than debounce.wait");
  const debounce = { wait, ...(longest === undefined ? {} : { longest }) };
  return { key: checkName("key", fields.key), hold: "unstarted", onConflict: "replace", debounce };
}

const UNIQUE_KEYS = new Set(["key", "for", "onConflict"]);

export function checkUnique(value: unknown): UniqueRule {
  if (typeof value === "string") return { key: checkName("key", value), hold: "unfinished", onConflict: "existing" };
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw invalid("unique", `${show(value)} is neither a key nor an object`);
  const fields = value as { key?: unknown; for?: unknown; onConflict?: unknown };
  checkKeys(fields, UNIQUE_KEYS, "unique.");
  return { key: checkName("key", fields.key), ...checkUniqueRule("unique", fields) };
}

export function checkTags(value: unknown): readonly string[] {
  if (!Array.isArray(value)) throw invalid("tags", `${show(value)} is not an array`);
  const tags = [...new Set(value.map((tag) => checkName("tag", tag)))];
  if (tags.length > BOUNDS.tags) throw invalid("tags", `${tags.length} are more than ${BOUNDS.tags}`);
  return tags;
}

export function checkParents(value: unknown): readonly JobId[] {
  const parents = new Set<JobId>();
  for (const parent of Array.isArray(value) ? value : [value]) {
    const id = jobIdOf(parent);
    if (id === undefined) throw invalid("dependsOn", `${show(parent)} is not a job or its id`);
    parents.add(id);
  }
  const { dependencies } = BOUNDS;
  if (parents.size > dependencies) throw invalid("dependsOn", `${parents.size} jobs are more than ${dependencies}`);
  return [...parents];
}

export function checkTransaction(value: unknown): Transaction {
  if (isTransaction(value)) return value;
  throw invalid("tx", "it has no query(text, values) function");
}

function isTransaction(value: unknown): value is Transaction {
  return typeof (value as { query?: unknown } | null | undefined)?.query === "function";
}

/** The caller's transaction, if there is one; what else may be wrong with the options is found when they are read. */
export function transactionOf(options: Pick<EnqueueOptions, "tx"> | undefined): Transaction | undefined {
  const tx: unknown = options?.tx;
  return isTransaction(tx) ? tx : undefined;
}

/** The id of what was given as a job, in the one form stores compare; undefined if it is none. */
export function jobIdOf(job: unknown): JobId | undefined {
  const id: unknown = typeof job === "object" && job !== null ? (job as { id?: unknown }).id : job;
  return typeof id === "string" && isJobId(id) ? (id.toLowerCase() as JobId) : undefined;
}

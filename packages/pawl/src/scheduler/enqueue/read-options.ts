import type { DeathPolicy } from "../../core/jobs/dependency.js";
import { isJobId, type JobId } from "../../core/jobs/id.js";
import type { JobOptions, NewJob, Priority } from "../../core/jobs/job.js";
import { storedRetry } from "../../core/jobs/retry.js";
import { checkUniqueRule } from "../../core/jobs/task-unique.js";
import type { Transaction } from "../../core/jobs/transaction.js";
import type { UniqueRule } from "../../core/jobs/unique-key.js";
import type { LimitKeyValue } from "../../core/limits/limit-options.js";
import { checkTrace } from "../../core/observe/trace.js";
import { BOUNDS } from "../../core/values/bounds.js";
import { checkName } from "../../core/values/name.js";
import {
  checkDuration,
  checkInstant,
  checkKeys,
  checkMaxCrashes,
  checkObject,
  checkOneOf,
  checkPeriod,
  checkPriority,
  checkSpread,
  invalid,
  show,
  unknownOption,
} from "../check.js";
import type { EnqueueOptions } from "../options.js";

/** What most jobs have none of. */
export interface JobExtras extends Omit<NewJob, "idSuffix" | "lane" | "input" | "options" | "idempotencyKey"> {
  /** its digest is made when the input is known */
  readonly idempotencyKey?: string;
}

/** What the caller asked for, checked, in stored form. */
export interface JobDraft {
  queue?: string;
  priority?: Priority;
  tenant?: string;
  tx?: Transaction;
  limitKeys?: Readonly<Record<string, LimitKeyValue>>;
  readonly options: { -readonly [K in keyof JobOptions]: JobOptions[K] };
  readonly extras: { -readonly [K in keyof JobExtras]: JobExtras[K] };
}

const OPTION_READERS: { readonly [K in keyof Required<EnqueueOptions>]: (value: unknown, draft: JobDraft, options: EnqueueOptions) => void } = {
  queue(value, draft) {
    draft.queue = checkName("queue", value);
  },
  priority(value, draft) {
    draft.priority = checkPriority(value);
  },
  tenant(value, draft) {
    draft.tenant = checkName("tenant", value);
  },
  tags(value, draft) {
    const tags = checkTags(value);
    if (tags.length > 0) draft.options.tags = tags;
  },
  retry(value, draft) {
    draft.options.retry = storedRetry(value as Parameters<typeof storedRetry>[0]);
  },
  timeout(value, draft) {
    draft.options.timeout = checkPeriod("timeout", value);
  },
  finishWithin(value, draft) {
    draft.options.finishWithin = checkPeriod("finishWithin", value);
  },
  startWithin(value, draft) {
    draft.options.startWithin = checkPeriod("startWithin", value);
  },
  maxCrashes(value, draft) {
    draft.options.maxCrashes = checkMaxCrashes(value);
  },
  spread(value, draft) {
    draft.options.spread = checkSpread(value);
  },
  delay(value, draft, { runAt }) {
    if (runAt !== undefined) throw invalid("delay", "runAt is given too: choose one");
    const delay = checkDuration("delay", value);
    if (delay > 0) draft.extras.delay = delay;
  },
  runAt(value, draft) {
    draft.extras.runAt = checkInstant("runAt", value);
  },
  unique(value, draft) {
    setUnique(draft, checkUnique(value));
  },
  debounce(value, draft, options) {
    if (options.unique !== undefined) throw invalid("debounce", "unique is given too: choose one");
    for (const name of ["delay", "runAt"] as const)
      if (options[name] !== undefined) throw invalid("debounce", `${name} is given too: debounce says when it runs`);
    const rule = checkDebounce(value);
    setUnique(draft, rule);
    draft.extras.delay = rule.debounce.wait;
  },
  limitKeys(value, draft) {
    draft.limitKeys = checkObject("limitKeys", value) as Readonly<Record<string, LimitKeyValue>>;
  },
  idempotencyKey(value, draft) {
    draft.extras.idempotencyKey = checkName("idempotency key", value);
  },
  dependsOn(value, draft, { onDependencyDeath }) {
    const parents = checkParents(value);
    if (parents.length > 0) draft.extras.dependsOn = { parents, onDependencyDeath: onDependencyDeath ?? "die" };
  },
  onDependencyDeath(value, _draft, { dependsOn }) {
    checkOneOf<DeathPolicy>("onDependencyDeath", value, ["die", "run", "wait"]);
    if (dependsOn === undefined) throw invalid("onDependencyDeath", "it says nothing without dependsOn");
  },
  trace(value, draft) {
    draft.options.trace = checkTrace("trace", value);
  },
  tx(value, draft) {
    draft.tx = checkTransaction(value);
  },
};

export function readOptions(options: EnqueueOptions): JobDraft {
  checkObject("options", options);
  const draft: JobDraft = { options: {}, extras: {} };
  for (const name of Object.keys(options)) {
    checkOptionName(name);
    const value = options[name as keyof EnqueueOptions];
    if (value !== undefined) OPTION_READERS[name as keyof EnqueueOptions](value, draft, options);
  }
  return draft;
}

/** Options of earlier versions, and what to write in their place. */
const REPLACED_OPTIONS: ReadonlyMap<string, string> = new Map([
  ["key", 'unique: "text"'],
  ["throttle", 'unique: { key, for: "1h" }'],
]);

/** `more`: names that are allowed here beside those of the options. */
export function checkOptionName(name: string, prefix = "", more: readonly string[] = []): void {
  if (Object.hasOwn(OPTION_READERS, name) || more.includes(name)) return;
  const replacement = REPLACED_OPTIONS.get(name);
  if (replacement !== undefined) throw invalid(prefix + name, `there is no such option: write ${replacement}`);
  throw unknownOption(name, [...more, ...Object.keys(OPTION_READERS)], prefix);
}

function setUnique(draft: JobDraft, unique: UniqueRule): void {
  draft.extras.unique = unique;
  draft.options.uniqueKey = unique.key;
}

const DEBOUNCE_KEYS = new Set(["key", "wait", "maxWait"]);

function checkDebounce(value: unknown): UniqueRule & Required<Pick<UniqueRule, "debounce">> {
  const fields = checkObject("debounce", value) as { key?: unknown; wait?: unknown; maxWait?: unknown };
  checkKeys(fields, DEBOUNCE_KEYS, "debounce.");
  const wait = checkPeriod("debounce.wait", fields.wait);
  const longest = fields.maxWait === undefined ? undefined : checkPeriod("debounce.maxWait", fields.maxWait);
  if (longest !== undefined && longest < wait) throw invalid("debounce.maxWait", "it is shorter than debounce.wait");
  const debounce = { wait, ...(longest === undefined ? {} : { longest }) };
  return { key: checkName("key", fields.key), hold: "unstarted", onConflict: "replace", debounce };
}

const UNIQUE_KEYS = new Set(["key", "for", "onConflict"]);

function checkUnique(value: unknown): UniqueRule {
  if (typeof value === "string") return { key: checkName("key", value), hold: "unfinished", onConflict: "existing" };
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw invalid("unique", `${show(value)} is neither a key nor an object`);
  const fields = value as { key?: unknown; for?: unknown; onConflict?: unknown };
  checkKeys(fields, UNIQUE_KEYS, "unique.");
  return { key: checkName("key", fields.key), ...checkUniqueRule("unique", fields) };
}

function checkTags(value: unknown): readonly string[] {
  if (!Array.isArray(value)) throw invalid("tags", `${show(value)} is not an array`);
  const tags = [...new Set(value.map((tag) => checkName("tag", tag)))];
  if (tags.length > BOUNDS.tags) throw invalid("tags", `${tags.length} are more than ${BOUNDS.tags}`);
  return tags;
}

function checkParents(value: unknown): readonly JobId[] {
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

function checkTransaction(value: unknown): Transaction {
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

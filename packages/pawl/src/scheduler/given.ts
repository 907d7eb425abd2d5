import { BOUNDS } from "../core/bounds.js";
import type { DeathPolicy } from "../core/dependency.js";
import { isJobId, type JobId } from "../core/id.js";
import type { JobOptions, NewJob, Priority } from "../core/job.js";
import type { LimitKey } from "../core/limit-options.js";
import { checkName } from "../core/name.js";
import { storedRetry } from "../core/retry.js";
import { checkTrace } from "../core/trace.js";
import type { UniqueRule } from "../core/unique.js";
import type { ForeignTransaction } from "../store/port.js";
import {
  checkCrashLimit,
  checkDuration,
  checkInstant,
  checkKeys,
  checkObject,
  checkOneOf,
  checkPeriod,
  checkPriority,
  checkSpread,
  invalid,
  show,
  unknownOption,
} from "./check.js";
import type { EnqueueOptions } from "./options.js";

/** What most jobs have none of. */
export interface Extras extends Omit<NewJob, "tail" | "lane" | "input" | "options" | "request"> {
  /** its digest is made when the input is known */
  readonly request?: string;
}

/** What the caller asked for, checked, in stored form. */
export interface Given {
  queue?: string;
  band?: Priority;
  tenant?: string;
  tx?: ForeignTransaction;
  limitKeys?: Readonly<Record<string, LimitKey>>;
  readonly stored: { -readonly [K in keyof JobOptions]: JobOptions[K] };
  readonly more: { -readonly [K in keyof Extras]: Extras[K] };
}

const READERS: { readonly [K in keyof Required<EnqueueOptions>]: (value: unknown, given: Given, options: EnqueueOptions) => void } = {
  queue(value, given) {
    given.queue = checkName("queue", value);
  },
  priority(value, given) {
    given.band = checkPriority(value);
  },
  tenant(value, given) {
    given.tenant = checkName("tenant", value);
  },
  tags(value, given) {
    const tags = checkTags(value);
    if (tags.length > 0) given.stored.tags = tags;
  },
  retry(value, given) {
    given.stored.retry = storedRetry(value as Parameters<typeof storedRetry>[0]);
  },
  timeout(value, given) {
    given.stored.timeout = checkPeriod("timeout", value);
  },
  deadline(value, given) {
    given.stored.deadline = checkPeriod("deadline", value);
  },
  expire(value, given) {
    given.stored.expire = checkPeriod("expire", value);
  },
  crashLimit(value, given) {
    given.stored.crashLimit = checkCrashLimit(value);
  },
  spread(value, given) {
    given.stored.spread = checkSpread(value);
  },
  delay(value, given, { runAt }) {
    if (runAt !== undefined) throw invalid("delay", "runAt is given too: choose one");
    const delay = checkDuration("delay", value);
    if (delay > 0) given.more.delay = delay;
  },
  runAt(value, given) {
    given.more.runAt = checkInstant("runAt", value);
  },
  key(value, given, options) {
    checkAlone("key", options);
    setUnique(given, { key: checkName("key", value), hold: "unfinished", onConflict: "existing" });
  },
  unique(value, given, options) {
    checkAlone("unique", options);
    setUnique(given, checkUnique(value));
  },
  throttle(value, given, options) {
    checkAlone("throttle", options);
    setUnique(given, checkThrottle(value));
  },
  debounce(value, given, options) {
    checkAlone("debounce", options);
    for (const name of ["delay", "runAt"] as const)
      if (options[name] !== undefined) throw invalid("debounce", `${name} is given too: debounce says when it runs`);
    const rule = checkDebounce(value);
    setUnique(given, rule);
    given.more.delay = rule.debounce.wait;
  },
  limitKeys(value, given) {
    given.limitKeys = checkObject("limitKeys", value) as Readonly<Record<string, LimitKey>>;
  },
  request(value, given) {
    given.more.request = checkName("request id", value);
  },
  dependsOn(value, given, { onDeath }) {
    const parents = checkParents(value);
    if (parents.length > 0) given.more.dependsOn = { parents, onDeath: onDeath ?? "die" };
  },
  onDeath(value, _given, { dependsOn }) {
    checkOneOf<DeathPolicy>("onDeath", value, ["die", "run", "wait"]);
    if (dependsOn === undefined) throw invalid("onDeath", "it says nothing without dependsOn");
  },
  trace(value, given) {
    given.stored.trace = checkTrace("trace", value);
  },
  tx(value, given) {
    given.tx = checkTransaction(value);
  },
};

export function readOptions(options: EnqueueOptions): Given {
  checkObject("options", options);
  const given: Given = { stored: {}, more: {} };
  for (const name of Object.keys(options)) {
    if (!Object.hasOwn(READERS, name)) throw unknownOption(name, Object.keys(READERS));
    const value = options[name as keyof EnqueueOptions];
    if (value !== undefined) READERS[name as keyof EnqueueOptions](value, given, options);
  }
  return given;
}

function setUnique(given: Given, unique: UniqueRule): void {
  given.more.unique = unique;
  given.stored.key = unique.key;
}

const KEYED = ["key", "unique", "throttle", "debounce"] as const;

/** Each of them makes the job the only one of a key, in another way. */
function checkAlone(name: (typeof KEYED)[number], options: EnqueueOptions): void {
  const other = KEYED.find((one) => one !== name && options[one] !== undefined);
  if (other !== undefined) throw invalid(name, `${other} is given too: choose one`);
}

const THROTTLE_KEYS = new Set(["key", "per"]);

function checkThrottle(value: unknown): UniqueRule {
  const given = checkObject("throttle", value) as { key?: unknown; per?: unknown };
  checkKeys(given, THROTTLE_KEYS, "throttle.");
  return { key: checkName("key", given.key), hold: checkPeriod("throttle.per", given.per), onConflict: "existing" };
}

const DEBOUNCE_KEYS = new Set(["key", "wait", "max"]);

function checkDebounce(value: unknown): UniqueRule & Required<Pick<UniqueRule, "debounce">> {
  const given = checkObject("debounce", value) as { key?: unknown; wait?: unknown; max?: unknown };
  checkKeys(given, DEBOUNCE_KEYS, "debounce.");
  const wait = checkPeriod("debounce.wait", given.wait);
  const longest = given.max === undefined ? undefined : checkPeriod("debounce.max", given.max);
  if (longest !== undefined && longest < wait) throw invalid("debounce.max", "it is shorter than debounce.wait");
  const debounce = { wait, ...(longest === undefined ? {} : { longest }) };
  return { key: checkName("key", given.key), hold: "pending", onConflict: "replace", debounce };
}

const UNIQUE_KEYS = new Set(["key", "while", "onConflict"]);

function checkUnique(value: unknown): UniqueRule {
  const given = checkObject("unique", value) as { key?: unknown; while?: unknown; onConflict?: unknown };
  checkKeys(given, UNIQUE_KEYS, "unique.");
  const hold = given.while ?? "unfinished";
  return {
    key: checkName("key", given.key),
    hold: hold === "pending" || hold === "unfinished" ? hold : checkPeriod("unique.while", hold),
    onConflict: checkOneOf("unique.onConflict", given.onConflict ?? "existing", ["reject", "existing", "replace"]),
  };
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
    const id = idOf(parent);
    if (id === undefined) throw invalid("dependsOn", `${show(parent)} is not a job or its id`);
    parents.add(id);
  }
  const { dependencies } = BOUNDS;
  if (parents.size > dependencies) throw invalid("dependsOn", `${parents.size} jobs are more than ${dependencies}`);
  return [...parents];
}

function checkTransaction(value: unknown): ForeignTransaction {
  if (isTransaction(value)) return value;
  throw invalid("tx", "it has no query(text, values) function");
}

function isTransaction(value: unknown): value is ForeignTransaction {
  return typeof (value as { query?: unknown } | null | undefined)?.query === "function";
}

/** The caller's transaction, if there is one; what else may be wrong with the options is found when they are read. */
export function transactionOf(options: Pick<EnqueueOptions, "tx"> | undefined): ForeignTransaction | undefined {
  const tx: unknown = options?.tx;
  return isTransaction(tx) ? tx : undefined;
}

/** The id of what was given as a job, in the one form stores compare; undefined if it is none. */
export function idOf(job: unknown): JobId | undefined {
  const id: unknown = typeof job === "object" && job !== null ? (job as { id?: unknown }).id : job;
  return typeof id === "string" && isJobId(id) ? (id.toLowerCase() as JobId) : undefined;
}

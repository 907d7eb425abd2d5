import { type Duration, milliseconds } from "./duration.js";
import { pawlError } from "./error.js";
import type { Failure } from "./failure.js";
import { checkKeys, checkObject } from "./option.js";

/** How a failed attempt is followed up, as people write it. */
export type Retry =
  /** that many retries with the default backoff */
  | number
  /** explicit delays, one per retry */
  | readonly Duration[]
  | Exponential
  /** the failure and the number of the attempt that failed → the delay, or "stop" */
  | ((failure: Failure, attempt: number) => Duration | "stop")
  | RetryRules;

export interface Exponential {
  readonly kind: "exponential";
  readonly retries: number;
  readonly min: number;
  readonly max: number;
  readonly factor: number;
  /** 0 none … 1 anywhere between nothing and the full delay */
  readonly jitter: number;
}

/** The first rule whose class, kind or code matches the failure decides; otherwise `otherwise`. */
export interface RetryRules {
  readonly kind: "rules";
  readonly rules: readonly { readonly on: string; readonly retry: SimpleRetry | "stop" }[];
  readonly otherwise: SimpleRetry;
}
type SimpleRetry = Exclude<Retry, RetryRules>;

/** What can be stored with one job: everything but functions, which live in the task's code. */
export type StoredRetry = number | readonly number[] | Exponential;

/** What can be published with a task: its rules too, as long as no function is among them. */
export type PublishedRetry = StoredRetry | RetryRules;

export const DEFAULT_RETRIES = 3;

const EXPONENTIAL_KEYS: ReadonlySet<string> = new Set<keyof Exponential>(["kind", "retries", "min", "max", "factor", "jitter"]);

export function exponential(options: { retries?: number; min?: Duration; max?: Duration; factor?: number; jitter?: number } = {}): Exponential {
  checkKeys(checkObject("retry", options), EXPONENTIAL_KEYS, "retry.");
  const policy: Exponential = {
    kind: "exponential",
    retries: options.retries ?? DEFAULT_RETRIES,
    min: milliseconds(options.min ?? "1s"),
    max: milliseconds(options.max ?? "5m"),
    factor: options.factor ?? 2,
    jitter: options.jitter ?? 0.5,
  };
  checkRetries(policy.retries);
  if (!(policy.factor >= 1 && policy.factor <= 100)) throw invalid(`factor ${policy.factor} is not between 1 and 100`);
  if (!(policy.jitter >= 0 && policy.jitter <= 1)) throw invalid(`jitter ${policy.jitter} is not between 0 and 1`);
  if (policy.max < policy.min) throw invalid("max is less than min");
  return policy;
}

/** `rules({ HttpError: ["1m"], RangeError: "stop" }, 5)` */
export function rules(byClass: Readonly<Record<string, SimpleRetry | "stop">>, otherwise: SimpleRetry = DEFAULT_RETRIES): RetryRules {
  return { kind: "rules", rules: Object.entries(byClass).map(([on, retry]) => ({ on, retry })), otherwise };
}

/** Checked where it is written (task, queue or enqueue), so that a wrong one never meets a failing job. */
export function checkRetry(retry: Retry): void {
  if (typeof retry === "function") return;
  if (typeof retry === "number") {
    checkRetries(retry);
    return;
  }
  if (isList(retry)) {
    if (retry.length > 100) throw invalid("a list holds at most 100 delays");
    for (const delay of retry) milliseconds(delay);
    return;
  }
  if (typeof retry !== "object" || retry === null)
    throw invalid("it is not a retry policy: a number of retries, a list of delays, or what exponential() answers");
  if (retry.kind === "rules") {
    for (const rule of retry.rules) if (rule.retry !== "stop") checkRetry(rule.retry);
    checkRetry(retry.otherwise);
    return;
  }
  if (retry.kind === "exponential") exponential(retry);
  else throw invalid("it is not a retry policy: a number of retries, a list of delays, or what exponential() answers");
}

export function storedRetry(retry: Retry): StoredRetry {
  checkRetry(retry);
  if (typeof retry === "function" || (typeof retry === "object" && !isList(retry) && retry.kind === "rules")) {
    throw invalid("functions and rules belong to the task; a job takes a number, a list or exponential()");
  }
  return isList(retry) ? retry.map(milliseconds) : retry;
}

/** As others may know it; undefined where only its code can answer. */
export function publishedRetry(retry: Retry): PublishedRetry | undefined {
  if (typeof retry === "function") return undefined;
  if (typeof retry === "number" || isList(retry) || retry.kind !== "rules") return storedRetry(retry);
  checkRetry(retry);
  const all = [retry.otherwise, ...retry.rules.map((rule) => rule.retry)];
  return all.some((one) => typeof one === "function") ? undefined : retry;
}

/**
 * The delay before the next attempt, or "stop". `spent` counts the attempts used up, the failed one included.
 * `random` is drawn from the runtime, so that a simulation repeats itself.
 */
export function retryDelay(retry: Retry, failure: Failure, spent: number, random: () => number): number | "stop" {
  if (typeof retry === "function") {
    const answer = retry(failure, spent);
    return answer === "stop" ? "stop" : milliseconds(answer);
  }
  if (typeof retry === "number") return retryDelay({ ...DEFAULT_BACKOFF, retries: retry }, failure, spent, random);
  if (isList(retry)) {
    const delay = retry[spent - 1];
    return delay === undefined ? "stop" : milliseconds(delay);
  }
  if (retry.kind === "rules") {
    const rule = retry.rules.find(({ on }) => on === failure.name || on === failure.kind || on === failure.code);
    const chosen = rule === undefined ? retry.otherwise : rule.retry;
    return chosen === "stop" ? "stop" : retryDelay(chosen, failure, spent, random);
  }
  if (spent > retry.retries) return "stop";
  // A number, however large: nothing times infinity is none.
  const growth = Math.min(Number.MAX_VALUE, retry.factor ** (spent - 1));
  const full = Math.min(retry.max, retry.min * growth);
  return Math.round(full * (1 - retry.jitter * random()));
}

const DEFAULT_BACKOFF = exponential();

function isList(retry: Retry): retry is readonly Duration[] {
  return Array.isArray(retry);
}

function checkRetries(retries: number): void {
  if (!Number.isInteger(retries) || retries < 0 || retries > 1000) throw invalid(`${retries} retries is not between 0 and 1000`);
}

function invalid(reason: string) {
  return pawlError("option_invalid", { option: "retry", reason });
}

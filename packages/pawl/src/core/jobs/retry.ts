import { BOUNDS } from "../values/bounds.js";
import { DEFAULTS } from "../values/defaults.js";
import { type Duration, milliseconds } from "../values/duration.js";
import { pawlError } from "../values/error.js";
import { checkKeys, checkObject, show } from "../values/option.js";
import { type Failure, failureOf } from "./failure.js";

/** How a failed attempt is followed up, as people write it. */
export type RetryPolicy =
  /** that many retries with the default backoff */
  | number
  /** explicit delays, one per retry */
  | readonly Duration[]
  | Exponential
  | RetryFunction
  | RetryRules;

/** The failure and the number of the attempt that failed → the delay, or "stop". */
type RetryFunction = (failure: Failure, attempt: number) => Duration | "stop";

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
type SimpleRetry = Exclude<RetryPolicy, RetryRules>;

/** What can be stored with one job: everything but functions, which live in the task's code. */
export type StoredRetry = number | readonly number[] | Exponential;

/** What can be published with a task: its rules too, as long as no function is among them. */
export type PublishedRetry = StoredRetry | RetryRules;

const EXPONENTIAL_KEYS: ReadonlySet<string> = new Set<keyof Exponential>(["kind", "retries", "min", "max", "factor", "jitter"]);

export function exponential(options: { retries?: number; min?: Duration; max?: Duration; factor?: number; jitter?: number } = {}): Exponential {
  checkKeys(checkObject("retry", options), EXPONENTIAL_KEYS, "retry.");
  const policy: Exponential = {
    kind: "exponential",
    retries: options.retries ?? DEFAULTS.job.retries,
    min: milliseconds(options.min ?? DEFAULTS.backoff.min),
    max: milliseconds(options.max ?? DEFAULTS.backoff.max),
    factor: options.factor ?? DEFAULTS.backoff.factor,
    jitter: options.jitter ?? DEFAULTS.backoff.jitter,
  };
  checkRetries(policy.retries);
  if (!(policy.factor >= 1 && policy.factor <= 100)) throw invalid(`factor ${policy.factor} is not between 1 and 100`);
  if (!(policy.jitter >= 0 && policy.jitter <= 1)) throw invalid(`jitter ${policy.jitter} is not between 0 and 1`);
  if (policy.max < policy.min) throw invalid("max is less than min");
  return policy;
}

/** `rules({ HttpError: ["1m"], RangeError: "stop" }, 5)` */
export function retryRules(byClass: Readonly<Record<string, SimpleRetry | "stop">>, otherwise: SimpleRetry = DEFAULTS.job.retries): RetryRules {
  return { kind: "rules", rules: Object.entries(byClass).map(([on, retry]) => ({ on, retry })), otherwise };
}

/** Checked where it is written (task, queue or enqueue), so that a wrong one never meets a failing job. */
export function checkRetry(retry: RetryPolicy): void {
  if (typeof retry === "function") return;
  if (typeof retry === "number") {
    checkRetries(retry);
    return;
  }
  if (isList(retry)) {
    if (retry.length > BOUNDS.retryDelays) throw invalid(`a list holds at most ${BOUNDS.retryDelays} delays`);
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

export function storedRetry(retry: RetryPolicy): StoredRetry {
  checkRetry(retry);
  if (typeof retry === "function" || (typeof retry === "object" && !isList(retry) && retry.kind === "rules")) {
    throw invalid("functions and rules belong to the task; a job takes a number, a list or exponential()");
  }
  return isList(retry) ? retry.map(milliseconds) : retry;
}

/** As others may know it; undefined where only its code can answer. */
export function publishedRetry(retry: RetryPolicy): PublishedRetry | undefined {
  if (typeof retry === "function") return undefined;
  if (typeof retry === "number" || isList(retry) || retry.kind !== "rules") return storedRetry(retry);
  checkRetry(retry);
  const all = [retry.otherwise, ...retry.rules.map((rule) => rule.retry)];
  return all.some((one) => typeof one === "function") ? undefined : retry;
}

/** What follows a failed attempt: the delay before the next one, or "stop". */
export interface Followup {
  readonly delay: number | "stop";
  /** what the retry function of the task did in place of an answer: it threw, or answered what is no delay */
  readonly fault?: string;
}

/**
 * `attempts` counts the attempts used up, the failed one included. `random` is drawn from the runtime, so that a simulation
 * repeats itself. Total: a retry function is user code, and where it fails the default policy decides.
 */
export function followup(retry: RetryPolicy, failure: Failure, attempts: number, random: () => number): Followup {
  const chosen = chosenFor(retry, failure);
  if (typeof chosen !== "function") return { delay: retryDelay(chosen, attempts, random) };
  const answer = ask(chosen, failure, attempts);
  return typeof answer === "object" ? { delay: retryDelay(DEFAULTS.job.retries, attempts, random), ...answer } : { delay: answer };
}

function chosenFor(retry: RetryPolicy, { name, kind, code }: Failure): SimpleRetry | "stop" {
  if (typeof retry !== "object" || isList(retry) || retry.kind !== "rules") return retry;
  const rule = retry.rules.find(({ on }) => on === name || on === kind || on === code);
  return rule === undefined ? retry.otherwise : rule.retry;
}

function ask(retry: RetryFunction, failure: Failure, attempts: number): number | "stop" | Required<Pick<Followup, "fault">> {
  let answer: unknown;
  try {
    answer = retry(failure, attempts);
  } catch (thrown) {
    const { name, message } = failureOf(thrown);
    return { fault: `it threw ${name}: ${message}` };
  }
  if (answer === "stop") return "stop";
  try {
    return milliseconds(answer as Duration);
  } catch {
    return { fault: `it answered ${shown(answer)}, which is neither a duration nor "stop"` };
  }
}

function shown(answer: unknown): string {
  try {
    if (!(answer instanceof Promise)) return show(answer);
    // Nobody waits for it, so nobody would hear of its rejection, which ends the process.
    answer.catch(() => {});
    return "a promise";
  } catch {
    return "what cannot be looked at";
  }
}

function retryDelay(retry: StoredRetry | readonly Duration[] | "stop", attempts: number, random: () => number): number | "stop" {
  if (retry === "stop") return "stop";
  if (typeof retry === "number") return retryDelay({ ...DEFAULT_BACKOFF, retries: retry }, attempts, random);
  if (isList(retry)) {
    const delay = retry[attempts - 1];
    return delay === undefined ? "stop" : milliseconds(delay);
  }
  if (attempts > retry.retries) return "stop";
  // A number, however large: nothing times infinity is none.
  const growth = Math.min(Number.MAX_VALUE, retry.factor ** (attempts - 1));
  const full = Math.min(retry.max, retry.min * growth);
  return Math.round(full * (1 - retry.jitter * random()));
}

const DEFAULT_BACKOFF = exponential();

function isList(retry: RetryPolicy): retry is readonly Duration[] {
  return Array.isArray(retry);
}

function checkRetries(retries: number): void {
  if (!Number.isInteger(retries) || retries < 0 || retries > 1000) throw invalid(`${retries} retries is not between 0 and 1000`);
}

function invalid(reason: string) {
  return pawlError("option_invalid", { option: "retry", reason });
}

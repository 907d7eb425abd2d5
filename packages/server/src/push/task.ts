import { NonRetryable, RetryAfter, type Task, type TaskOptions, task } from "pawl";
import { allowing, Unsafe } from "./address.js";
import { deliver } from "./deliver.js";
import { secretBytes } from "./signature.js";
import { checkTarget, type TargetRules } from "./target.js";

export interface PushOptions extends Omit<TaskOptions, "input"> {
  /** an https:// URL on the public internet, or in a network that `allow` names */
  readonly target: string;
  /** as the receiver knows it: `whsec_…`; of two the receiver may know either, while one takes the place of the other */
  readonly secret: string | readonly string[];
  /** networks of your own that targets may be in: `["10.1.0.0/16"]` */
  readonly allow?: readonly string[];
  /** called when the target answers 410: it wants no more */
  readonly onGone?: () => void | Promise<void>;
}

const TIMEOUT = "15s";

/**
 * A task whose jobs are delivered to an HTTP target instead of being run here. It is a task like any other: its limits,
 * timeout, retries and breaker are those of every task, and a worker with the code delivers.
 */
export function pushTask(
  name: string,
  { target, secret, allow = [], onGone, ...options }: PushOptions,
  rules: Omit<TargetRules, "allowed"> = {},
): Task<unknown, unknown> {
  const secrets = (typeof secret === "string" ? [secret] : secret).map(secretBytes);
  const own: TargetRules = { ...rules, allowed: allowing(allow) };
  checkTarget(target, own);
  return task<unknown, unknown>(name, { timeout: TIMEOUT, ...options }, async (input, { job, attempt, tenant, queue, signal }) => {
    const body = JSON.stringify({ type: name, timestamp: new Date().toISOString(), data: input ?? null, job, attempt, tenant, queue });
    const { status, retryAfter, output } = await deliver({ target, secrets, id: job, body, signal }, own).catch((error: unknown) => {
      throw error instanceof Unsafe ? new NonRetryable(error.message, { cause: error }) : error;
    });
    if (status >= 200 && status < 300) return output;
    const said = `the target answered ${status}`;
    if (status === 410) {
      await onGone?.();
      throw new NonRetryable(`${said}: it wants no more`);
    }
    // It is not followed: who may answer for a target is decided where it is registered.
    if (status >= 300 && status < 400) throw new NonRetryable(`${said}, a redirect, which is never followed`);
    if (retryAfter !== undefined) throw new RetryAfter(retryAfter, said);
    if (status >= 400 && status < 500 && status !== 408 && status !== 425 && status !== 429) throw new NonRetryable(said);
    throw new Error(said);
  });
}

import { type Task, type TaskOptions, task } from "pawl";
import { unseenIn } from "pawl/service";
import { checkTarget, type TargetRules } from "./check-target.js";
import { push } from "./push-attempt.js";
import { parseNetworks, UnsafeTarget } from "./safe-address.js";
import { secretBytes } from "./signature.js";

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

const DEFAULT_TIMEOUT = "15s";

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
  const own: TargetRules = { ...rules, allowed: parseNetworks(allow) };
  // Here, and not with each delivery: those that were registered before this was looked at are delivered to as they were.
  const unseen = unseenIn(target);
  if (unseen !== undefined) throw new UnsafeTarget(`the URL of a target is none: ${unseen}`);
  checkTarget(target, own);
  return task<unknown, unknown>(name, { timeout: DEFAULT_TIMEOUT, ...options }, (input, context) =>
    push({ target, secrets, input, context, signal: context.signal, onGone }, own),
  );
}

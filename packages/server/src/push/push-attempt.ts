import { type Context, NonRetryable, RetryAfter } from "pawl";
import type { TargetRules } from "./check-target.js";
import { deliver } from "./deliver.js";
import { UnsafeTarget } from "./safe-address.js";

export interface PushRequest {
  readonly target: string;
  readonly secrets: readonly Buffer[];
  readonly input: unknown;
  readonly context: Context;
  readonly signal: AbortSignal;
  /** called when the target answers 410: it wants no more */
  readonly onGone: (() => void | Promise<void>) | undefined;
}

/** One attempt at a job, made by its target: what it answers is the outcome. */
export async function push({ target, secrets, input, context, signal, onGone }: PushRequest, rules: TargetRules): Promise<unknown> {
  const { task, job, attempt, tenant, queue } = context;
  const body = JSON.stringify({ type: task, timestamp: new Date().toISOString(), data: input ?? null, job, attempt, tenant, queue });
  const { status, retryAfter, output } = await deliver({ target, secrets, id: job, body, signal }, rules).catch((error: unknown) => {
    throw error instanceof UnsafeTarget ? new NonRetryable(error.message, { cause: error }) : error;
  });
  if (status >= 200 && status < 300) return output;
  const reason = `the target answered ${status}`;
  if (status === 410) {
    await onGone?.();
    throw new NonRetryable(`${reason}: it wants no more`);
  }
  // It is not followed: who may answer for a target is decided where it is registered.
  if (status >= 300 && status < 400) throw new NonRetryable(`${reason}, a redirect, which is never followed`);
  if (retryAfter !== undefined) throw new RetryAfter(retryAfter, reason);
  if (status >= 400 && status < 500 && status !== 408 && status !== 425 && status !== 429) throw new NonRetryable(reason);
  throw new Error(reason);
}

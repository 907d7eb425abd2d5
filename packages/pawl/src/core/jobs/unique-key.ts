import type { JobId } from "./id.js";
import { isFinished, type JobState } from "./job.js";

/** One job per (tenant, task, key) for as long as the rule says. */
export interface UniqueRule {
  readonly key: string;
  /** until it first starts, until it is finished, or for a period from its enqueue (ms) */
  readonly hold: "unstarted" | "unfinished" | number;
  readonly onConflict: "reject" | "existing" | "replace";
  /** each one waits for so many ms of quiet, but no longer than `longest` from the first of those it took over from */
  readonly debounce?: { readonly wait: number; readonly longest?: number };
}

/** When a job that takes over is due. `since`: when the first of the chain was enqueued. */
export function debouncedUntil({ debounce }: UniqueRule, since: number, now: number): number | undefined {
  if (debounce?.longest === undefined) return undefined;
  return Math.max(now, Math.min(now + debounce.wait, since + debounce.longest));
}

/** The job that holds a key now, as the store sees it. */
export interface UniqueKeyHolder {
  readonly job: JobId;
  readonly hold: UniqueRule["hold"];
  readonly state: JobState;
  readonly started: boolean;
  /** ms left of its period */
  readonly remaining: number;
}

export type UniqueKeyVerdict =
  | { readonly kind: "free" }
  | { readonly kind: "existing" }
  | { readonly kind: "rejected" }
  /** cancel the holder, which has not started, and take its place */
  | { readonly kind: "replace" };

/**
 * Who gets the key. The holder's own rule says whether it still holds; the newcomer's says what happens if so.
 * Nothing is written when a job starts or ends: a key is judged when somebody asks for it.
 */
export function judgeKey(holder: UniqueKeyHolder, rule: UniqueRule): UniqueKeyVerdict {
  if (!stillHolds(holder)) return { kind: "free" };
  if (rule.onConflict === "existing") return { kind: "existing" };
  if (rule.onConflict === "reject") return { kind: "rejected" };
  if (isFinished(holder.state)) return { kind: "free" };
  return holder.state === "running" ? { kind: "rejected" } : { kind: "replace" };
}

export function stillHolds(holder: UniqueKeyHolder): boolean {
  if (holder.hold === "unstarted") return !holder.started && !isFinished(holder.state);
  if (holder.hold === "unfinished") return !isFinished(holder.state);
  return holder.remaining > 0;
}

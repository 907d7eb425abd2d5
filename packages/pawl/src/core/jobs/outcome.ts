import type { JobLimit } from "../limits/limit-rule.js";
import { BOUNDS } from "../values/bounds.js";
import { DEFAULTS } from "../values/defaults.js";
import type { Failure } from "./failure.js";
import { failure } from "./failure.js";
import type { JobOptions, JobState, RequestedIntent } from "./job.js";
import { followup, type RetryPolicy } from "./retry.js";

/** How an attempt ended. */
export type Outcome =
  | { readonly kind: "succeeded"; readonly output?: string }
  | {
      readonly kind: "failed";
      readonly failure: Failure;
      readonly retryable: boolean;
      readonly retryAfter?: number;
      /** with `retryAfter`: whatever the policy here says. Who ran it has asked its own, which only its code can answer */
      readonly again?: true;
      /** the key that is to rest for as long: whoever answered "later" meant all of its jobs */
      readonly pauses?: Pick<JobLimit, "limit" | "key">;
    }
  /** `failure`: what keeps it from being run here, where that is not for its handler to say */
  | { readonly kind: "snoozed"; readonly delay: number; readonly failure?: Failure }
  | { readonly kind: "released" }
  | { readonly kind: "cancelled"; readonly reason?: string }
  /** the worker vanished; `alone` if the job was the only one in its lease, as suspects are */
  | { readonly kind: "crashed"; readonly alone: boolean };

export const OUTCOMES = ["succeeded", "failed", "snoozed", "released", "cancelled", "crashed"] as const satisfies readonly Outcome["kind"][];
export type OutcomeKind = (typeof OUTCOMES)[number];

/** What the decision needs to know of the job. */
export interface AttemptsSoFar {
  /** attempts used up before this one */
  readonly attempts: number;
  /** workers lost with it before this one */
  readonly crashes: number;
  readonly maxCrashes: number;
  readonly atMostOnce: boolean;
  /** ms left until the deadline over all attempts */
  readonly remaining?: number;
}

const NO_OPTIONS: JobOptions = {};

export function attemptsSoFar(
  job: { readonly attempts: number; readonly crashes: number; readonly dueAt: number },
  options: JobOptions | undefined,
  now: number,
): AttemptsSoFar {
  const { attempts, crashes } = job;
  const { maxCrashes = DEFAULTS.job.maxCrashes, atMostOnce = false, finishWithin } = options ?? NO_OPTIONS;
  const soFar = { attempts, crashes, maxCrashes, atMostOnce };
  return finishWithin === undefined ? soFar : { ...soFar, remaining: job.dueAt + finishWithin - now };
}

/** Where the job goes: the total result of an attempt, applied as it stands by every store. */
export interface Patch {
  readonly outcome: OutcomeKind;
  readonly next: Exclude<JobState, "blocked" | "running">;
  /** ms until it may run again; only with `scheduled` */
  readonly delay?: number;
  readonly attempts: number;
  readonly crashes: number;
  readonly output?: string;
  readonly failure?: Failure;
  /** what it died of, where that is not what its attempt failed with: a line of history of its own, after that of the attempt */
  readonly diedOf?: Failure;
  /** what the task's retry function did in place of an answer, so that the default policy decided: for the worker to tell, not stored */
  readonly retryFault?: string;
  /** a key of the job that nobody else is to be let in by for so many ms */
  readonly pauses?: Pick<JobLimit, "limit" | "key"> & { readonly for: number };
}

/** How most jobs end: there may be a hundred thousand a second, so they share it. */
const FIRST_SUCCESS: Patch = Object.freeze({ outcome: "succeeded", next: "succeeded", attempts: 1, crashes: 0 });

/** A success ends the job, whatever its options say. */
export function decideSuccess({ attempts, crashes }: Pick<AttemptsSoFar, "attempts" | "crashes">, output: string | undefined): Patch {
  if (output === undefined && attempts === 0 && crashes === 0) return FIRST_SUCCESS;
  const succeeded = { outcome: "succeeded", next: "succeeded", attempts: attempts + 1, crashes } as const;
  return output === undefined ? succeeded : { ...succeeded, output };
}

/**
 * The only place that knows retry from dead. Pure: time comes in as ms left, chance as a function.
 */
export function decide(soFar: AttemptsSoFar, outcome: Outcome, retry: RetryPolicy, random: () => number): Patch {
  const { attempts, crashes } = soFar;
  switch (outcome.kind) {
    case "succeeded":
      return decideSuccess(soFar, outcome.output);
    case "cancelled":
      return {
        outcome: "cancelled",
        next: "cancelled",
        attempts,
        crashes,
        ...(outcome.reason === undefined ? {} : { failure: failure("error", outcome.reason) }),
      };
    case "released":
      return { outcome: "released", next: "ready", attempts, crashes };
    case "snoozed": {
      const { delay, failure: why } = outcome;
      return scheduleAgain(soFar, {
        outcome: "snoozed",
        next: "scheduled",
        delay,
        attempts,
        crashes,
        ...(why === undefined ? {} : { failure: why }),
      });
    }
    case "crashed":
      return decideCrash(soFar, outcome.alone);
    case "failed": {
      const used = attempts + 1;
      const { pauses, retryAfter, again: decided } = outcome;
      const rest = pauses === undefined || retryAfter === undefined ? {} : { pauses: { ...pauses, for: retryAfter } };
      const failed = { outcome: "failed", attempts: used, crashes, failure: outcome.failure, ...rest } as const;
      if (!outcome.retryable || soFar.atMostOnce) return { ...failed, next: "dead" };
      const { delay, fault } = decided === true ? { delay: 0 } : followup(retry, outcome.failure, used, random);
      const withFault = fault === undefined ? failed : { ...failed, retryFault: fault };
      if (delay === "stop") return { ...withFault, next: "dead" };
      return scheduleAgain(soFar, { ...withFault, next: "scheduled", delay: retryAfter ?? delay });
    }
  }
}

/**
 * A retry that would start after the deadline is no retry: then the deadline is what the job dies of, and what its attempt
 * failed with stays that attempt's. One that starts at once skips the calendar.
 */
function scheduleAgain(soFar: AttemptsSoFar, patch: Patch & { readonly delay: number }): Patch {
  const { delay, ...now } = patch;
  if (soFar.remaining !== undefined && delay >= soFar.remaining) {
    const late = failure("deadline", "the next attempt would start after the deadline");
    if (patch.failure === undefined) return { ...now, next: "dead", failure: late };
    return { ...now, next: "dead", diedOf: { ...late, causes: causesFrom(patch.failure) } };
  }
  return delay > 0 ? patch : { ...now, next: "ready" };
}

/** What something was caused by, if it was that. */
function causesFrom({ name, message, stack, causes = [] }: Failure): NonNullable<Failure["causes"]> {
  return [{ name, message, ...(stack === undefined ? {} : { stack }) }, ...causes].slice(0, BOUNDS.failureCauses);
}

/**
 * A crash spends no attempt. The first one says little (machines die), so the job runs again as before; from the
 * second on it is a suspect, run one at a time in a lease of its own. Only a suspect can be convicted, so that the
 * neighbours of a poison pill are never punished for it.
 */
function decideCrash(soFar: AttemptsSoFar, alone: boolean): Patch {
  const crashes = soFar.crashes + 1;
  const base = { outcome: "crashed", attempts: soFar.attempts, crashes } as const;
  if (soFar.atMostOnce) return { ...base, next: "dead", failure: failure("interrupted", "its worker vanished, and it may run at most once") };
  if (crashes >= soFar.maxCrashes && (alone || soFar.maxCrashes === 1)) {
    return { ...base, next: "dead", failure: failure("poison", `it took down its worker ${crashes} times`) };
  }
  if (soFar.remaining !== undefined && soFar.remaining <= 0) {
    return { ...base, next: "dead", failure: failure("deadline", "its worker vanished and the deadline has passed") };
  }
  return { ...base, next: "ready" };
}

/** A waiting job that dies without an attempt: too late, or with one it depends on. */
export function deathOf(job: { readonly attempts: number; readonly crashes: number }, cause: Failure): Patch {
  return { outcome: "failed", next: "dead", attempts: job.attempts, crashes: job.crashes, failure: cause };
}

/** From how many crashes on a job is run alone. */
export const SUSPECT_FROM = 2;
export function isSuspect(crashes: number): boolean {
  return crashes >= SUSPECT_FROM;
}

/** What was asked of the job while a worker held it is carried out where it would go back to waiting. */
export function withIntent(patch: Patch, requested: RequestedIntent | undefined): Patch {
  if (requested === undefined) return patch;
  const waits = patch.next === "ready" || patch.next === "scheduled";
  if (requested.intent === "pause") return waits ? { ...patch, next: "parked" } : patch;
  if (!waits && patch.next !== "cancelled") return patch;
  const { delay: _, ...rest } = patch;
  return { ...rest, next: "cancelled", failure: cancelledFor(requested.reason, patch) };
}

/** A cancelled job says why, unless its worker did; what its last attempt failed with comes after that. */
function cancelledFor(reason: string, { outcome, failure: last }: Patch): Failure {
  if (last === undefined) return failure("error", reason);
  if (outcome === "cancelled") return last;
  return { ...failure("error", reason), causes: causesFrom(last) };
}

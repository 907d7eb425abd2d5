import type { CheckTarget, Deliver } from "pawl/service";
import { checkTarget, type TargetRules } from "./check-target.js";
import { push } from "./push-attempt.js";
import { secretBytes } from "./signature.js";

/** Delivers to targets that were registered, each by its own deadline. */
export function deliverer(rules: TargetRules): Deliver {
  return async ({ url, timeout, secrets, input, context, gone }) => {
    const deadline = AbortSignal.timeout(timeout);
    const signal = AbortSignal.any([context.signal, deadline]);
    try {
      return await push({ target: url, secrets: secrets.map(secretBytes), input, context, signal, onGone: gone }, rules);
    } catch (error) {
      // By the signal alone it could not be told from a cancellation.
      throw deadline.aborted && !context.signal.aborted ? new Error(`the target did not answer within ${timeout} ms`, { cause: error }) : error;
    }
  };
}

export function targetChecker(rules: TargetRules): CheckTarget {
  return (url) => void checkTarget(url, rules);
}

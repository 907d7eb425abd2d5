import type { LimitKeyId } from "../../../core/limits/limit-rule.js";

/**
 * Limit keys for which a transaction wrote limit checks. Whoever made the transaction admits jobs at them once it has committed; the rows in
 * `pawl.limit_check` are for processes that end before that. Kept by the transaction's handle, so that nothing in between has to know.
 */
const noted = new WeakMap<object, Set<LimitKeyId>>();

/** What is noted under the handle from here on is found in the set. */
export function collectLimitChecks<T extends object>(handle: T, limitKeys: Set<LimitKeyId>): T {
  noted.set(handle, limitKeys);
  return handle;
}

/** Another handle of the same transaction. */
export function sameLimitChecks<T extends object>(from: object, to: T): T {
  const limitKeys = noted.get(from);
  return limitKeys === undefined ? to : collectLimitChecks(to, limitKeys);
}

/** In a transaction that is somebody else's, nobody hears it: the poll finds the rows. */
export function noteLimitChecks(handle: object, limitKeys: Iterable<string>): void {
  const set = noted.get(handle);
  if (set !== undefined) for (const limitKey of limitKeys) set.add(limitKey as LimitKeyId);
}

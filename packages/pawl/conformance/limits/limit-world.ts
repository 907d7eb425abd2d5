import type { JobId } from "../../src/core/jobs/id.js";
import type { JobOptions } from "../../src/core/jobs/job.js";
import type { JobLimit, LimitRule } from "../../src/core/limits/limit-rule.js";
import type { Spec, World } from "../world.js";

/** What the tests of limits do and see, in few words. */

export const ONE: LimitRule = { concurrency: 1 };
export const TWO: LimitRule = { concurrency: 2 };
export const SERIAL: LimitRule = { serial: true };
export const LIMIT_KEY = { tenant: "acme", limit: "per key", key: "k" };

/** Under one limit of this rule. */
export function under(rule: LimitRule, key = LIMIT_KEY.key, more: Partial<JobLimit> = {}): JobOptions {
  return { limits: [{ limit: LIMIT_KEY.limit, key, rule, ...more }] };
}

export async function addMany(w: World, count: number, spec: Spec = {}): Promise<readonly JobId[]> {
  const ids: JobId[] = [];
  for (let i = 0; i < count; i++) ids.push(await w.add(spec));
  return ids;
}

export async function states(w: World, ids: readonly JobId[]): Promise<readonly string[]> {
  return Promise.all(ids.map((id) => w.state(id)));
}

export async function holders(w: World, limitKey: Partial<typeof LIMIT_KEY> = {}): Promise<readonly JobId[]> {
  return (await w.store.limits.get({ ...LIMIT_KEY, ...limitKey }))?.holders ?? [];
}

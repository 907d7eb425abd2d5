import type { JobId } from "../../core/id.js";
import type { JobOptions } from "../../core/job.js";
import type { JobLimit, LimitRule } from "../../core/limit.js";
import type { Spec, World } from "./world.js";

/** What the tests of limits do and see, in few words. */

export const ONE: LimitRule = { concurrency: 1 };
export const TWO: LimitRule = { concurrency: 2 };
export const SERIAL: LimitRule = { serial: true };
export const GATE = { tenant: "acme", limit: "per key", key: "k" };

/** Under one limit of this rule. */
export function under(rule: LimitRule, key = GATE.key, more: Partial<JobLimit> = {}): JobOptions {
  return { limits: [{ limit: GATE.limit, key, rule, ...more }] };
}

export async function addMany(w: World, count: number, spec: Spec = {}): Promise<readonly JobId[]> {
  const ids: JobId[] = [];
  for (let i = 0; i < count; i++) ids.push(await w.add(spec));
  return ids;
}

export async function states(w: World, ids: readonly JobId[]): Promise<readonly string[]> {
  return Promise.all(ids.map((id) => w.state(id)));
}

export async function holders(w: World, gate: Partial<typeof GATE> = {}): Promise<readonly JobId[]> {
  return (await w.store.limits.get({ ...GATE, ...gate }))?.holders ?? [];
}

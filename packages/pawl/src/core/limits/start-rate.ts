import type { Lane } from "../jobs/lane.js";
import type { PriorityRules } from "../sharing/policy.js";
import { priorityParts } from "../sharing/priority-weights.js";

/**
 * How fast jobs of one queue and task are started: starts of late, each worth less the longer ago it was, as they were
 * at `at`, counted from `since` on. Three numbers, so that it can be kept with the counts and costs no history.
 */
export interface StartRate {
  readonly starts: number;
  readonly at: number;
  readonly since: number;
}

/** ms in which a start loses all but a third (1/e) of its worth */
export const START_RATE_MEMORY_MS = 30_000;
/** ms without a start after which it begins anew: time in which nothing was to do says nothing of how fast it is done */
export const START_RATE_FORGOTTEN_MS = 60_000;
/** ms of starts that arrive together: counts are folded about once a second */
export const START_RATE_GATHERED_MS = 1_000;

/** The pace after some more starts. (Stores may do the same in their own words: see `fold` in store/postgres/jobs/counters.ts.) */
export function addStarts(startRate: StartRate | undefined, starts: number, now: number): StartRate {
  if (startRate === undefined || now - startRate.at > START_RATE_FORGOTTEN_MS) return { starts, at: now, since: now - START_RATE_GATHERED_MS };
  return { starts: startRate.starts * worth(now - startRate.at) + starts, at: Math.max(now, startRate.at), since: startRate.since };
}

/** Fewer starts than this say nothing about the next one. */
const LEAST_STARTS = 1.5;

/** Starts per ms; undefined where there were too few of late to say. */
export function startsPerMs({ starts, at, since }: StartRate, now: number): number | undefined {
  const left = starts * worth(now - at);
  // A young count has had less time than its memory: it is held against the time it had.
  return left < LEAST_STARTS ? undefined : left / (START_RATE_MEMORY_MS * (1 - worth(Math.max(START_RATE_GATHERED_MS, now - since))));
}

function worth(age: number): number {
  return Math.exp(-Math.max(0, age) / START_RATE_MEMORY_MS);
}

/** What of the tenants decides how a pace is divided. */
export interface TenantRates {
  weightOf(tenant: string): number;
  /** ms that a job of the tenant takes lately, where that is known */
  tookOf(tenant: string): number | undefined;
}

/**
 * The part of the starts of a queue and task that is one lane's, among those with work. What priorities and the weights of tenants
 * divide is time: of as much of it, whose jobs take twice as long starts half as many.
 */
export function laneShareOfStarts(lane: Lane, rivals: readonly Lane[], rules: PriorityRules, { weightOf, tookOf }: TenantRates): number {
  const lanes = [lane, ...rivals];
  const priorities = [...new Set(lanes.map(({ priority }) => priority))].sort((a, b) => b - a);
  const parts = rules.strictPriority === true ? priorities.map((_, index) => (index === 0 ? 1 : 0)) : priorityParts(priorities, rules);
  const took = lanes.flatMap(({ tenant }) => tookOf(tenant) ?? []);
  const unknown = took.length === 0 ? 1 : sum(took) / took.length;
  const startsOf = ({ priority, tenant }: Lane): number => {
    const beside = new Set(lanes.filter((other) => other.priority === priority).map((other) => other.tenant));
    const time = (parts[priorities.indexOf(priority)] as number) * (weightOf(tenant) / sum([...beside].map(weightOf)));
    return time / (tookOf(tenant) ?? unknown);
  };
  return startsOf(lane) / sum(lanes.map(startsOf));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}

import { bandParts } from "./band.js";
import type { Lane } from "./lane.js";
import type { BandRules } from "./policy.js";

/**
 * How fast jobs of one queue and task are started: starts of late, each worth less the longer ago it was, as they were
 * at `at`, counted from `since` on. Three numbers, so that it can be kept with the counts and costs no history.
 */
export interface Pace {
  readonly starts: number;
  readonly at: number;
  readonly since: number;
}

/** ms in which a start loses all but a third (1/e) of its worth */
export const PACE_MEMORY = 30_000;
/** ms without a start after which it begins anew: time in which nothing was to do says nothing of how fast it is done */
export const PACE_FORGOTTEN = 60_000;
/** ms of starts that arrive together: counts are folded about once a second */
export const PACE_GATHERED = 1_000;

/** The pace after some more starts. (Stores may do the same in their own words: see `fold` in store/postgres/counts.ts.) */
export function paced(pace: Pace | undefined, starts: number, now: number): Pace {
  if (pace === undefined || now - pace.at > PACE_FORGOTTEN) return { starts, at: now, since: now - PACE_GATHERED };
  return { starts: pace.starts * worth(now - pace.at) + starts, at: Math.max(now, pace.at), since: pace.since };
}

/** Fewer starts than this say nothing about the next one. */
const LEAST_STARTS = 1.5;

/** Starts per ms; undefined where there were too few of late to say. */
export function startsPerMs({ starts, at, since }: Pace, now: number): number | undefined {
  const left = starts * worth(now - at);
  // A young count has had less time than its memory: it is held against the time it had.
  return left < LEAST_STARTS ? undefined : left / (PACE_MEMORY * (1 - worth(Math.max(PACE_GATHERED, now - since))));
}

function worth(age: number): number {
  return Math.exp(-Math.max(0, age) / PACE_MEMORY);
}

/** What of the tenants decides how a pace is divided. */
export interface Tenants {
  weightOf(tenant: string): number;
  /** ms that a job of the tenant takes lately, where that is known */
  tookOf(tenant: string): number | undefined;
}

/**
 * The part of the starts of a queue and task that is one lane's, among those with work. What bands and the weights of tenants
 * divide is time: of as much of it, whose jobs take twice as long starts half as many.
 */
export function partOf(lane: Lane, rivals: readonly Lane[], rules: BandRules, { weightOf, tookOf }: Tenants): number {
  const lanes = [lane, ...rivals];
  const bands = [...new Set(lanes.map(({ band }) => band))].sort((a, b) => b - a);
  const parts = rules.strict === true ? bands.map((_, place) => (place === 0 ? 1 : 0)) : bandParts(bands, rules);
  const took = lanes.flatMap(({ tenant }) => tookOf(tenant) ?? []);
  const unknown = took.length === 0 ? 1 : sum(took) / took.length;
  const startsOf = ({ band, tenant }: Lane): number => {
    const beside = new Set(lanes.filter((other) => other.band === band).map((other) => other.tenant));
    const time = (parts[bands.indexOf(band)] as number) * (weightOf(tenant) / sum([...beside].map(weightOf)));
    return time / (tookOf(tenant) ?? unknown);
  };
  return startsOf(lane) / sum(lanes.map(startsOf));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}

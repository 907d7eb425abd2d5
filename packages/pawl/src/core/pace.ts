import { bandParts } from "./band.js";
import type { Lane } from "./lane.js";
import { compareText } from "./lane.js";
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

/** The part of the starts of a queue and task that is one lane's: among those with work, by bands and the weights of tenants. */
export function partOf(lane: Lane, rivals: readonly Lane[], rules: BandRules, weightOf: (tenant: string) => number): number {
  const bands = [...new Set([lane.band, ...rivals.map(({ band }) => band)])].sort((a, b) => b - a);
  const place = bands.indexOf(lane.band);
  const part = rules.strict === true ? (place === 0 ? 1 : 0) : (bandParts(bands, rules)[place] as number);
  const tenants = new Set([lane.tenant, ...rivals.filter(({ band }) => band === lane.band).map(({ tenant }) => tenant)]);
  const total = [...tenants].sort(compareText).reduce((sum, tenant) => sum + weightOf(tenant), 0);
  return part * (weightOf(lane.tenant) / total);
}

import type { Priority } from "./job.js";
import type { BandRules } from "./policy.js";

/** Each band's share of contended workers, unless its queue says otherwise. */
const WEIGHTS: readonly number[] = [1, 1.5, 2, 3, 5, 8, 13, 20, 30, 45];

/** What every band with work gets at least, unless its queue is strict. */
const LEAST = 0.01;

/** A band's weight by default: what queues with rules of their own are weighed by, too. */
export function defaultWeight(band: Priority): number {
  return WEIGHTS[band] as number;
}

/**
 * The parts of 1 that the bands with work get, by their weights, none less than its minimum. What some need to come to
 * their minimum the others give up by weight.
 */
export function bandParts(bands: readonly Priority[], { weights, minimum }: BandRules): readonly number[] {
  const parts = bands.map((band) => ({ weight: weights?.[band] ?? defaultWeight(band), least: minimum?.[band] ?? LEAST, part: 0, fixed: false }));
  for (let changed = true; changed; ) {
    changed = false;
    const open = parts.filter(({ fixed }) => !fixed);
    const left = 1 - parts.reduce((sum, { fixed, part }) => sum + (fixed ? part : 0), 0);
    const total = open.reduce((sum, { weight }) => sum + weight, 0);
    for (const one of open) one.part = Math.max(0, (left * one.weight) / total);
    for (const one of open) {
      if (one.part >= one.least || open.length === 1) continue;
      one.part = one.least;
      one.fixed = true;
      changed = true;
    }
  }
  const total = parts.reduce((sum, { part }) => sum + part, 0);
  return parts.map(({ part }) => part / total);
}

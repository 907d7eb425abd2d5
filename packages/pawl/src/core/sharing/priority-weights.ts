import type { Priority } from "../jobs/job.js";
import type { PriorityRules } from "./policy.js";

/** Each priority's share of contended workers, unless its queue says otherwise. */
const WEIGHTS: readonly number[] = [1, 1.5, 2, 3, 5, 8, 13, 20, 30, 45];

/** What every priority with work gets at least, unless its queue is strict. */
const LEAST = 0.01;

/** A priority's weight by default: what queues with rules of their own are weighed by, too. */
export function defaultWeight(priority: Priority): number {
  return WEIGHTS[priority] as number;
}

/**
 * The parts of 1 that the priorities with work get, by their weights, none less than its minimum. What some need to come to
 * their minimum the others give up by weight.
 */
export function priorityParts(priorities: readonly Priority[], { priorityWeights, priorityMinimum }: PriorityRules): readonly number[] {
  const parts = priorities.map((priority) => ({
    weight: priorityWeights?.[priority] ?? defaultWeight(priority),
    least: priorityMinimum?.[priority] ?? LEAST,
    part: 0,
    fixed: false,
  }));
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

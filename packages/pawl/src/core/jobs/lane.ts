import type { Priority } from "./job.js";

/** The jobs of one (queue, priority, tenant, task), in order: the unit of sharing, pausing and limiting. */
export interface Lane {
  readonly queue: string;
  readonly priority: Priority;
  readonly tenant: string;
  readonly task: string;
}

/** Names hold no control characters, so the separator cannot occur in one. */
export type LaneKey = string & { readonly __lane: unique symbol };

export function laneKey(lane: Lane): LaneKey {
  return `${lane.queue}\u0001${lane.priority}\u0001${lane.tenant}\u0001${lane.task}` as LaneKey;
}

/** The order of lanes in every store: queue, priority, tenant, task, texts by code point. */
export function compareLanes(a: Lane, b: Lane): number {
  return compareText(a.queue, b.queue) || a.priority - b.priority || compareText(a.tenant, b.tenant) || compareText(a.task, b.task);
}

/** Mostly they are the same object, and then their names need not be read. */
export function sameLane(a: Lane, b: Lane): boolean {
  return a === b || compareLanes(a, b) === 0;
}

export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

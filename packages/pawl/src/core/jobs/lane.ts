import type { Priority } from "./job.js";

/** The jobs of one (queue, priority, tenant, task), in order: the unit of sharing, pausing and limiting. */
export interface Lane {
  readonly queue: string;
  readonly priority: Priority;
  readonly tenant: string;
  readonly task: string;
}

/** A lane as one text. Only `laneKey` and `parseLaneKey` know what is in it. */
export type LaneKey = string & { readonly __lane: unique symbol };

/** Names hold no control characters, so it cannot occur in one. */
const SEPARATOR = "\u0001";

export function laneKey(lane: Lane): LaneKey {
  return `${lane.queue}${SEPARATOR}${lane.priority}${SEPARATOR}${lane.tenant}${SEPARATOR}${lane.task}` as LaneKey;
}

export function parseLaneKey(key: LaneKey): Lane {
  const [queue, priority, tenant, task] = key.split(SEPARATOR) as [string, string, string, string];
  return { queue, priority: Number(priority) as Priority, tenant, task };
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

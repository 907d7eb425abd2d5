import { type Lane, laneKey } from "../../../core/jobs/lane.js";
import { plainArray, textArray } from "./arrays.js";

/**
 * The lanes of a batch, each once, as four array parameters; rows refer to them by number (from 1). Most batches
 * have one lane, so this keeps names off the wire.
 */
export class LaneNumbers {
  readonly #numbers = new Map<string, number>();
  readonly #lanes: Lane[] = [];
  #last: Lane | undefined;
  #lastNumber = 0;

  get size(): number {
    return this.#lanes.length;
  }

  number(lane: Lane): number {
    if (lane === this.#last) return this.#lastNumber;
    const key = laneKey(lane);
    let number = this.#numbers.get(key);
    if (number === undefined) {
      number = this.#lanes.push(lane);
      this.#numbers.set(key, number);
    }
    this.#last = lane;
    this.#lastNumber = number;
    return number;
  }

  parameters(): readonly string[] {
    return laneParameters(this.#lanes);
  }
}

/** queue, priority, tenant, task: an array of each */
export function laneParameters(lanes: readonly Lane[]): readonly string[] {
  return [
    textArray(lanes.map((lane) => lane.queue)),
    plainArray(lanes.map((lane) => lane.priority)),
    textArray(lanes.map((lane) => lane.tenant)),
    textArray(lanes.map((lane) => lane.task)),
  ];
}

/** The same as a CTE named `lane`, for the four parameters that begin at `$first`. */
export function laneCte(first: number): string {
  return `lane as materialized (
    select * from unnest($${first}::text[], $${first + 1}::int2[], $${first + 2}::text[], $${first + 3}::text[]) with ordinality as l(queue, priority, tenant, task, no)
  )`;
}

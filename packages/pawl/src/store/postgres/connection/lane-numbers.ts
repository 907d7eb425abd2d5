import { type Lane, laneKey } from "../../../core/jobs/lane.js";

/**
 * The lanes of a batch, each once, as the columns of a record set; rows refer to them by number (from 1). Most batches
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

  columns(): LaneSet {
    return laneColumns(this.#lanes);
  }
}

/** Lanes as a record set. */
export interface LaneSet {
  readonly queue: readonly string[];
  readonly priority: readonly Lane["priority"][];
  readonly tenant: readonly string[];
  readonly task: readonly string[];
}

export function laneColumns(lanes: readonly Lane[]): LaneSet {
  return {
    queue: lanes.map((lane) => lane.queue),
    priority: lanes.map((lane) => lane.priority),
    tenant: lanes.map((lane) => lane.tenant),
    task: lanes.map((lane) => lane.task),
  };
}

import type { Lane } from "../../core/jobs/lane.js";
import type { Reservation } from "../options.js";
import type { WorkerLimit } from "./worker-limits.js";

/**
 * Slots kept for a priority or a tenant: others never take them, so an urgent job finds one free. Where slots are kept
 * nothing is claimed ahead, since what is held would start in them.
 */
export class Reservations implements WorkerLimit {
  readonly until = "handler";
  readonly #reservations: readonly { readonly of: Reservation; used: number }[];
  #used = 0;

  constructor(
    private readonly concurrency: number,
    reservations: readonly Reservation[],
  ) {
    this.#reservations = reservations.map((of) => ({ of, used: 0 }));
  }

  room(lane: Lane): number {
    return this.#left((reservation) => !isFor(reservation, lane));
  }

  take(lane: Lane, count: number): void {
    this.#used += count;
    for (const reservation of this.#reservations) if (isFor(reservation.of, lane)) reservation.used += count;
  }

  /** It may be of a lane that nothing is kept for. */
  admits(tasks: readonly string[]): readonly string[] {
    return this.#left(() => true) > 0 ? tasks : [];
  }

  takeAny(_tasks: readonly string[], count: 1 | -1): void {
    this.#used += count;
  }

  /** Slots with nothing in them, less those that are kept for others. */
  #left(forOthers: (reservation: Reservation) => boolean): number {
    let left = this.concurrency - this.#used;
    for (const { of, used } of this.#reservations) if (forOthers(of)) left -= Math.max(0, of.slots - used);
    return Math.max(0, left);
  }
}

function isFor({ priority, tenant }: Reservation, lane: Lane): boolean {
  return (priority === undefined || priority === lane.priority) && (tenant === undefined || tenant === lane.tenant);
}

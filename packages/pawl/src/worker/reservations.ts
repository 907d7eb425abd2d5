import type { Lane } from "../core/lane.js";
import type { Cap } from "./caps.js";
import type { Reservation } from "./options.js";

/**
 * Slots kept for a band or a tenant: others never take them, so an urgent job finds one free. Where slots are kept
 * nothing is claimed ahead, since what is held would start in them.
 */
export class Reservations implements Cap {
  readonly until = "handler";
  readonly #kept: readonly { readonly of: Reservation; used: number }[];
  #inHand = 0;

  constructor(
    private readonly concurrency: number,
    reservations: readonly Reservation[],
  ) {
    this.#kept = reservations.map((of) => ({ of, used: 0 }));
  }

  room(lane: Lane): number {
    return this.#left((kept) => !isFor(kept, lane));
  }

  take(lane: Lane, count: number): void {
    this.#inHand += count;
    for (const kept of this.#kept) if (isFor(kept.of, lane)) kept.used += count;
  }

  /** It may be of a lane that nothing is kept for. */
  admits(tasks: readonly string[]): readonly string[] {
    return this.#left(() => true) > 0 ? tasks : [];
  }

  takeAny(_tasks: readonly string[], count: 1 | -1): void {
    this.#inHand += count;
  }

  /** Slots with nothing in them, less those that are kept for others. */
  #left(forOthers: (kept: Reservation) => boolean): number {
    let left = this.concurrency - this.#inHand;
    for (const { of, used } of this.#kept) if (forOthers(of)) left -= Math.max(0, of.slots - used);
    return Math.max(0, left);
  }
}

function isFor({ band, tenant }: Reservation, lane: Lane): boolean {
  return (band === undefined || band === lane.band) && (tenant === undefined || tenant === lane.tenant);
}

import type { Priority } from "../core/job.js";
import type { Claimed } from "../store/port.js";

/** ms; what was longest is told for one to two of these */
const SPAN = 60_000;

/** How long jobs had waited at most when they were claimed, by band. Retries wait by design, so they do not count. */
export class Waits {
  #now = new Map<Priority, number>();
  #before = new Map<Priority, number>();
  #begun = 0;

  note({ now, jobs }: Claimed, at: number): void {
    this.#turn(at);
    for (const { lane, dueAt, spent, crashes } of jobs) {
      if (spent > 0 || crashes > 0) continue;
      const waited = now - dueAt;
      if (waited > (this.#now.get(lane.band) ?? -1)) this.#now.set(lane.band, Math.max(0, waited));
    }
  }

  longest(at: number): Readonly<Partial<Record<Priority, number>>> {
    this.#turn(at);
    const longest: Partial<Record<Priority, number>> = {};
    for (const waits of [this.#before, this.#now]) for (const [band, waited] of waits) longest[band] = Math.max(waited, longest[band] ?? 0);
    return longest;
  }

  #turn(at: number): void {
    if (at - this.#begun < SPAN) return;
    this.#before = at - this.#begun < 2 * SPAN ? this.#now : new Map();
    this.#now = new Map();
    this.#begun = at;
  }
}

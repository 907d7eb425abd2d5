import type { Lane } from "../core/lane.js";
import type { Quota } from "../core/offer.js";

/**
 * Something that bounds how many jobs of a lane this worker may have. Room is taken when jobs are asked for and given
 * back when they are over, so that no job is ever claimed and then found to have no room.
 */
export interface Cap {
  /** how many more jobs of the lane may be taken; 0: it is not offered */
  room(lane: Lane): number;
  /** takes (or, negative, gives back) room for so many */
  take(lane: Lane, count: number): void;
  /**
   * When a job gives its room back: when its handler has truly ended, as it keeps its slot until then, also past its timeout.
   * `landing`: only claims under way take room here; what came of them is counted elsewhere.
   */
  readonly until: "handler" | "landing";
  /** it bounds all workers alike, and the store knows why and how: others need not be told */
  readonly ofAll?: true;
  /** false: nothing of this lane will ever be taken here */
  serves?(lane: Lane): boolean;
  /** the lanes that are live, each time the poll has read them */
  refreshed?(lanes: readonly Lane[]): void;
  /** of these tasks, those that a suspect may be claimed of: it may be of any lane */
  admits?(tasks: readonly string[]): readonly string[];
  /** takes room for one job of any of these tasks, or gives it back */
  takeAny?(tasks: readonly string[], count: 1 | -1): void;
}

/** All of them together: a lane has the room that the tightest leaves it. */
export class Caps {
  readonly #kept: readonly Cap[];

  constructor(private readonly caps: readonly Cap[]) {
    this.#kept = caps.filter(({ until }) => until !== "landing");
  }

  room(lane: Lane): number {
    let room = Number.POSITIVE_INFINITY;
    for (const cap of this.caps) room = Math.min(room, cap.room(lane));
    return room;
  }

  /** Whether what bounds this worker alone leaves the lane no room. */
  shuts(lane: Lane): boolean {
    return this.caps.some((cap) => cap.ofAll !== true && cap.room(lane) <= 0);
  }

  serves(lane: Lane): boolean {
    for (const cap of this.caps) if (cap.serves?.(lane) === false) return false;
    return true;
  }

  /** Cuts the quotas to what is left, lane after lane, and takes it: lanes share what bounds them. */
  reserve<Q extends Quota>(quotas: readonly Q[]): readonly Q[] {
    if (this.caps.length === 0) return quotas;
    const granted: Q[] = [];
    for (const asked of quotas) {
      const { lane, quota } = asked;
      const cut = Math.min(quota, this.room(lane));
      if (cut <= 0) continue;
      this.#take(this.caps, lane, cut);
      granted.push(cut === quota ? asked : { ...asked, quota: cut });
    }
    return granted;
  }

  /** Gives back what `reserve` took; the jobs that came are counted one by one. */
  unreserve(quotas: readonly Quota[]): void {
    for (const { lane, quota } of quotas) this.#take(this.caps, lane, -quota);
  }

  /** A job was claimed, or so many. */
  taken(lane: Lane, count = 1): void {
    this.#take(this.#kept, lane, count);
  }

  /** A handler has ended, or was never called. */
  ended(lane: Lane, count = 1): void {
    this.#take(this.#kept, lane, -count);
  }

  refreshed(lanes: readonly Lane[]): void {
    for (const cap of this.caps) cap.refreshed?.(lanes);
  }

  admits(tasks: readonly string[]): readonly string[] {
    return this.caps.reduce((left, cap) => cap.admits?.(left) ?? left, tasks);
  }

  takeAny(tasks: readonly string[], count: 1 | -1): void {
    for (const cap of this.caps) cap.takeAny?.(tasks, count);
  }

  #take(caps: readonly Cap[], lane: Lane, count: number): void {
    for (const cap of caps) cap.take(lane, count);
  }
}

import type { Lane } from "../../core/jobs/lane.js";

/**
 * Something that bounds how many jobs of a lane this worker may have. Room is taken when jobs are asked for and given
 * back when they are over, so that no job is ever claimed and then found to have no room.
 */
export interface WorkerLimit {
  /** how many more jobs of the lane may be taken; 0: it is not claimed from */
  room(lane: Lane): number;
  /** takes (or, negative, gives back) room for so many */
  take(lane: Lane, count: number): void;
  /**
   * When a job gives its room back: when its handler has truly ended, as it keeps its slot until then, also past its timeout.
   * `answer`: only claims under way take room here; what came of them is counted elsewhere.
   */
  readonly until: "handler" | "answer";
  /** it bounds all workers alike, and the store knows why and how: others need not be told */
  readonly clusterWide?: true;
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
export class WorkerLimits {
  readonly #untilHandlerEnd: readonly WorkerLimit[];

  constructor(private readonly limits: readonly WorkerLimit[]) {
    this.#untilHandlerEnd = limits.filter(({ until }) => until !== "answer");
  }

  room(lane: Lane): number {
    let room = Number.POSITIVE_INFINITY;
    for (const limit of this.limits) room = Math.min(room, limit.room(lane));
    return room;
  }

  /** Whether what bounds this worker alone leaves the lane no room. */
  isFull(lane: Lane): boolean {
    return this.limits.some((limit) => limit.clusterWide !== true && limit.room(lane) <= 0);
  }

  serves(lane: Lane): boolean {
    for (const limit of this.limits) if (limit.serves?.(lane) === false) return false;
    return true;
  }

  /** Takes room for so many jobs of a lane. Answers how many there was room for: lanes share what bounds them. */
  reserve(lane: Lane, jobs: number): number {
    const reserved = Math.max(0, Math.min(jobs, this.room(lane)));
    if (reserved > 0) this.#take(this.limits, lane, reserved);
    return reserved;
  }

  /** Gives back what `reserve` took; the jobs that came are counted one by one. */
  unreserve(lane: Lane, jobs: number): void {
    this.#take(this.limits, lane, -jobs);
  }

  /** A job was claimed, or so many. */
  addJobs(lane: Lane, count = 1): void {
    this.#take(this.#untilHandlerEnd, lane, count);
  }

  /** A handler has ended, or was never called. */
  removeJobs(lane: Lane, count = 1): void {
    this.#take(this.#untilHandlerEnd, lane, -count);
  }

  refreshed(lanes: readonly Lane[]): void {
    for (const limit of this.limits) limit.refreshed?.(lanes);
  }

  admits(tasks: readonly string[]): readonly string[] {
    return this.limits.reduce((left, limit) => limit.admits?.(left) ?? left, tasks);
  }

  takeAny(tasks: readonly string[], count: 1 | -1): void {
    for (const limit of this.limits) limit.takeAny?.(tasks, count);
  }

  #take(limits: readonly WorkerLimit[], lane: Lane, count: number): void {
    for (const limit of limits) limit.take(lane, count);
  }
}

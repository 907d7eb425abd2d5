import type { Lane } from "../../core/jobs/lane.js";
import type { ReachedLimit } from "../../core/limits/lane-limit.js";
import { type PolicyRef, policyKey, refsOf } from "../../core/sharing/policy.js";
import type { Clock } from "../../runtime/time/clock.js";
import type { WorkerLimit } from "./worker-limits.js";

/**
 * Keeps lanes back whose limit was found to be reached: until one of its jobs is settled here, a token is there, or the
 * next look at the store. The store is what keeps to limits; this saves asking in vain.
 */
export class LimitBackoff implements WorkerLimit {
  /** It takes no room: the store counts. */
  readonly clusterWide = true;
  readonly until = "answer";
  readonly #reached = new Map<string, { readonly cancel: () => void }>();

  constructor(
    private readonly clock: Clock,
    /** something may be asked for again */
    private readonly onRoom: () => void,
  ) {}

  room(lane: Lane): number {
    if (this.#reached.size === 0) return Number.POSITIVE_INFINITY;
    return refsOf(lane).some((ref) => this.#reached.has(policyKey(ref))) ? 0 : Number.POSITIVE_INFINITY;
  }

  take(): void {}

  /** A job of the lane has given back what it held, in the store as well. Whether that opens anything. */
  jobSettled(lane: Lane): boolean {
    if (this.#reached.size === 0) return false;
    const before = this.#reached.size;
    for (const ref of refsOf(lane)) this.#open(ref);
    return this.#reached.size < before;
  }

  refreshed(): void {
    for (const { cancel } of this.#reached.values()) cancel();
    this.#reached.clear();
  }

  reached(limits: readonly ReachedLimit[]): void {
    for (const limit of limits) {
      this.#open(limit);
      const { retryIn } = limit;
      const open = () => {
        this.#open(limit);
        this.onRoom();
      };
      this.#reached.set(policyKey(limit), { cancel: retryIn === undefined ? () => {} : this.clock.after(Math.ceil(retryIn), open) });
    }
  }

  stop(): void {
    this.refreshed();
  }

  #open(ref: PolicyRef): void {
    const key = policyKey(ref);
    this.#reached.get(key)?.cancel();
    this.#reached.delete(key);
  }
}

import { type Lane, type LaneKey, laneKey } from "../../core/lane.js";
import type { Clock } from "../../runtime/clock.js";
import type { Store } from "../../store/port.js";
import type { LaneStore, LiveLanes } from "../../store/port-lanes.js";

/** ms for which what was seen is believed; hints meanwhile are added to it */
const BELIEVED = 900;
/** ms after which a task that nobody asks for is not looked at any more */
const ASKED_FOR = 10_000;

/**
 * One look at the live lanes for all workers that this process hosts, however many there are: they poll, and the store
 * sees one of them. What was hinted at since the look is in the answer, so that no worker forgets a lane for an old look.
 */
export class Looks implements Pick<LaneStore, "live"> {
  readonly #asked = new Map<string, number>();
  readonly #hinted = new Map<LaneKey, Lane>();
  #seen: { readonly at: number; readonly tasks: ReadonlySet<string>; readonly live: LiveLanes } | undefined;
  #looking: Promise<void> | undefined;
  /** what was seen by looks that began before is not believed any more */
  #changedAt = Number.NEGATIVE_INFINITY;
  readonly #unhear: () => void;

  constructor(
    private readonly store: Pick<Store, "lanes" | "onHint">,
    private readonly clock: Clock,
  ) {
    this.#unhear = store.onHint((hint) => {
      if (hint.kind === "ready") for (const lane of hint.lanes) this.#hinted.set(laneKey(lane), lane);
      // A pause, a policy, a job that nobody told of: what was seen may be wrong.
      if (hint.kind === "lanes" || hint.kind === "look") this.#changedAt = clock.monotonic();
    });
  }

  async live(_queues: readonly string[] | undefined, tasks: readonly string[]): Promise<LiveLanes> {
    const calledAt = this.clock.monotonic();
    for (;;) {
      for (const task of tasks) this.#asked.set(task, this.clock.monotonic());
      if (this.#covers(tasks, calledAt)) break;
      this.#looking ??= this.#look().finally(() => {
        this.#looking = undefined;
      });
      await this.#looking;
    }
    const { live } = this.#seen as { live: LiveLanes };
    return this.#hinted.size === 0 ? live : { ...live, lanes: [...live.lanes, ...this.#hinted.values()] };
  }

  stop(): void {
    this.#unhear();
  }

  /** A look that began after the call is good enough for it, however long it took: the next one may take as long. */
  #covers(tasks: readonly string[], calledAt: number): boolean {
    const seen = this.#seen;
    if (seen === undefined || !tasks.every((task) => seen.tasks.has(task))) return false;
    return seen.at >= calledAt || (seen.at > this.#changedAt && this.clock.monotonic() < seen.at + BELIEVED);
  }

  async #look(): Promise<void> {
    const at = this.clock.monotonic();
    for (const [task, askedAt] of this.#asked) if (at - askedAt > ASKED_FOR) this.#asked.delete(task);
    const tasks = [...this.#asked.keys()];
    this.#hinted.clear();
    const live = await this.store.lanes.live(undefined, tasks);
    this.#seen = { at, tasks: new Set(tasks), live };
  }
}

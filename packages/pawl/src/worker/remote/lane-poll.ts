import { type Lane, type LaneKey, laneKey } from "../../core/jobs/lane.js";
import type { Clock } from "../../runtime/time/clock.js";
import type { LaneStore, LiveLanes } from "../../store/port/claim/lanes.js";
import type { Store } from "../../store/port/index.js";

/** ms for which what was seen is believed; wakeups meanwhile are added to it */
const CACHE_MS = 900;
/** ms after which a task that nobody asks for is not looked at any more */
const TASK_KEPT_MS = 10_000;

/**
 * One poll of the live lanes for all workers that this process hosts, however many there are: they poll, and the store
 * sees one of them. What was hinted at since the poll is in the answer, so that no worker forgets a lane for an old poll.
 */
export class LanePoll implements Pick<LaneStore, "live"> {
  readonly #requestedTasks = new Map<string, number>();
  readonly #newLanes = new Map<LaneKey, Lane>();
  #cached: { readonly at: number; readonly tasks: ReadonlySet<string>; readonly live: LiveLanes } | undefined;
  #polling: Promise<void> | undefined;
  /** what was seen by polls that began before is not believed any more */
  #changedAt = Number.NEGATIVE_INFINITY;
  readonly #unsubscribe: () => void;

  constructor(
    private readonly store: Pick<Store, "lanes" | "onWakeup">,
    private readonly clock: Clock,
  ) {
    this.#unsubscribe = store.onWakeup((wakeup) => {
      if (wakeup.kind === "ready") for (const lane of wakeup.lanes) this.#newLanes.set(laneKey(lane), lane);
      // A pause, a policy, a job that nobody told of: what was seen may be wrong.
      if (wakeup.kind === "lanes" || wakeup.kind === "look") this.#changedAt = clock.monotonic();
    });
  }

  async live(_queues: readonly string[] | undefined, tasks: readonly string[]): Promise<LiveLanes> {
    const calledAt = this.clock.monotonic();
    for (;;) {
      for (const task of tasks) this.#requestedTasks.set(task, this.clock.monotonic());
      if (this.#covers(tasks, calledAt)) break;
      this.#polling ??= this.#poll().finally(() => {
        this.#polling = undefined;
      });
      await this.#polling;
    }
    const { live } = this.#cached as { live: LiveLanes };
    return this.#newLanes.size === 0 ? live : { ...live, lanes: [...live.lanes, ...this.#newLanes.values()] };
  }

  stop(): void {
    this.#unsubscribe();
  }

  /** A poll that began after the call is good enough for it, however long it took: the next one may take as long. */
  #covers(tasks: readonly string[], calledAt: number): boolean {
    const cached = this.#cached;
    if (cached === undefined || !tasks.every((task) => cached.tasks.has(task))) return false;
    return cached.at >= calledAt || (cached.at > this.#changedAt && this.clock.monotonic() < cached.at + CACHE_MS);
  }

  async #poll(): Promise<void> {
    const at = this.clock.monotonic();
    for (const [task, requestedAt] of this.#requestedTasks) if (at - requestedAt > TASK_KEPT_MS) this.#requestedTasks.delete(task);
    const tasks = [...this.#requestedTasks.keys()];
    this.#newLanes.clear();
    const live = await this.store.lanes.live(undefined, tasks);
    this.#cached = { at, tasks: new Set(tasks), live };
  }
}

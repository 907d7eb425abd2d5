import type { DirectHandoff, IdleWorker } from "../../store/port/claim/direct-handoff.js";
import type { ClaimerDeps } from "./claimer.js";

/** ms between wakeups from which on they are few enough for the next job to be worth waiting for */
const CALM_AFTER_MS = 10;

/**
 * Registers the worker as idle while it has nothing in hand and knows of no work, so that the next job is handed to it. With
 * one job in hand it unregisters: another worker may be idle. What arrives in that moment is held like a job claimed
 * ahead.
 */
export class HandoffWaiter {
  readonly #idleWorker: IdleWorker;
  #registered = false;
  #workArrivedAt = Number.NEGATIVE_INFINITY;
  #gap = Number.POSITIVE_INFINITY;
  #stopped = false;

  constructor(
    private readonly deps: ClaimerDeps,
    handoff: DirectHandoff,
    tasks: readonly string[],
  ) {
    const { worker, settings, onClaimed, onError } = deps;
    this.#idleWorker = handoff.of({
      worker,
      queues: settings.queues,
      tasks,
      duration: settings.leaseDuration,
      onHandoff: ({ claimed, since }) => {
        this.#registered = false;
        onClaimed(claimed, since, false);
      },
      onError: (error) => onError("wait for work", error),
    });
  }

  /** Work was heard of. */
  workArrived(): void {
    const now = this.deps.clock.monotonic();
    this.#gap = now - this.#workArrivedAt;
    this.#workArrivedAt = now;
  }

  /** Registers, stays, or unregisters. `idle`: the worker neither knows of work nor asks for any. */
  update(idle: boolean): void {
    const { load, settings, takesAny } = this.deps;
    const empty = load.unstarted === 0 && load.free >= settings.concurrency && takesAny?.() === true;
    if (this.#registered && !empty) {
      this.#registered = false;
      this.#idleWorker.unregister();
    } else if (!this.#registered && empty && idle && !this.#stopped && this.#isCalm()) {
      this.#registered = true;
      this.#idleWorker.register();
    }
  }

  /** Answers once it is unregistered. */
  stop(): Promise<void> {
    this.#stopped = true;
    return this.#idleWorker.close();
  }

  #isCalm(): boolean {
    return this.#gap >= CALM_AFTER_MS || this.deps.clock.monotonic() - this.#workArrivedAt >= CALM_AFTER_MS;
  }
}

/** None where the store has no direct handoff, or jobs would have to be chosen among. What needs a part of this worker is claimed. */
export function handoffWaiterOf(deps: ClaimerDeps): HandoffWaiter | undefined {
  const { store, settings, plans, takesAny } = deps;
  const { handoff } = store;
  if (handoff === undefined || takesAny === undefined || settings.priorities !== undefined || settings.tenants !== undefined) return undefined;
  const tasks = settings.tasks.filter((task) => {
    const options = plans.task(task)?.options;
    return options !== undefined && options.atMostOnce !== true && options.needs === undefined;
  });
  return tasks.length === 0 ? undefined : new HandoffWaiter(deps, handoff, tasks);
}

import type { JobId } from "../core/id.js";
import type { Intent } from "../core/job.js";
import type { WorkerRef } from "../core/lease.js";
import type { LeaseStore } from "../store/port.js";
import type { Attempt } from "./attempt.js";
import type { HeldLease } from "./held-lease.js";

export interface IntentsParts {
  readonly leases: LeaseStore;
  readonly worker: WorkerRef;
  readonly onIntent: (attempt: Attempt, intent: Intent) => void;
  readonly onError: (error: unknown) => void;
}

/** Asks what people asked of the jobs in hand. One question at a time; what is asked meanwhile is asked once more. */
export class Intents {
  #asking = false;
  #again: (() => readonly HeldLease[]) | undefined;

  constructor(private readonly parts: IntentsParts) {}

  ask(choose: () => readonly HeldLease[]): void {
    if (this.#asking) {
      this.#again = choose;
      return;
    }
    const leases = choose();
    if (leases.length === 0) return;
    this.#asking = true;
    void this.#ask(leases).then(() => {
      this.#asking = false;
      const again = this.#again;
      this.#again = undefined;
      if (again !== undefined) this.ask(again);
    });
  }

  async #ask(leases: readonly HeldLease[]): Promise<void> {
    try {
      const found = await this.parts.leases.intents(
        this.parts.worker,
        leases.map(({ id }) => id),
      );
      if (found.length === 0) return;
      const asked = new Map<JobId, Intent>(found.map(({ job, intent }) => [job, intent]));
      for (const { attempts } of leases) {
        for (const attempt of attempts) {
          const intent = asked.get(attempt.job.id);
          if (intent !== undefined && attempt.phase !== "over") this.parts.onIntent(attempt, intent);
        }
      }
    } catch (error) {
      // The next tick asks again.
      this.parts.onError(error);
    }
  }
}

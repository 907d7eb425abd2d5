import type { JobId } from "../core/id.js";
import type { Intent } from "../core/job.js";
import type { WorkerRef } from "../core/lease.js";
import type { Clock } from "../runtime/clock.js";
import type { LeaseStore } from "../store/port-leases.js";
import type { Attempt } from "./attempt.js";
import type { HeldLease } from "./held-lease.js";

export interface IntentsParts {
  readonly leases: LeaseStore;
  readonly worker: WorkerRef;
  readonly clock: Clock;
  readonly running: () => readonly Attempt[];
  readonly onIntent: (attempt: Attempt, intent: Intent) => void;
  readonly onError: (error: unknown) => void;
}

/** Asks what people asked of the jobs in hand. One question at a time; what is asked meanwhile is asked once more. */
export class Intents {
  #asking = false;
  #askedAt = Number.NEGATIVE_INFINITY;
  #again: number | undefined;

  constructor(private readonly parts: IntentsParts) {}

  /** Of the jobs that have run for that long; a claim tells what was asked of its jobs before. ms */
  ask(runningFor: number): void {
    if (this.#asking) {
      this.#again = Math.min(runningFor, this.#again ?? runningFor);
      return;
    }
    const leases = this.#leasesOf(runningFor);
    if (leases.length === 0) return;
    this.#asking = true;
    void this.#ask(leases).then(() => {
      this.#asking = false;
      const again = this.#again;
      this.#again = undefined;
      if (again !== undefined) this.ask(again);
    });
  }

  /** Asks, unless that was done within `every` ms. */
  poll(now: number, every: number): void {
    if (now - this.#askedAt >= every - 1) this.ask(every);
  }

  #leasesOf(runningFor: number): readonly HeldLease[] {
    this.#askedAt = this.parts.clock.monotonic();
    const since = this.#askedAt - runningFor;
    const leases = new Set<HeldLease>();
    for (const { lease, startedAt, cancelled } of this.parts.running()) if (startedAt <= since && !cancelled) leases.add(lease);
    return [...leases];
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

import type { JobId } from "../../core/jobs/id.js";
import type { Intent } from "../../core/jobs/job.js";
import type { WorkerRef } from "../../core/jobs/lease.js";
import type { Clock } from "../../runtime/time/clock.js";
import type { LeaseStore } from "../../store/port/settle/leases.js";
import type { HeldLease } from "../settle/held-lease.js";
import type { Attempt } from "./attempt.js";

export interface IntentPollerDeps {
  readonly leases: LeaseStore;
  readonly worker: WorkerRef;
  readonly clock: Clock;
  readonly running: () => readonly Attempt[];
  readonly onIntent: (attempt: Attempt, intent: Intent) => void;
  readonly onError: (error: unknown) => void;
}

/** Asks what people asked of the jobs in hand. One question at a time; what is asked meanwhile is asked once more. */
export class IntentPoller {
  #checking = false;
  #checkedAt = Number.NEGATIVE_INFINITY;
  #again: number | undefined;

  constructor(private readonly deps: IntentPollerDeps) {}

  /** Of the jobs that have run for that long; a claim tells what was asked of its jobs before. ms */
  check(runningFor: number): void {
    if (this.#checking) {
      this.#again = Math.min(runningFor, this.#again ?? runningFor);
      return;
    }
    const leases = this.#leasesOf(runningFor);
    if (leases.length === 0) return;
    this.#checking = true;
    void this.#check(leases).then(() => {
      this.#checking = false;
      const again = this.#again;
      this.#again = undefined;
      if (again !== undefined) this.check(again);
    });
  }

  /** Asks, unless that was done within `every` ms. */
  poll(now: number, every: number): void {
    if (now - this.#checkedAt >= every - 1) this.check(every);
  }

  #leasesOf(runningFor: number): readonly HeldLease[] {
    this.#checkedAt = this.deps.clock.monotonic();
    const since = this.#checkedAt - runningFor;
    const leases = new Set<HeldLease>();
    for (const { lease, startedAt, cancelled } of this.deps.running()) if (startedAt <= since && !cancelled) leases.add(lease);
    return [...leases];
  }

  async #check(leases: readonly HeldLease[]): Promise<void> {
    try {
      const found = await this.deps.leases.intents(
        this.deps.worker,
        leases.map(({ id }) => id),
      );
      if (found.length === 0) return;
      const intentOf = new Map<JobId, Intent>(found.map(({ job, intent }) => [job, intent]));
      for (const { attempts } of leases) {
        for (const attempt of attempts) {
          const intent = intentOf.get(attempt.job.id);
          if (intent !== undefined && attempt.phase !== "over") this.deps.onIntent(attempt, intent);
        }
      }
    } catch (error) {
      // The next tick asks again.
      this.deps.onError(error);
    }
  }
}

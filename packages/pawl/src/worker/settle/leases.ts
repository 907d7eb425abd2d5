import type { LeaseId } from "../../core/jobs/id.js";
import { stopBy, type WorkerRef } from "../../core/jobs/lease.js";
import type { Clock } from "../../runtime/time/clock.js";
import { loop } from "../../runtime/time/loop.js";
import type { Claimed, LeaseStore, Renewer } from "../../store/port/settle/leases.js";
import { HeldLease } from "./held-lease.js";

export type { Renewer } from "../../store/port/settle/leases.js";

/** The leases this worker holds. Knows when each must be let go if nothing is heard of it. */
export class Leases {
  readonly #leases = new Map<LeaseId, HeldLease>();
  #suspects = 0;

  constructor(
    private readonly renewer: Renewer,
    private readonly duration: number,
    /** a lease with work under it was lost: that work must stop; `told` if the store itself says so */
    private readonly onLost: (lease: HeldLease, why: string, byStore: boolean) => void,
    private readonly onRenewed: () => void = () => {},
  ) {
    renewer.onRenewed((id, at) => this.#renewed(id, at));
    renewer.onLost((id, why) => this.#lose(id, why, true));
  }

  get size(): number {
    return this.#leases.size;
  }

  /** suspects held: one at a time */
  get suspects(): number {
    return this.#suspects;
  }

  all(): IterableIterator<HeldLease> {
    return this.#leases.values();
  }

  add(claimed: Claimed, sentAt: number, answeredAt: number, suspect: boolean): HeldLease {
    const lease = new HeldLease(claimed, sentAt, answeredAt, this.duration, suspect);
    this.#leases.set(lease.id, lease);
    if (suspect) this.#suspects++;
    return lease;
  }

  /** Before the first of its handlers may block this thread, whoever renews it must know of it. */
  hold(lease: HeldLease, latest: number): void {
    lease.latest = latest;
    this.renewer.hold(lease.id, latest);
  }

  /** One of its jobs needs no lease any more. */
  jobSettled(lease: HeldLease): void {
    lease.unsettled--;
    if (lease.unsettled === 0) this.forget(lease);
  }

  /** Nothing of it is in hand any more. */
  forget(lease: HeldLease): void {
    if (!this.#leases.delete(lease.id)) return;
    this.renewer.drop(lease.id);
    if (lease.suspect) this.#suspects--;
  }

  /** Lets go of the leases that were not renewed in time. Answers when the next one would be. */
  fence(now: number): number {
    let next = Number.POSITIVE_INFINITY;
    for (const lease of this.#leases.values()) {
      if (now >= lease.fenceAt) this.#lose(lease.id, "not renewed in time", false);
      else if (lease.fenceAt < next) next = lease.fenceAt;
    }
    return next;
  }

  #renewed(id: LeaseId, at: number): void {
    const lease = this.#leases.get(id);
    if (lease === undefined) return;
    lease.fenceAt = Math.max(lease.fenceAt, stopBy(at, this.duration));
    this.onRenewed();
  }

  #lose(id: LeaseId, why: string, byStore: boolean): void {
    const lease = this.#leases.get(id);
    if (lease === undefined) return;
    // A lease whose last settlement is on its way may be gone before we hear of it: nothing of it is left to lose.
    if (!lease.attempts.some(({ phase }) => phase !== "over")) {
      lease.fenceAt = Number.POSITIVE_INFINITY;
      return;
    }
    lease.lost = true;
    lease.fenceAt = Number.NEGATIVE_INFINITY;
    this.forget(lease);
    this.onLost(lease, why, byStore);
  }
}

export interface LoopRenewerOptions {
  /** ms a renewal lasts */
  readonly duration: number;
  /** ms between renewals */
  readonly every: number;
  readonly onError?: (error: unknown) => void;
}

/**
 * Renews from a timer in this event loop: simple, and good where handlers never block it. A store may offer better.
 * One call renews all leases that are due.
 */
export function loopRenewer(store: LeaseStore, worker: WorkerRef, clock: Clock, { duration, every, onError }: LoopRenewerOptions): Renewer {
  interface RenewalTimer {
    latest: number;
    dueAt: number;
  }
  const timers = new Map<LeaseId, RenewalTimer>();
  let renewed: (lease: LeaseId, at: number) => void = () => {};
  let lost: (lease: LeaseId, why: string) => void = () => {};
  /** Most leases are dropped before they are due: as long as they keep coming, the timer is left alone. */
  let asleep = false;
  let addedSince = false;

  const renewals = loop({
    clock,
    async step() {
      const now = clock.monotonic();
      let next = Number.POSITIVE_INFINITY;
      const due: LeaseId[] = [];
      for (const [lease, timer] of timers) {
        if (now >= timer.latest) timers.delete(lease);
        // Those due soon go along, so that leases taken at different times come to share one call.
        else if (timer.dueAt <= now + every / 2) due.push(lease);
        else next = Math.min(next, timer.dueAt);
      }
      if (due.length > 0) {
        const held = new Set((await store.renew(worker, due, duration)).held);
        for (const lease of due) {
          const timer = timers.get(lease);
          if (timer === undefined) continue;
          if (held.has(lease)) {
            timer.dueAt = now + every;
            next = Math.min(next, timer.dueAt);
            renewed(lease, now);
          } else {
            timers.delete(lease);
            lost(lease, "the store does not know it any more");
          }
        }
      }
      asleep = timers.size === 0 && !addedSince;
      addedSince = false;
      return asleep ? undefined : Math.max(1, Math.min(next - clock.monotonic(), every));
    },
    onError: (error) => onError?.(error),
    // A lease has to be saved within its duration, so giving the store long rests helps nobody.
    backoff: { min: Math.min(100, every / 4), max: Math.min(1_000, every) },
    patience: every,
  });

  return {
    hold(lease, latest) {
      const timer = timers.get(lease);
      if (timer !== undefined) {
        timer.latest = latest;
        return;
      }
      timers.set(lease, { latest, dueAt: clock.monotonic() + every });
      addedSince = true;
      if (!asleep) return;
      asleep = false;
      renewals.wake();
    },
    drop: (lease) => void timers.delete(lease),
    onRenewed(call) {
      renewed = call;
    },
    onLost(call) {
      lost = call;
    },
    async stop() {
      timers.clear();
      // Not waited for: a call that hangs must not hold up a shutdown, and its answer changes nothing now.
      void renewals.stop();
    },
  };
}

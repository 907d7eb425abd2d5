import type { JobId, LeaseId } from "../../core/jobs/id.js";
import { stopBy } from "../../core/jobs/lease.js";
import type { Attempt } from "../run/attempt.js";
import type { HeldLease } from "../settle/held-lease.js";

interface TrackedLease {
  readonly lease: HeldLease;
  readonly attempts: Map<JobId, Attempt>;
}

/**
 * What was leased to a worker elsewhere and is not over, as far as this process knows. It is a memory, not the truth:
 * the store alone says who holds a lease, and what is not known here is read from there.
 */
export class RemoteLeases {
  readonly #leases = new Map<LeaseId, TrackedLease>();
  #suspects = 0;
  #size = 0;

  constructor(
    /** ms that a lease lasts */
    private readonly duration: number,
    /** an attempt needs no slot any more, there or here; `ran`: it was begun */
    private readonly onOver: (attempt: Attempt, ran: boolean) => void,
  ) {}

  get suspects(): number {
    return this.#suspects;
  }

  /** attempts that are not over */
  get size(): number {
    return this.#size;
  }

  *open(): IterableIterator<Attempt> {
    for (const { attempts } of this.#leases.values()) yield* attempts.values();
  }

  add(lease: HeldLease): void {
    this.#leases.set(lease.id, { lease, attempts: new Map(lease.attempts.map((attempt) => [attempt.job.id, attempt])) });
    this.#size += lease.attempts.length;
    if (lease.suspect) this.#suspects++;
  }

  lease(id: LeaseId): HeldLease | undefined {
    return this.#leases.get(id)?.lease;
  }

  find(lease: LeaseId, job: JobId): Attempt | undefined {
    return this.#leases.get(lease)?.attempts.get(job);
  }

  finish(attempt: Attempt): void {
    const tracked = this.#leases.get(attempt.lease.id);
    if (tracked?.attempts.delete(attempt.job.id) !== true) return;
    this.#size--;
    const ran = attempt.phase === "running";
    attempt.phase = "over";
    this.onOver(attempt, ran);
    if (tracked.attempts.size === 0) this.#forget(tracked.lease);
  }

  renewed(id: LeaseId, at: number): void {
    const lease = this.lease(id);
    if (lease !== undefined) lease.fenceAt = Math.max(lease.fenceAt, stopBy(at, this.duration));
  }

  /** The worker has lost it, or this process never heard of it again. */
  drop(id: LeaseId): void {
    const tracked = this.#leases.get(id);
    if (tracked === undefined) return;
    for (const attempt of [...tracked.attempts.values()]) this.finish(attempt);
  }

  /** Forgets what ran out: a worker that vanished, or one that goes on with another process. */
  sweep(now: number): void {
    for (const { lease } of [...this.#leases.values()]) if (now >= lease.fenceAt + this.duration) this.drop(lease.id);
  }

  #forget(lease: HeldLease): void {
    if (this.#leases.delete(lease.id) && lease.suspect) this.#suspects--;
  }
}

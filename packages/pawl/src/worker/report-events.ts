import type { OutcomeKind, Patch } from "../core/jobs/outcome.js";
import type { BreakerState } from "../core/limits/breaker.js";
import type { Bus } from "../runtime/process/bus.js";
import type { Attempt } from "./run/attempt.js";
import type { HeldLease } from "./settle/held-lease.js";

/** What a worker says on the bus. Facts about single attempts are built only if somebody listens. */
export class WorkerEvents {
  constructor(
    private readonly bus: Bus,
    private readonly worker: string,
  ) {}

  claimed({ id, unsettled }: HeldLease): void {
    if (this.bus.hasListeners("jobs.claimed")) this.bus.emit("jobs.claimed", { worker: this.worker, lease: id, count: unsettled });
  }

  started({ job, number }: Attempt): void {
    if (this.bus.hasListeners("attempt.started"))
      this.bus.emit("attempt.started", { job: job.id, lane: job.lane, attempt: number, worker: this.worker });
  }

  settled({ job, number, lease, startedAt }: Attempt, { outcome, next, failure, diedOf, delay }: Patch, duration: number): void {
    if (!this.bus.hasListeners("attempt.settled")) return;
    const sinceDue = Math.max(0, lease.storeTime(startedAt) + duration - job.dueAt);
    const fact = { job: job.id, lane: job.lane, attempt: number, worker: this.worker, outcome, next, duration, sinceDue };
    // Most say no more than this, and there may be a hundred thousand a second.
    if (failure === undefined && delay === undefined) this.bus.emit("attempt.settled", fact);
    else
      this.bus.emit("attempt.settled", {
        ...fact,
        ...(failure === undefined ? {} : { failure }),
        ...(diedOf === undefined ? {} : { diedOf: diedOf.kind }),
        ...(delay === undefined ? {} : { delay }),
      });
  }

  retryFailed({ job, number }: Attempt, why: string): void {
    this.bus.emit("retry.failed", { job: job.id, lane: job.lane, attempt: number, worker: this.worker, reason: why });
  }

  stale({ job }: Attempt, outcome: OutcomeKind): void {
    this.bus.emit("attempt.stale", { job: job.id, worker: this.worker, outcome });
  }

  lost({ id }: HeldLease, jobs: number, why: string): void {
    this.bus.emit("lease.lost", { worker: this.worker, lease: id, jobs, reason: why });
  }

  cancelled({ job }: Attempt): void {
    this.bus.emit("intent.received", { job: job.id, intent: "cancel" });
  }

  blocked(lag: number): void {
    this.bus.emit("worker.blocked", { worker: this.worker, lag });
  }

  breaker({ tenant, task }: { readonly tenant: string; readonly task: string }, state: BreakerState): void {
    this.bus.emit("breaker.changed", { worker: this.worker, tenant, task, state });
  }

  stalled(idleFor: number): void {
    this.bus.emit("worker.stalled", { worker: this.worker, idleFor });
  }

  linesLost(lines: number, error: unknown): void {
    this.bus.emit("lines.lost", { worker: this.worker, lines, error });
  }

  stuck(overrun: number, concurrency: number): void {
    this.bus.emit("worker.stuck", { worker: this.worker, overrun, concurrency });
  }

  unstuck(): void {
    this.bus.emit("worker.unstuck", { worker: this.worker });
  }

  working(): void {
    this.bus.emit("worker.started", { worker: this.worker });
  }

  stopping(running: number): void {
    this.bus.emit("worker.stopping", { worker: this.worker, running });
  }

  stopped(released: number, unended: number): void {
    this.bus.emit("worker.stopped", { worker: this.worker, released, unended });
  }

  failed(step: string, error: unknown): void {
    this.bus.emit("duty.failed", { duty: `worker: ${step}`, error });
  }
}

import { failure, failureOf } from "../../core/jobs/failure.js";
import type { WorkerRef } from "../../core/jobs/lease.js";
import type { Patch } from "../../core/jobs/outcome.js";
import { BOUNDS } from "../../core/values/bounds.js";
import { Backoff } from "../../runtime/time/backoff.js";
import type { Clock } from "../../runtime/time/clock.js";
import type { Store } from "../../store/port/index.js";
import type { Settled, Settlement } from "../../store/port/settle/leases.js";
import type { Attempt } from "../run/attempt.js";
import { isRefused } from "./is-refused.js";

/** A settlement on its way, with the attempt it ends. */
export interface PendingSettlement {
  readonly attempt: Attempt;
  readonly settlement: Settlement;
  /** how often the store refused it alone */
  readonly refusals: number;
}

export interface SettlerDeps {
  readonly store: Store;
  readonly worker: WorkerRef;
  readonly clock: Clock;
  /** settlements waiting or under way from which on no new job should start */
  readonly fullAt: number;
  readonly onAnswer: (pending: PendingSettlement, answer: Settled) => void;
  /** the store was away for so long that the answer does not matter any more, and the worker wants to stop */
  readonly onGivenUp: (pending: PendingSettlement) => void;
  /** called after every answer */
  readonly onProgress: () => void;
  readonly onError: (error: unknown) => void;
}

const MAX_SETTLEMENTS_PER_CALL = 2_000;
const MAX_CALLS = 2;
/** How often the store may refuse one settlement that it was given alone before something simpler is recorded. */
const MAX_REFUSALS = 3;

/** Settlements that wait to be sent, and the calls that others are under way with. */
class SendQueue {
  unsent: PendingSettlement[] = [];
  inFlight = 0;
  calls = 0;

  get pending(): number {
    return this.unsent.length + this.inFlight;
  }

  /** As many as one statement carries, and one at least. */
  take(max: number): readonly PendingSettlement[] {
    let count = 0;
    let size = 0;
    for (const { settlement } of this.unsent) {
      size += sizeOf(settlement);
      if (count === max || (count > 0 && size > BOUNDS.statement)) break;
      count++;
    }
    const batch = count === this.unsent.length ? this.unsent : this.unsent.splice(0, count);
    if (batch === this.unsent) this.unsent = [];
    this.calls++;
    this.inFlight += batch.length;
    return batch;
  }

  finish(batch: readonly PendingSettlement[]): void {
    this.calls--;
    this.inFlight -= batch.length;
  }
}

/**
 * Sends settlements in batches: what gathers in one turn of the event loop goes out together, and while calls are
 * under way the rest gathers on. Those of jobs under limits have calls of their own: others wait for what they hold, and
 * would wait for thousands that hold nothing. A call that fails is repeated until the store answers: the store alone says
 * whether the lease still held. If it refuses a batch as such, smaller ones find the settlement at fault.
 */
export class Settler {
  readonly #unlimited = new SendQueue();
  readonly #limited = new SendQueue();
  readonly #queues = [this.#limited, this.#unlimited] as const;
  #size = MAX_SETTLEMENTS_PER_CALL;
  #scheduled = false;
  #backingOff = false;
  #closing = false;
  readonly #backoff: Backoff;
  #idle: (() => void)[] = [];

  constructor(private readonly deps: SettlerDeps) {
    this.#backoff = new Backoff(deps.clock, { min: 50, max: 2_000 });
  }

  /** settlements the store has not answered */
  get pending(): number {
    return this.#unlimited.pending + this.#limited.pending;
  }

  get full(): boolean {
    return this.pending >= this.deps.fullAt;
  }

  add(attempt: Attempt, patch: Patch, now: number): void {
    const settlement = attempt.settlement(patch, now);
    const queue = settlement.limited === true ? this.#limited : this.#unlimited;
    queue.unsent.push({ attempt, settlement, refusals: 0 });
    this.#schedule();
  }

  /** Answers when nothing is pending. From here on a settlement whose lease has run out here is given up. */
  close(): Promise<void> {
    this.#closing = true;
    if (this.#backingOff) this.#giveUpLate();
    else this.#schedule();
    if (this.pending === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  #schedule(): void {
    if (this.#scheduled || this.#backingOff || !(this.#mayCall(this.#unlimited) || this.#mayCall(this.#limited))) return;
    this.#scheduled = true;
    this.deps.clock.soon(this.#flush);
  }

  /** Beside another call only for as many as that one has: until then, more of them gather for one, unless none are to come. */
  #mayCall({ unsent: { length }, inFlight, calls }: SendQueue): boolean {
    if (length === 0 || calls >= MAX_CALLS) return false;
    return calls === 0 || length >= inFlight || this.full || this.#closing;
  }

  readonly #flush = (): void => {
    this.#scheduled = false;
    if (this.#backingOff) return;
    for (const queue of this.#queues) if (this.#mayCall(queue)) this.#send(queue);
    this.#schedule();
  };

  #send(queue: SendQueue): void {
    const batch = queue.take(this.#size);
    const settlements = batch.map(({ settlement }) => settlement);
    this.deps.store.leases.settle(this.deps.worker, settlements).then(
      (answers) => this.#answered(queue, batch, answers),
      (error: unknown) => this.#failed(queue, batch, error),
    );
  }

  #answered(queue: SendQueue, batch: readonly PendingSettlement[], answers: readonly Settled[]): void {
    queue.finish(batch);
    this.#backoff.reset();
    if (this.#size < MAX_SETTLEMENTS_PER_CALL) this.#size = Math.min(MAX_SETTLEMENTS_PER_CALL, this.#size * 2);
    for (let i = 0; i < batch.length; i++) this.deps.onAnswer(batch[i] as PendingSettlement, answers[i] ?? "stale");
    this.#moveOn();
  }

  #failed(queue: SendQueue, batch: readonly PendingSettlement[], error: unknown): void {
    queue.finish(batch);
    this.deps.onError(error);
    // It was the moment that failed: then the same is sent again, and nothing is judged by it.
    if (!isRefused(error)) {
      queue.unsent = [...batch, ...queue.unsent];
      this.#backOff(this.#backoff.next());
    } else if (batch.length > 1) {
      this.#size = Math.floor(batch.length / 2);
      queue.unsent = [...batch, ...queue.unsent];
      this.#backOff(1);
    } else {
      this.#requeueRefused(queue, batch[0] as PendingSettlement, error);
      this.#backOff(this.#backoff.next());
    }
    if (this.#closing) this.#giveUpLate();
  }

  /** One that the store refuses alone goes to the back, so that it holds up nobody. */
  #requeueRefused(queue: SendQueue, pending: PendingSettlement, error: unknown): void {
    const refusals = pending.refusals + 1;
    if (refusals >= 2 * MAX_REFUSALS) this.deps.onGivenUp(pending);
    else queue.unsent.push({ ...(refusals === MAX_REFUSALS ? simplified(pending, error) : pending), refusals });
  }

  #backOff(ms: number): void {
    if (this.#backingOff) return;
    this.#backingOff = true;
    this.deps.clock.after(ms, () => {
      this.#backingOff = false;
      this.#moveOn();
    });
  }

  #giveUpLate(): void {
    const now = this.deps.clock.monotonic();
    const late: PendingSettlement[] = [];
    for (const queue of this.#queues) {
      late.push(...queue.unsent.filter(({ attempt }) => now >= attempt.lease.fenceAt));
      queue.unsent = queue.unsent.filter(({ attempt }) => now < attempt.lease.fenceAt);
    }
    if (late.length === 0) return;
    for (const pending of late) this.deps.onGivenUp(pending);
    this.#moveOn();
  }

  #moveOn(): void {
    this.#schedule();
    if (this.pending === 0) for (const resolve of this.#idle.splice(0)) resolve();
    this.deps.onProgress();
  }
}

/** In characters, about. */
function sizeOf({ patch: { output, failure } }: Settlement): number {
  const size = output === undefined ? 0 : output.length;
  return failure === undefined ? size : size + JSON.stringify(failure).length;
}

/** An outcome that cannot be stored must not run the job for ever: after a few tries it dies of that, alone. */
function simplified({ attempt, settlement, refusals }: PendingSettlement, error: unknown): PendingSettlement {
  const { attempts, crashes } = settlement.patch;
  const reason = failure("output_unencodable", `the store refused its outcome: ${failureOf(error).message}`);
  return { attempt, settlement: { ...settlement, patch: { outcome: "failed", next: "dead", attempts, crashes, failure: reason } }, refusals };
}

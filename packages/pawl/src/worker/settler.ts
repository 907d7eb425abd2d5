import { BOUNDS } from "../core/bounds.js";
import { failure, failureOf } from "../core/failure.js";
import type { WorkerRef } from "../core/lease.js";
import type { Patch } from "../core/outcome.js";
import { Backoff } from "../runtime/backoff.js";
import type { Clock } from "../runtime/clock.js";
import type { Store } from "../store/port.js";
import type { Settled, Settlement } from "../store/port-leases.js";
import type { Attempt } from "./attempt.js";
import { isRefused } from "./refused.js";

/** A settlement on its way, with the attempt it ends. */
export interface Ending {
  readonly attempt: Attempt;
  readonly settlement: Settlement;
  /** how often the store refused it alone */
  readonly refusals: number;
}

export interface SettlerParts {
  readonly store: Store;
  readonly worker: WorkerRef;
  readonly clock: Clock;
  /** settlements waiting or under way from which on no new job should start */
  readonly fullAt: number;
  readonly onAnswer: (ending: Ending, answer: Settled) => void;
  /** the store was away for so long that the answer does not matter any more, and the worker wants to stop */
  readonly onGivenUp: (ending: Ending) => void;
  /** called after every answer */
  readonly onProgress: () => void;
  readonly onError: (error: unknown) => void;
}

const MOST_PER_CALL = 2_000;
const MOST_CALLS = 2;
/** How often the store may refuse one settlement that it was given alone before something simpler is recorded. */
const MOST_REFUSALS = 3;

/** Settlements that wait to be sent, and the calls that others are under way with. */
class Line {
  waiting: Ending[] = [];
  underWay = 0;
  calls = 0;

  get pending(): number {
    return this.waiting.length + this.underWay;
  }

  /** As many as one statement carries, and one at least. */
  take(most: number): readonly Ending[] {
    let count = 0;
    let size = 0;
    for (const { settlement } of this.waiting) {
      size += sizeOf(settlement);
      if (count === most || (count > 0 && size > BOUNDS.statement)) break;
      count++;
    }
    const batch = count === this.waiting.length ? this.waiting : this.waiting.splice(0, count);
    if (batch === this.waiting) this.waiting = [];
    this.calls++;
    this.underWay += batch.length;
    return batch;
  }

  landed(batch: readonly Ending[]): void {
    this.calls--;
    this.underWay -= batch.length;
  }
}

/**
 * Sends settlements in batches: what gathers in one turn of the event loop goes out together, and while calls are
 * under way the rest gathers on. Those of jobs under limits have calls of their own: others wait for what they hold, and
 * would wait for thousands that hold nothing. A call that fails is repeated until the store answers: the store alone says
 * whether the lease still held. If it refuses a batch as such, smaller ones find the settlement at fault.
 */
export class Settler {
  readonly #usual = new Line();
  readonly #limited = new Line();
  readonly #lines = [this.#limited, this.#usual] as const;
  #size = MOST_PER_CALL;
  #scheduled = false;
  #resting = false;
  #closing = false;
  readonly #backoff: Backoff;
  #idle: (() => void)[] = [];

  constructor(private readonly parts: SettlerParts) {
    this.#backoff = new Backoff(parts.clock, { min: 50, max: 2_000 });
  }

  /** settlements the store has not answered */
  get pending(): number {
    return this.#usual.pending + this.#limited.pending;
  }

  get full(): boolean {
    return this.pending >= this.parts.fullAt;
  }

  add(attempt: Attempt, patch: Patch, now: number): void {
    const settlement = attempt.settlement(patch, now);
    const line = settlement.limited === true ? this.#limited : this.#usual;
    line.waiting.push({ attempt, settlement, refusals: 0 });
    this.#schedule();
  }

  /** Answers when nothing is pending. From here on a settlement whose lease has run out here is given up. */
  close(): Promise<void> {
    this.#closing = true;
    if (this.#resting) this.#giveUpLate();
    else this.#schedule();
    if (this.pending === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  #schedule(): void {
    if (this.#scheduled || this.#resting || !(this.#mayCall(this.#usual) || this.#mayCall(this.#limited))) return;
    this.#scheduled = true;
    this.parts.clock.soon(this.#flush);
  }

  /** Beside another call only for as many as that one has: until then, more of them gather for one, unless none are to come. */
  #mayCall({ waiting: { length }, underWay, calls }: Line): boolean {
    if (length === 0 || calls >= MOST_CALLS) return false;
    return calls === 0 || length >= underWay || this.full || this.#closing;
  }

  readonly #flush = (): void => {
    this.#scheduled = false;
    if (this.#resting) return;
    for (const line of this.#lines) if (this.#mayCall(line)) this.#send(line);
    this.#schedule();
  };

  #send(line: Line): void {
    const batch = line.take(this.#size);
    const settlements = batch.map(({ settlement }) => settlement);
    this.parts.store.leases.settle(this.parts.worker, settlements).then(
      (answers) => this.#answered(line, batch, answers),
      (error: unknown) => this.#failed(line, batch, error),
    );
  }

  #answered(line: Line, batch: readonly Ending[], answers: readonly Settled[]): void {
    line.landed(batch);
    this.#backoff.reset();
    if (this.#size < MOST_PER_CALL) this.#size = Math.min(MOST_PER_CALL, this.#size * 2);
    for (let i = 0; i < batch.length; i++) this.parts.onAnswer(batch[i] as Ending, answers[i] ?? "stale");
    this.#moveOn();
  }

  #failed(line: Line, batch: readonly Ending[], error: unknown): void {
    line.landed(batch);
    this.parts.onError(error);
    // It was the moment that failed: then the same is sent again, and nothing is judged by it.
    if (!isRefused(error)) {
      line.waiting = [...batch, ...line.waiting];
      this.#rest(this.#backoff.next());
    } else if (batch.length > 1) {
      this.#size = Math.floor(batch.length / 2);
      line.waiting = [...batch, ...line.waiting];
      this.#rest(1);
    } else {
      this.#refused(line, batch[0] as Ending, error);
      this.#rest(this.#backoff.next());
    }
    if (this.#closing) this.#giveUpLate();
  }

  /** One that the store refuses alone goes to the back, so that it holds up nobody. */
  #refused(line: Line, ending: Ending, error: unknown): void {
    const refusals = ending.refusals + 1;
    if (refusals >= 2 * MOST_REFUSALS) this.parts.onGivenUp(ending);
    else line.waiting.push({ ...(refusals === MOST_REFUSALS ? simplified(ending, error) : ending), refusals });
  }

  #rest(ms: number): void {
    if (this.#resting) return;
    this.#resting = true;
    this.parts.clock.after(ms, () => {
      this.#resting = false;
      this.#moveOn();
    });
  }

  #giveUpLate(): void {
    const now = this.parts.clock.monotonic();
    const late: Ending[] = [];
    for (const line of this.#lines) {
      late.push(...line.waiting.filter(({ attempt }) => now >= attempt.lease.fenceAt));
      line.waiting = line.waiting.filter(({ attempt }) => now < attempt.lease.fenceAt);
    }
    if (late.length === 0) return;
    for (const ending of late) this.parts.onGivenUp(ending);
    this.#moveOn();
  }

  #moveOn(): void {
    this.#schedule();
    if (this.pending === 0) for (const resolve of this.#idle.splice(0)) resolve();
    this.parts.onProgress();
  }
}

/** In characters, about. */
function sizeOf({ patch: { output, failure } }: Settlement): number {
  const size = output === undefined ? 0 : output.length;
  return failure === undefined ? size : size + JSON.stringify(failure).length;
}

/** An outcome that cannot be stored must not run the job for ever: after a few tries it dies of that, alone. */
function simplified({ attempt, settlement, refusals }: Ending, error: unknown): Ending {
  const { spent, crashes } = settlement.patch;
  const reason = failure("output_unencodable", `the store refused its outcome: ${failureOf(error).message}`);
  return { attempt, settlement: { ...settlement, patch: { outcome: "failed", next: "dead", spent, crashes, failure: reason } }, refusals };
}

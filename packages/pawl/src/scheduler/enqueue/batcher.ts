import type { Enqueued, NewJob } from "../../core/jobs/job.js";
import { BOUNDS } from "../../core/values/bounds.js";
import { isPawlError, type PawlError, pawlError } from "../../core/values/error.js";
import type { Clock } from "../../runtime/time/clock.js";

interface WaitingEnqueue {
  readonly job: NewJob;
  readonly resolve: (answer: Enqueued) => void;
  readonly reject: (error: unknown) => void;
}

/** The answer for each job, or its own error. */
type StoreJobs = (jobs: readonly NewJob[]) => Promise<readonly (Enqueued | PawlError)[]>;

/** Two: while one batch is being committed the next is on its way, and what arrives meanwhile makes the third larger. */
const MAX_RECENT_SENDS = 2;
/** ms after which a batch holds up no other: the disk, or a standby, stands still */
const MAX_RECENT_MS = 10;
/** characters of an input that keeps a statement and its commit from being short */
const LARGE_INPUT_CHARS = 65_536;
/** All that may be on their way at once. */
const MAX_SENDS_IN_FLIGHT = 64;

/**
 * Joins single enqueues into batches: those of one turn of the event loop go out together, and while two batches are
 * on their way, and none of them for long, the rest gathers. Callers are checked before they come here, and the store answers for each job, so
 * that no caller's mistake is another's error; a batch that fails as a whole fails each of them.
 */
export class Batcher {
  #waiting: WaitingEnqueue[] = [];
  #inFlight = 0;
  /** sends in flight that the next batch waits for */
  #recentSends = 0;
  #planned = false;
  #idle: (() => void)[] = [];

  constructor(
    readonly store: StoreJobs,
    readonly clock: Clock,
    readonly limit: number = BOUNDS.enqueueAll,
  ) {}

  add(job: NewJob): Promise<Enqueued> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ job, resolve, reject });
      this.#plan();
    });
  }

  /** Resolves when everything added so far is answered. */
  async idle(): Promise<void> {
    if (this.#waiting.length === 0 && this.#inFlight === 0) return;
    await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  #plan(): void {
    if (this.#planned || !this.#canSend) return;
    this.#planned = true;
    this.clock.soon(() => {
      this.#planned = false;
      while (this.#waiting.length > 0 && this.#canSend) void this.#send();
    });
  }

  get #canSend(): boolean {
    return this.#recentSends < MAX_RECENT_SENDS && this.#inFlight < MAX_SENDS_IN_FLIGHT;
  }

  /** One more is on its way; answers what to call when it is back. */
  #startSend(): () => void {
    this.#inFlight++;
    this.#recentSends++;
    let recent = true;
    const endRecent = () => {
      if (recent) this.#recentSends--;
      recent = false;
      if (this.#waiting.length > 0) this.#plan();
    };
    const cancel = this.clock.after(MAX_RECENT_MS, endRecent);
    return () => {
      cancel();
      this.#inFlight--;
      endRecent();
    };
  }

  async #send(): Promise<void> {
    const [all, rest] = withoutOthersLarge(this.#waiting);
    const count = batchLength(all, this.limit);
    const batch = count === all.length ? all : all.slice(0, count);
    this.#waiting = count === all.length ? rest : [...all.slice(count), ...rest];
    const endSend = this.#startSend();
    try {
      const answers = await this.store(batch.map(({ job }) => job));
      for (const [i, waiting] of batch.entries()) {
        const answer = answers[i] as Enqueued | PawlError;
        if (isPawlError(answer)) waiting.reject(answer);
        else waiting.resolve(answer);
      }
    } catch (error) {
      for (const { job, reject } of batch) reject(ownError(error, job));
    } finally {
      endSend();
      if (this.#waiting.length === 0 && this.#inFlight === 0) for (const resolve of this.#idle.splice(0)) resolve();
    }
  }
}

/**
 * The jobs that may go out with the first one, and the others: a small job does not wait for a statement with large inputs of other tenants. Jobs of one
 * tenant stay together, in their order.
 */
function withoutOthersLarge(waiting: WaitingEnqueue[]): readonly [all: WaitingEnqueue[], rest: WaitingEnqueue[]] {
  const large = new Set<string>();
  for (const { job } of waiting) if (job.input.length > LARGE_INPUT_CHARS) large.add(job.lane.tenant);
  if (large.size === 0) return [waiting, []];
  const isOfLarge = ({ job }: WaitingEnqueue) => large.has(job.lane.tenant);
  const [first] = waiting;
  const firstIsOfLarge = first !== undefined && isOfLarge(first);
  return [waiting.filter((one) => isOfLarge(one) === firstIsOfLarge), waiting.filter((one) => isOfLarge(one) !== firstIsOfLarge)];
}

/** One at least, whatever its size. */
function batchLength(waiting: readonly WaitingEnqueue[], limit: number): number {
  let count = 0;
  let size = 0;
  for (const { job } of waiting) {
    size += job.input.length;
    if (count === limit || (count > 0 && size > BOUNDS.statement)) break;
    count++;
  }
  return count;
}

/** A batch of unknown fate is, to each caller, one job of unknown fate, with what makes repeating it safe. */
function ownError(error: unknown, job: NewJob): unknown {
  if (!isPawlError(error, "enqueue_uncertain")) return error;
  const { idempotencyKey, unique } = job;
  return pawlError("enqueue_uncertain", { ...error.details, count: 1, idempotencyKey: idempotencyKey?.id, key: unique?.key }, error);
}

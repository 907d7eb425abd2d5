import { getHeapStatistics } from "node:v8";
import { pawlError } from "pawl/service";

export interface ValueLimits {
  /** bytes of heap for what is made of all bodies; what an owner has beside its first is bounded by a part of it */
  readonly total?: number;
  /** bytes of heap up to which a body is not counted */
  readonly free?: number;
  /** ms that a body may wait for room */
  readonly wait?: number;
}

const DEFAULTS = { free: 262_144, wait: 5_000 };
/** What is made of bodies may take half of the heap; of one owner's bodies beside its first, an eighth. */
const HEAP_SHARE = 0.5;
const OWNER_SHARE = 0.25;

interface WaitingBody {
  readonly owner: string;
  readonly bytes: number;
  enter(): void;
  refuse(error: unknown): void;
}

/**
 * The heap that the values of large bodies take, from when they are made until their requests are answered: five megabytes of
 * `[],[],…` take a hundred. Owners take turns, one body in a turn of the event loop, so that others are answered in between.
 */
export class ValueBudget {
  readonly #limits: Required<ValueLimits>;
  readonly #bytes = new Map<string, number>();
  #total = 0;
  /** by owner; the first one's turn is next */
  readonly #waiting = new Map<string, WaitingBody[]>();
  #isDue = false;

  constructor(limits: ValueLimits = {}) {
    this.#limits = { total: getHeapStatistics().heap_size_limit * HEAP_SHARE, ...DEFAULTS, ...limits };
  }

  /** bytes that are held */
  get bytes(): number {
    return this.#total;
  }

  /** Waits for room, and answers what gives it back. `signal`: the body is not waited for any more. */
  async enter(owner: string, bytes: number, signal: AbortSignal): Promise<() => void> {
    if (bytes <= this.#limits.free) return () => {};
    await this.#admitted(owner, bytes, signal);
    return () => this.#leave(owner, bytes);
  }

  #admitted(owner: string, bytes: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const done = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", onAbort);
        this.#remove(waiting);
      };
      const waiting: WaitingBody = {
        owner,
        bytes,
        enter: () => {
          done();
          this.#take(owner, bytes);
          resolve();
        },
        refuse: (error) => {
          done();
          reject(error);
        },
      };
      const onAbort = () => waiting.refuse(signal.reason);
      const { wait } = this.#limits;
      const onTimeout = () => waiting.refuse(pawlError("too_many_requests", { what: "a large body", retryAfter: wait }));
      // Where this loop was blocked, timers fire before anybody had a turn.
      const timer = setTimeout(() => setImmediate(() => this.#isWaiting(waiting) && onTimeout()), wait);
      signal.addEventListener("abort", onAbort, { once: true });
      this.#waiting.set(owner, [...(this.#waiting.get(owner) ?? []), waiting]);
      this.#admitNext();
    });
  }

  #take(owner: string, bytes: number): void {
    this.#bytes.set(owner, (this.#bytes.get(owner) ?? 0) + bytes);
    this.#total += bytes;
  }

  #leave(owner: string, bytes: number): void {
    const left = (this.#bytes.get(owner) ?? 0) - bytes;
    if (left > 0) this.#bytes.set(owner, left);
    else this.#bytes.delete(owner);
    this.#total -= bytes;
    this.#admitNext();
  }

  #isWaiting(waiting: WaitingBody): boolean {
    return this.#waiting.get(waiting.owner)?.includes(waiting) === true;
  }

  /** Its owner's next one comes after those of all others. */
  #remove(waiting: WaitingBody): void {
    const rest = (this.#waiting.get(waiting.owner) ?? []).filter((one) => one !== waiting);
    this.#waiting.delete(waiting.owner);
    if (rest.length > 0) this.#waiting.set(waiting.owner, rest);
  }

  #admitNext(): void {
    if (this.#isDue || this.#waiting.size === 0) return;
    this.#isDue = true;
    setImmediate(() => {
      this.#isDue = false;
      const next = [...this.#waiting.values()].map(([first]) => first as WaitingBody).find((first) => this.#hasRoom(first));
      if (next === undefined) return;
      next.enter();
      this.#admitNext();
    });
  }

  /** Whoever holds nothing finds room that others cannot take with their second ones. */
  #hasRoom({ owner, bytes }: WaitingBody): boolean {
    const { total } = this.#limits;
    const own = this.#bytes.get(owner) ?? 0;
    if (own === 0) return this.#total === 0 || this.#total + bytes <= total;
    return own + bytes <= total * OWNER_SHARE && this.#total + bytes <= total / 2;
  }
}

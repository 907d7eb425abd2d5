import { pawlError } from "pawl/service";
import type { Principal } from "../access/principal.js";
import { ownerToEvict, shareOwner } from "./fair-share.js";

export interface LongPollLimits {
  /** at a time, of one credential, and of all */
  readonly perCredential?: number;
  readonly total?: number;
}

const DEFAULTS = { perCredential: 1_000, total: 5_000 };
const RETRY_AFTER_MS = 5_000;

interface OpenPoll {
  readonly credential: string;
  readonly owner: string;
  readonly evict: () => void;
}

/** Requests that are kept open until something happens. Each costs a connection and some memory for as long as its caller likes. */
export class LongPolls {
  readonly #limits: typeof DEFAULTS;
  /** the oldest first */
  readonly #open = new Set<OpenPoll>();
  readonly #byCredential = new Map<string, number>();

  constructor(
    /** what is waited for */
    private readonly what: string,
    limits: LongPollLimits = {},
  ) {
    this.#limits = { ...DEFAULTS, ...limits };
  }

  get size(): number {
    return this.#open.size;
  }

  /**
   * Waits, if there is room for it. When all of it is taken, the youngest of the owner that has most gives way, if that is more
   * than the caller would have. `signal`: aborted when the caller has gone; the one that `wait` is given, also when it has to give way.
   */
  async keepOpen<T>(principal: Principal, signal: AbortSignal, wait: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const ended = new AbortController();
    const credential = JSON.stringify([principal.tenant, principal.name]);
    const poll: OpenPoll = { credential, owner: shareOwner(principal), evict: () => ended.abort(this.#tooMany()) };
    this.#enter(poll);
    const abort = () => ended.abort(signal.reason);
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
    try {
      return await wait(ended.signal);
    } finally {
      signal.removeEventListener("abort", abort);
      this.#leave(poll);
    }
  }

  #enter(poll: OpenPoll): void {
    const { perCredential, total } = this.#limits;
    const own = this.#byCredential.get(poll.credential) ?? 0;
    if (own >= perCredential || (this.#open.size >= total && !this.#makeRoom(poll))) throw this.#tooMany();
    this.#open.add(poll);
    this.#byCredential.set(poll.credential, own + 1);
  }

  #leave(poll: OpenPoll): void {
    if (!this.#open.delete(poll)) return;
    const left = (this.#byCredential.get(poll.credential) ?? 0) - 1;
    if (left > 0) this.#byCredential.set(poll.credential, left);
    else this.#byCredential.delete(poll.credential);
  }

  #makeRoom({ owner }: OpenPoll): boolean {
    const open = [...this.#open];
    const heaviest = ownerToEvict(
      open.map((other) => other.owner),
      owner,
    );
    const youngest = heaviest === undefined ? undefined : open.findLast((other) => other.owner === heaviest);
    if (youngest === undefined) return false;
    this.#leave(youngest);
    youngest.evict();
    return true;
  }

  #tooMany() {
    return pawlError("too_many_requests", { what: this.what, retryAfter: RETRY_AFTER_MS });
  }
}

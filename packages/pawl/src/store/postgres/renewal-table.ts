import type { LeaseId } from "../../core/id.js";

/** A worker holds at least one job per lease, and never this many jobs. */
const PLACES = 65_536;

/**
 * The leases to renew, in memory that the worker and its renewal thread share. Most leases live for milliseconds: a
 * message about each would wake the thread for nothing, and a thread that looks when it is time misses none.
 * Times are absolute: `performance.timeOrigin` plus `performance.now()`.
 */
export class RenewalTable {
  /** 0: the place is free */
  readonly #leases: BigInt64Array;
  readonly #from: Float64Array;
  readonly #until: Float64Array;
  /** how many places were ever used */
  readonly #used: Int32Array;

  constructor(readonly memory: SharedArrayBuffer = new SharedArrayBuffer(8 + PLACES * 24)) {
    this.#used = new Int32Array(memory, 0, 1);
    this.#leases = new BigInt64Array(memory, 8, PLACES);
    this.#from = new Float64Array(memory, 8 + PLACES * 8, PLACES);
    this.#until = new Float64Array(memory, 8 + PLACES * 16, PLACES);
  }

  get used(): number {
    return Atomics.load(this.#used, 0);
  }

  /** The lease comes last: whoever sees it sees its times. */
  put(place: number, lease: LeaseId, from: number, until: number): void {
    if (place >= PLACES) throw new RangeError(`more than ${PLACES} leases`);
    this.#from[place] = from;
    this.#until[place] = until;
    Atomics.store(this.#leases, place, BigInt(lease));
    if (place >= this.used) Atomics.store(this.#used, 0, place + 1);
  }

  extend(place: number, until: number): void {
    this.#until[place] = until;
  }

  clear(place: number): void {
    Atomics.store(this.#leases, place, 0n);
  }

  at(place: number): { readonly lease: bigint; readonly from: number; readonly until: number } | undefined {
    const lease = Atomics.load(this.#leases, place);
    if (lease === 0n) return undefined;
    const entry = { lease, from: this.#from[place] as number, until: this.#until[place] as number };
    // The place may have been given to another meanwhile: its times must not be taken for this one's.
    return Atomics.load(this.#leases, place) === lease ? entry : this.at(place);
  }
}

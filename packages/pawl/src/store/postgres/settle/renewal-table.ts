import type { LeaseId } from "../../../core/jobs/id.js";

/** A worker holds at least one job per lease, and never this many jobs. */
const INDEXES = 65_536;

/**
 * The leases to renew, in memory that the worker and its renewal thread share. Most leases live for milliseconds: a
 * message about each would wake the thread for nothing, and a thread that looks when it is time misses none.
 * Times are absolute: `performance.timeOrigin` plus `performance.now()`.
 */
export class RenewalTable {
  /** 0: the index is free */
  readonly #leases: BigInt64Array;
  readonly #from: Float64Array;
  readonly #until: Float64Array;
  /** how many indexes were ever used */
  readonly #used: Int32Array;

  constructor(readonly memory: SharedArrayBuffer = new SharedArrayBuffer(8 + INDEXES * 24)) {
    this.#used = new Int32Array(memory, 0, 1);
    this.#leases = new BigInt64Array(memory, 8, INDEXES);
    this.#from = new Float64Array(memory, 8 + INDEXES * 8, INDEXES);
    this.#until = new Float64Array(memory, 8 + INDEXES * 16, INDEXES);
  }

  get used(): number {
    return Atomics.load(this.#used, 0);
  }

  /** The lease comes last: whoever sees it sees its times. */
  put(index: number, lease: LeaseId, from: number, until: number): void {
    if (index >= INDEXES) throw new RangeError(`more than ${INDEXES} leases`);
    this.#from[index] = from;
    this.#until[index] = until;
    Atomics.store(this.#leases, index, BigInt(lease));
    if (index >= this.used) Atomics.store(this.#used, 0, index + 1);
  }

  extend(index: number, until: number): void {
    this.#until[index] = until;
  }

  clear(index: number): void {
    Atomics.store(this.#leases, index, 0n);
  }

  at(index: number): { readonly lease: bigint; readonly from: number; readonly until: number } | undefined {
    const lease = Atomics.load(this.#leases, index);
    if (lease === 0n) return undefined;
    const entry = { lease, from: this.#from[index] as number, until: this.#until[index] as number };
    // The index may have been given to another meanwhile: its times must not be taken for this one's.
    return Atomics.load(this.#leases, index) === lease ? entry : this.at(index);
  }
}

import { Readable } from "node:stream";
import { type ExportEntry, pawlError } from "pawl/service";
import type { Principal } from "../access/principal.js";
import { shareOwner } from "./fair-share.js";

export interface ExportLimits {
  /** at a time, of all callers */
  readonly total?: number;
  /** ms that a caller may take for nothing, and bytes a second that it must take beyond that */
  readonly grace?: number;
  readonly minPace?: number;
  /** ms between two looks at whether the caller's credential still holds */
  readonly recheck?: number;
}

const DEFAULTS = { total: 3, grace: 30_000, minPace: 16_384, recheck: 2_000 };
const RETRY_AFTER_MS = 10_000;
/** characters that are sent on together */
const CHUNK_CHARACTERS = 65_536;

export interface ExportCall {
  readonly principal: Principal;
  /** aborted when the caller has gone, or the service stops */
  readonly signal: AbortSignal;
  stillAllowed(): Promise<boolean>;
}

/**
 * Exports that run in this process: one of each owner at a time, and a few of all, since each keeps the store and this process
 * as busy as it can. Who takes its lines too slowly is cut off, or a few such callers would keep all others from theirs.
 */
export class Exports {
  readonly #limits: typeof DEFAULTS;
  readonly #owners = new Set<string>();

  constructor(limits: ExportLimits = {}) {
    this.#limits = { ...DEFAULTS, ...limits };
  }

  get running(): number {
    return this.#owners.size;
  }

  /** The entries as lines of JSON. What goes wrong before the first of them is thrown; later, the stream ends without its last line. */
  async stream(call: ExportCall, entries: () => AsyncIterable<ExportEntry>): Promise<Readable> {
    const owner = shareOwner(call.principal);
    if (this.#owners.has(owner)) throw pawlError("too_many_requests", { what: "an export of the same caller", retryAfter: RETRY_AFTER_MS });
    if (this.#owners.size >= this.#limits.total) throw pawlError("too_many_requests", { what: "an export", retryAfter: RETRY_AFTER_MS });
    this.#owners.add(owner);
    const leave = () => void this.#owners.delete(owner);
    try {
      const iterator = entries()[Symbol.asyncIterator]();
      const lines = new ExportLines(call, await iterator.next(), iterator, this.#limits);
      const stream = Readable.from(lines.chunks(), { highWaterMark: 1 });
      const destroy = () => void stream.destroy();
      lines.onTooSlow = destroy;
      call.signal.addEventListener("abort", destroy, { once: true });
      stream.once("close", leave);
      if (call.signal.aborted) destroy();
      return stream;
    } catch (error) {
      leave();
      throw error;
    }
  }
}

class ExportLines {
  onTooSlow: () => void = () => {};
  #sent = 0;
  /** ms that the caller has been waited for */
  #waited = 0;
  #checkedAt = performance.now();

  constructor(
    private readonly call: ExportCall,
    private readonly first: IteratorResult<ExportEntry, unknown>,
    private readonly rest: AsyncIterator<ExportEntry, unknown>,
    private readonly limits: typeof DEFAULTS,
  ) {}

  async *chunks(): AsyncGenerator<string> {
    try {
      let text = "";
      for (let entry = this.first; entry.done !== true; entry = await this.rest.next()) {
        text += `${JSON.stringify(entry.value)}\n`;
        if (text.length < CHUNK_CHARACTERS) continue;
        yield* this.#sendMeasured(text);
        text = "";
        if (!(await this.#isAllowed())) throw pawlError("unauthenticated");
      }
      if (text !== "") yield text;
    } finally {
      await this.rest.return?.();
    }
  }

  /** Gives the text away, and measures how long that takes: what this process needs for the next one is not the caller's fault. */
  *#sendMeasured(text: string): Generator<string> {
    const { grace, minPace } = this.limits;
    const left = grace + (this.#sent / minPace) * 1_000 - this.#waited;
    const from = performance.now();
    const timer = setTimeout(() => this.onTooSlow(), Math.max(0, left));
    timer.unref();
    try {
      yield text;
    } finally {
      clearTimeout(timer);
      this.#waited += performance.now() - from;
      this.#sent += text.length;
    }
  }

  async #isAllowed(): Promise<boolean> {
    const now = performance.now();
    if (now - this.#checkedAt < this.limits.recheck) return true;
    this.#checkedAt = now;
    return this.call.stillAllowed();
  }
}

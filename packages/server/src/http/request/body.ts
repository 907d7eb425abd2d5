import type { IncomingMessage } from "node:http";
import { MessageChannel } from "node:worker_threads";
import type { PawlError } from "pawl";
import { pawlError } from "pawl/service";
import { BodyBudget, type BodyCaller, type Upload } from "../budgets/body-budget.js";

export interface BodyLimits {
  /** bytes of large bodies that are in memory at a time, of all callers */
  readonly overall?: number;
  /** the same of one caller, beside its oldest large body */
  readonly perCaller?: number;
  /** bytes up to which a body is small: small ones have a budget of the same size of their own, and never wait for large ones */
  readonly small?: number;
  /** bytes per second that a body must bring on average, once its grace is over */
  readonly minPace?: number;
  /** seconds before a body is held to the minimum pace */
  readonly grace?: number;
  /** seconds that a body may be paused, because its caller has others under way */
  readonly wait?: number;
  /** ms between looks at the pace; a second is so long here */
  readonly second?: number;
}

const MEGABYTE = 1_048_576;
const DEFAULTS = { overall: 32 * MEGABYTE, perCaller: 4 * MEGABYTE, small: 16_384, minPace: 16_384, grace: 5, wait: 5, second: 1_000 };

/** `signal`: aborted when the memory of the body is needed for others. */
type UseBody<T> = (body: Buffer, signal: AbortSignal) => T | Promise<T>;

/**
 * Reads bodies within a bounded memory: see `BodyBudget` for who gets how much of it. A body that arrives too slowly is
 * refused, so that nobody keeps memory and connections for long with few bytes.
 */
export class BodyReader {
  readonly #limits: typeof DEFAULTS;
  readonly #small: BodyBudget;
  readonly #large: BodyBudget;
  readonly #reading = new Set<BodyReading>();
  #seconds: NodeJS.Timeout | undefined;

  constructor(limits: BodyLimits = {}) {
    this.#limits = { ...DEFAULTS, ...limits };
    this.#small = new BodyBudget(this.#limits);
    this.#large = new BodyBudget(this.#limits);
  }

  /** bytes of bodies in memory */
  get bytes(): number {
    return this.#small.bytes + this.#large.bytes;
  }

  /** The body of a request, of no more than `limit` bytes, as `use` makes something of it. It may wait, as long as the body may be kept. */
  async read<T>(request: IncomingMessage, { limit, ...caller }: BodyCaller & { readonly limit: number }, use: UseBody<T>): Promise<T> {
    const length = request.headers["content-length"];
    if (length !== undefined && Number(length) > limit) throw pawlError("body_too_large", { limit });
    // A request that was cut off before is silent: it would be waited for without end.
    if (request.destroyed) throw cutOff();
    const reading = new BodyReading(request, caller, { ...this.#limits, limit }, { small: this.#small, large: this.#large });
    this.#reading.add(reading);
    this.#startTimer();
    try {
      return await reading.use(use);
    } finally {
      this.#reading.delete(reading);
      if (this.#reading.size === 0) {
        clearInterval(this.#seconds);
        this.#seconds = undefined;
      }
    }
  }

  /** Seconds are counted, not measured: a process that stood still calls nobody slow. */
  #startTimer(): void {
    this.#seconds ??= setInterval(() => {
      for (const reading of this.#reading) reading.second();
    }, this.#limits.second).unref();
  }
}

class BodyReading implements Upload {
  readonly caller: string;
  readonly owner: string;
  readonly #body: Promise<readonly Buffer[]>;
  #chunks: Buffer[] = [];
  #bytes = 0;
  /** bytes in the budget of large bodies */
  #large = 0;
  #seconds = 0;
  /** undefined: it is not paused */
  #pausedFor: number | undefined;
  #end: (error?: PawlError) => void = () => {};
  readonly #refused = new AbortController();

  constructor(
    private readonly request: IncomingMessage,
    { caller, owner }: BodyCaller,
    private readonly limits: typeof DEFAULTS & { readonly limit: number },
    private readonly budgets: { readonly small: BodyBudget; readonly large: BodyBudget },
  ) {
    this.caller = caller;
    this.owner = owner;
    this.#body = new Promise((resolve, reject) => {
      const onData = (chunk: Buffer) => this.#onData(chunk);
      const end = () => this.#end();
      const onClose = () => this.#end(cutOff());
      this.#end = (error) => {
        request.off("data", onData).off("end", end).off("error", onClose).off("close", onClose);
        this.#end = () => {};
        if (error === undefined) return void resolve(this.#chunks);
        request.pause();
        this.#drop();
        reject(error);
      };
      request.on("data", onData).on("end", end).on("error", onClose).on("close", onClose);
    });
  }

  /** Its memory is given back as soon as it was used. */
  async use<T>(use: UseBody<T>): Promise<T> {
    const body = joined(await this.#body);
    this.#chunks = [body];
    try {
      return await use(body, this.#refused.signal);
    } finally {
      this.#drop();
    }
  }

  pause(): void {
    this.#pausedFor ??= 0;
    this.request.pause();
  }

  resume(): void {
    if (this.#pausedFor === undefined) return;
    this.#pausedFor = undefined;
    this.request.resume();
  }

  refuse(): void {
    const error = tooManyBodies(this.limits);
    this.#end(error);
    this.#refused.abort(error);
  }

  second(): void {
    const { wait, grace, minPace } = this.limits;
    if (this.#pausedFor !== undefined) {
      if (++this.#pausedFor > wait) this.#end(tooManyBodies(this.limits));
    } else if (this.#bytes < (++this.#seconds - grace) * minPace) this.#end(pawlError("request_timeout"));
  }

  #onData(chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#bytes > this.limits.limit) return void this.#end(pawlError("body_too_large", { limit: this.limits.limit }));
    this.#chunks.push(chunk);
    const { small, large } = this.budgets;
    if (this.#bytes <= this.limits.small) return void small.add(this, chunk.length);
    small.remove(this);
    const more = this.#bytes - this.#large;
    this.#large = this.#bytes;
    large.add(this, more);
  }

  #drop(): void {
    const chunks = this.#chunks.splice(0);
    if (this.#large > 0) release(chunks);
    this.budgets.small.remove(this);
    this.budgets.large.remove(this);
  }
}

function joined(chunks: readonly Buffer[]): Buffer {
  if (chunks.length === 1) return chunks[0] as Buffer;
  const body = Buffer.concat(chunks);
  release(chunks);
  return body;
}

/** Leads nowhere: what is handed over to it is gone. */
const { port1: nowhere } = new MessageChannel();
nowhere.close();

/**
 * Gives memory back at once: the collector, which counts a buffer as a few bytes, would let tens of megabytes of them lie
 * before it looked. Not what is part of a larger piece, since others have the rest of that.
 */
function release(buffers: readonly Buffer[]): void {
  for (const { buffer, byteLength } of buffers) {
    if (byteLength === buffer.byteLength) nowhere.postMessage(null, [buffer as ArrayBuffer]);
  }
}

function tooManyBodies({ wait, second }: { readonly wait: number; readonly second: number }): PawlError {
  return pawlError("too_many_requests", { what: "a large body", retryAfter: wait * second });
}

function cutOff(): PawlError {
  return pawlError("request_malformed", { reason: "it ended before its body did" });
}

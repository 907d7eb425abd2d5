import type { IncomingMessage } from "node:http";
import { MessageChannel } from "node:worker_threads";
import { pawlError } from "pawl";

export interface BodyLimits {
  /** bytes of bodies that are read at a time, over all requests; a larger one is read alone */
  readonly atATime?: number;
  /** bytes of a body that is read at once, whatever else is: what most requests are */
  readonly small?: number;
  /** ms after which a body that was not begun with is refused */
  readonly patience?: number;
}

const DEFAULTS = { atATime: 8 * 1_048_576, small: 16_384, patience: 5_000 };

interface Waiting {
  readonly bytes: number;
  go(): void;
}

/**
 * Reads bodies, so many bytes at a time over all requests: however many callers send large ones at once, the memory that
 * they take is bounded. The others wait their turn with what they send left in the kernel's hands.
 */
export class Bodies {
  readonly #limits: typeof DEFAULTS;
  readonly #waiting = new Set<Waiting>();
  #taken = 0;

  constructor(limits: BodyLimits = {}) {
    this.#limits = { ...DEFAULTS, ...limits };
  }

  /** bytes that are promised to those who read */
  get taken(): number {
    return this.#taken;
  }

  /** The body of a request, of no more than `limit` bytes, as `use` makes something of it. */
  async read<T>(request: IncomingMessage, limit: number, use: (body: Buffer) => T): Promise<T> {
    const told = request.headers["content-length"];
    const length = told === undefined ? undefined : Number(told);
    if (length !== undefined && length > limit) throw pawlError("body_too_large", { limit });
    // Of one that is gone already nothing is heard any more.
    if (request.destroyed) throw cutOff();
    // One that does not say how long it is may be as long as it can be.
    const bytes = length ?? limit;
    if (bytes <= this.#limits.small) return use(joined(await collected(request, limit)));
    await this.#turn(request, bytes);
    try {
      if (request.destroyed) throw cutOff();
      const body = joined(await collected(request, limit));
      try {
        return use(body);
      } finally {
        release([body]);
      }
    } finally {
      this.#taken -= bytes;
      this.#next();
    }
  }

  #fits(bytes: number): boolean {
    return this.#taken === 0 || this.#taken + bytes <= this.#limits.atATime;
  }

  async #turn(request: IncomingMessage, bytes: number): Promise<void> {
    // Whoever came first goes first, or a large one would wait for ever.
    if (this.#waiting.size === 0 && this.#fits(bytes)) {
      this.#taken += bytes;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const leave = () => {
        clearTimeout(timer);
        request.off("close", gone);
        this.#waiting.delete(waiting);
      };
      const refuse = (error: Error) => {
        leave();
        reject(error);
        this.#next();
      };
      const gone = () => refuse(cutOff());
      const { patience } = this.#limits;
      const timer = setTimeout(() => refuse(pawlError("too_many_requests", { what: "a large body", retryAfter: patience })), patience);
      const waiting: Waiting = {
        bytes,
        go: () => {
          leave();
          this.#taken += bytes;
          resolve();
        },
      };
      request.once("close", gone);
      this.#waiting.add(waiting);
    });
  }

  #next(): void {
    for (const waiting of this.#waiting) {
      if (!this.#fits(waiting.bytes)) return;
      waiting.go();
    }
  }
}

function collected(request: IncomingMessage, limit: number): Promise<readonly Buffer[]> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const stop = () => {
      request.off("data", hear).off("end", end).off("error", gone).off("close", gone);
    };
    const hear = (chunk: Buffer) => {
      length += chunk.length;
      if (length <= limit) return void chunks.push(chunk);
      stop();
      request.pause();
      release(chunks.splice(0));
      reject(pawlError("body_too_large", { limit }));
    };
    const end = () => {
      stop();
      resolve(chunks);
    };
    const gone = () => {
      stop();
      release(chunks.splice(0));
      reject(cutOff());
    };
    request.on("data", hear).on("end", end).on("error", gone).on("close", gone);
  });
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

function cutOff(): Error {
  return pawlError("request_malformed", { reason: "it ended before its body did" });
}

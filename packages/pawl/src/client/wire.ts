import { PawlError, pawlError } from "../core/error.js";
import { keepAlive } from "../runtime/alive.js";
import { Backoff } from "../runtime/backoff.js";
import type { Clock } from "../runtime/clock.js";
import { type HttpAnswer, HttpConnections, HttpFailure, type HttpPool, type SecureOptions, textOf } from "../runtime/http.js";
import { newBootId } from "../runtime/identity.js";
import { closedError } from "../store/closable.js";
import { problemOf } from "./problem.js";

export interface WireOptions {
  /** an API key of the service */
  readonly key?: string;
  /** of an https:// address: what its certificate is checked against, and a certificate of one's own */
  readonly tls?: SecureOptions;
}

export interface Call {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly query?: Readonly<Record<string, unknown>>;
  /** JSON */
  readonly body?: string;
  /** ms; longer than the service may take */
  readonly timeout?: number;
  readonly signal?: AbortSignal;
  /** whether doing it twice is doing it once: it is then repeated after a failure whose fate is unknown. GET always is */
  readonly repeatable?: boolean;
  /** how often it is tried; several times unless set */
  readonly tries?: number;
  readonly pool?: HttpPool;
}

const TIMEOUT = 30_000;
const TRIES = 4;

/**
 * Calls of the service. What failed before it can have been carried out, and what is safe to repeat, is tried again a few
 * times; writes carry an `Idempotency-Key`, where the service keeps them, so that they are. The error of a call that may have
 * been carried out all the same has `unheard` among its details.
 */
export class Wire {
  readonly #connections: HttpConnections;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #base: string;
  /** the service does not keep answers by key */
  #keyless = false;

  constructor(
    readonly url: URL,
    { key, tls }: WireOptions,
    readonly clock: Clock,
  ) {
    this.#connections = new HttpConnections(url, tls);
    this.#base = url.pathname.replace(/\/$/, "");
    this.#headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
  }

  get(path: string, query?: Call["query"]): Promise<unknown> {
    return this.json({ method: "GET", path, ...(query === undefined ? {} : { query }) });
  }

  post(path: string, body: unknown = {}, query?: Call["query"]): Promise<unknown> {
    return this.json({ method: "POST", path, body: JSON.stringify(body), ...(query === undefined ? {} : { query }) });
  }

  async json(call: Call): Promise<unknown> {
    const { text } = await this.call(call);
    return text === "" ? undefined : (JSON.parse(text) as unknown);
  }

  async call(call: Call): Promise<HttpAnswer> {
    const backoff = new Backoff(this.clock, { min: 50, max: 2_000 });
    const keyed = call.method !== "GET" && call.repeatable !== true;
    const idempotency = keyed ? { "idempotency-key": newBootId() } : {};
    const most = call.tries ?? TRIES;
    const timeout = call.timeout ?? TIMEOUT;
    let patience: number | undefined;
    let unheard = false;
    for (let tries = 1; ; tries++) {
      this.checkOpen();
      const named = this.#keyless ? {} : idempotency;
      const safe = !keyed || !this.#keyless;
      try {
        const answer = await this.#connections.send({
          method: call.method,
          path: this.#pathOf(call),
          headers: { ...this.#headers, ...named, ...(call.body === undefined ? {} : { "content-type": "application/json" }) },
          timeout,
          ...(call.body === undefined ? {} : { body: call.body }),
          ...(call.signal === undefined ? {} : { signal: call.signal }),
          ...(call.pool === undefined ? {} : { pool: call.pool }),
        });
        if (answer.status < 400) return answer;
        const problem = problemOf(answer);
        const { code, details } = problem;
        if (code === "field_invalid" && details.pointer === "Idempotency-Key") {
          this.#keyless = true;
          continue;
        }
        if (code === "idempotency_in_flight") {
          // An earlier try is being served right now. That is no failure, and its answer is worth as long a wait again.
          patience ??= this.clock.monotonic() + timeout;
          if (this.clock.monotonic() >= patience) throw unheardOf(problem);
          tries--;
        } else {
          if (!PASSING.has(code)) throw problem;
          unheard ||= details.unheard === true;
          if (tries >= most || !safe) throw unheard ? unheardOf(problem) : problem;
        }
        await this.#rest(backoff, call);
      } catch (error) {
        if (!(error instanceof HttpFailure)) throw error;
        call.signal?.throwIfAborted();
        unheard ||= !error.unsent;
        if (this.#connections.closed) throw unheard && keyed ? unheardOf(closedError()) : closedError();
        if (tries >= most || !(safe || error.unsent)) throw unheard ? unheardOf(this.#failed(error)) : this.#failed(error);
        await this.#rest(backoff, call);
      }
    }
  }

  /** A stream that stays open: server-sent events. */
  async stream(path: string, query: Call["query"], headers: Readonly<Record<string, string>>, signal: AbortSignal) {
    this.checkOpen();
    const response = await this.#connections.open({
      method: "GET",
      path: this.#pathOf({ path, ...(query === undefined ? {} : { query }) }),
      headers: { ...this.#headers, ...headers, accept: "text/event-stream" },
      timeout: 45_000,
      signal,
    });
    if (response.statusCode === 200) return response;
    throw problemOf({ status: response.statusCode ?? 0, headers: response.headers, text: await textOf(response) });
  }

  close(): void {
    this.#connections.close();
  }

  /** Throws if it is closed. What fails from then on fails of that. */
  checkOpen(cause?: unknown): void {
    if (this.#connections.closed) throw closedError(cause);
  }

  #pathOf({ path, query = {} }: Pick<Call, "path" | "query">): string {
    const said = Object.entries(query).filter(([, value]) => value !== undefined);
    const search = new URLSearchParams(
      said.map(([name, value]): [string, string] => [name, value instanceof Date ? value.toISOString() : String(value)]),
    );
    return `${this.#base}${path}${said.length === 0 ? "" : `?${search}`}`;
  }

  #failed(error: HttpFailure): PawlError {
    return pawlError(
      "store_unreachable",
      { store: this.url.origin, reason: error.message || (error.cause.code ?? "the connection broke") },
      error.cause,
    );
  }

  /** Between two tries no socket is open, but somebody waits for the answer: the process must not end for want of work. */
  async #rest(backoff: Backoff, { signal }: Call): Promise<void> {
    const release = keepAlive();
    await new Promise<void>((resolve) => {
      const cancel = this.clock.after(backoff.next(), resolve);
      signal?.addEventListener("abort", () => {
        cancel();
        resolve();
      });
    });
    release();
  }
}

function unheardOf({ code, details, help, message, cause }: PawlError): PawlError {
  return new PawlError(code, { ...details, unheard: true }, help, message, { cause });
}

/** Errors that pass by themselves, and one that a repetition with the same key clears up. */
const PASSING: ReadonlySet<string> = new Set(["enqueue_unknown", "store_unreachable", "service_stopping", "service_starting", "closed"]);

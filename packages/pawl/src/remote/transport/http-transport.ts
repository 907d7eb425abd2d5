import { PawlError, pawlError } from "../../core/values/error.js";
import { type HttpAnswer, HttpConnections, HttpFailure, type HttpPool, type SecureOptions, textOf } from "../../runtime/io/http.js";
import { newInstanceId } from "../../runtime/process/identity.js";
import { keepAlive } from "../../runtime/process/keep-alive.js";
import { Backoff } from "../../runtime/time/backoff.js";
import type { Clock } from "../../runtime/time/clock.js";
import { closedError } from "../../store/wrap/closable.js";
import { problemOf } from "./problem.js";

export interface ServiceOptions {
  /** an API key of the service */
  readonly apiKey?: string;
  /** of an https:// address: what its certificate is checked against, and a certificate of one's own */
  readonly tls?: SecureOptions;
}

export interface ServiceCall {
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

const TIMEOUT_MS = 30_000;
const MAX_TRIES = 4;

/**
 * Calls of the service. What failed before it can have been carried out, and what is safe to repeat, is tried again a few
 * times; writes carry an `Idempotency-Key`, where the service keeps them, so that they are. The error of a call that may have
 * been carried out all the same has `uncertain` among its details.
 */
export class HttpTransport {
  readonly #connections: HttpConnections;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #base: string;
  /** the service does not keep answers by key */
  #keyless = false;

  constructor(
    readonly url: URL,
    { apiKey, tls }: ServiceOptions,
    readonly clock: Clock,
  ) {
    this.#connections = new HttpConnections(url, tls);
    this.#base = url.pathname.replace(/\/$/, "");
    this.#headers = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
  }

  get(path: string, query?: ServiceCall["query"]): Promise<unknown> {
    return this.json({ method: "GET", path, ...(query === undefined ? {} : { query }) });
  }

  post(path: string, body: unknown = {}, query?: ServiceCall["query"]): Promise<unknown> {
    return this.json({ method: "POST", path, body: JSON.stringify(body), ...(query === undefined ? {} : { query }) });
  }

  async json(call: ServiceCall): Promise<unknown> {
    const { text } = await this.call(call);
    return text === "" ? undefined : (JSON.parse(text) as unknown);
  }

  async call(call: ServiceCall): Promise<HttpAnswer> {
    const backoff = new Backoff(this.clock, { min: 50, max: 2_000 });
    const keyed = call.method !== "GET" && call.repeatable !== true;
    const idempotency = keyed ? { "idempotency-key": newInstanceId() } : {};
    const maxTries = call.tries ?? MAX_TRIES;
    const timeout = call.timeout ?? TIMEOUT_MS;
    let patience: number | undefined;
    let uncertain = false;
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
          if (this.clock.monotonic() >= patience) throw asUncertain(problem);
          tries--;
        } else {
          if (!PASSING_CODES.has(code)) throw problem;
          uncertain ||= details.uncertain === true;
          if (tries >= maxTries || !safe) throw uncertain ? asUncertain(problem) : problem;
        }
        await this.#backOff(backoff, call);
      } catch (error) {
        if (!(error instanceof HttpFailure)) throw error;
        call.signal?.throwIfAborted();
        uncertain ||= !error.unsent;
        if (this.#connections.closed) throw uncertain && keyed ? asUncertain(closedError()) : closedError();
        if (tries >= maxTries || !(safe || error.unsent)) throw uncertain ? asUncertain(this.#failed(error)) : this.#failed(error);
        await this.#backOff(backoff, call);
      }
    }
  }

  /** A stream that stays open: server-sent events. */
  async stream(path: string, query: ServiceCall["query"], headers: Readonly<Record<string, string>>, signal: AbortSignal) {
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

  #pathOf({ path, query = {} }: Pick<ServiceCall, "path" | "query">): string {
    const params = Object.entries(query).filter(([, value]) => value !== undefined);
    const search = new URLSearchParams(
      params.map(([name, value]): [string, string] => [name, value instanceof Date ? value.toISOString() : String(value)]),
    );
    return `${this.#base}${path}${params.length === 0 ? "" : `?${search}`}`;
  }

  #failed(error: HttpFailure): PawlError {
    return pawlError(
      "store_unreachable",
      { store: this.url.origin, reason: error.message || (error.cause.code ?? "the connection broke") },
      error.cause,
    );
  }

  /** Between two tries no socket is open, but somebody waits for the answer: the process must not end for want of work. */
  async #backOff(backoff: Backoff, { signal }: ServiceCall): Promise<void> {
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

function asUncertain({ code, details, help, message, cause }: PawlError): PawlError {
  return new PawlError(code, { ...details, uncertain: true }, help, message, { cause });
}

/** Errors that pass by themselves, and one that a repetition with the same key clears up. */
const PASSING_CODES: ReadonlySet<string> = new Set(["enqueue_uncertain", "store_unreachable", "service_stopping", "service_starting", "closed"]);

import type { EventName, Events } from "../../core/observe/event.js";
import { Bus } from "../../runtime/process/bus.js";
import { Backoff } from "../../runtime/time/backoff.js";
import type { HttpTransport } from "../transport/http-transport.js";

/**
 * What happens in the service, as server-sent events: one stream for all listeners here, open while there are any. A
 * stream that broke goes on where it was, as far back as the service remembers.
 */
export class RemoteEvents {
  readonly #listeners = new Map<EventName, number>();
  readonly #bus = new Bus();
  #stream: AbortController | undefined;
  #last: string | undefined;

  constructor(
    private readonly transport: HttpTransport,
    /** what the workers of this process tell of themselves */
    private readonly local: Bus,
  ) {}

  on<E extends EventName>(name: E, listener: (event: Events[E]) => void): () => void {
    if (LOCAL_EVENTS.has(name)) return this.local.on(name, listener);
    const off = this.#bus.on(name, listener);
    const first = !this.#listeners.has(name);
    this.#listeners.set(name, (this.#listeners.get(name) ?? 0) + 1);
    if (first) this.#listen();
    return () => {
      off();
      const left = (this.#listeners.get(name) ?? 1) - 1;
      if (left > 0) this.#listeners.set(name, left);
      else this.#listeners.delete(name);
      if (this.#listeners.size === 0) this.close();
    };
  }

  close(): void {
    this.#stream?.abort();
    this.#stream = undefined;
  }

  /** Anew, for all that is listened for now. */
  #listen(): void {
    this.#stream?.abort();
    const own = new AbortController();
    this.#stream = own;
    this.transport.clock.soon(() => {
      if (!own.signal.aborted) void this.#follow(own.signal);
    });
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const backoff = new Backoff(this.transport.clock, { min: 100, max: 5_000 });
    while (!signal.aborted) {
      try {
        const names = [...this.#listeners.keys()];
        const headers = this.#last === undefined ? {} : { "last-event-id": this.#last };
        const response = await this.transport.stream("/v1/events", { event: names.join(",") }, headers, signal);
        backoff.reset();
        for await (const { id, event, data } of parseEvents(response)) {
          if (id !== undefined) this.#last = id;
          if (event !== undefined && this.#listeners.has(event as EventName))
            this.#bus.emit(event as EventName, JSON.parse(data) as Events[EventName]);
        }
      } catch (error) {
        if (signal.aborted) return;
        this.local.emit("duty.failed", { duty: "hear of events", error });
      }
      await new Promise<void>((resolve) => this.transport.clock.after(backoff.next(), resolve));
    }
  }
}

/** What is about this process and its workers; of all else the service tells. */
const LOCAL_EVENTS: ReadonlySet<EventName> = new Set([
  "worker.started",
  "worker.stopping",
  "worker.stopped",
  "worker.stalled",
  "lines.lost",
  "worker.stuck",
  "worker.unstuck",
  "lease.lost",
  "attempt.stale",
  "worker.blocked",
  "retry.failed",
  "intent.received",
  "store.operation",
  "duty.ran",
  "duty.failed",
  "maintenance.polled",
]);

interface SentEvent {
  readonly id: string | undefined;
  readonly event: string | undefined;
  readonly data: string;
}

/** The lines of a `text/event-stream`, put together to events. */
export async function* parseEvents(chunks: AsyncIterable<unknown>): AsyncGenerator<SentEvent> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of chunks) {
    rest += decoder.decode(chunk as Uint8Array, { stream: true });
    for (let end = rest.indexOf("\n\n"); end >= 0; end = rest.indexOf("\n\n")) {
      const sent = parseEvent(rest.slice(0, end));
      rest = rest.slice(end + 2);
      if (sent !== undefined) yield sent;
    }
  }
}

function parseEvent(block: string): SentEvent | undefined {
  const fields = new Map<string, string>();
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 1).trimStart());
  }
  const data = fields.get("data");
  return data === undefined ? undefined : { id: fields.get("id"), event: fields.get("event"), data };
}

import { Readable } from "node:stream";
import { type ClusterEvents, type EventBatch, type EventTail, pawlError, RECORDED_EVENTS } from "pawl/service";
import type { Principal } from "../access/principal.js";
import { ownerToEvict, shareOwner } from "../budgets/fair-share.js";
import type { StreamCall } from "../handler.js";
import { type EventFilter, GAP_EVENT, isVisibleTo, lastSeenOf, type StreamEvent, streamEventsOf } from "./stream-event.js";

export interface HubOptions {
  /** streams of one credential, and of all */
  readonly perCredential?: number;
  readonly streams?: number;
}

const DEFAULTS = { perCredential: 500, streams: 2_000 };
/** ms: callers are asked again who they are; a sign of life for proxies; and nobody has listened for so long */
const RECHECK_INTERVAL_MS = 1_000;
const KEEPALIVE_INTERVAL_MS = 15_000;
const IDLE_TAIL_MS = 60_000;
/** bytes a slow reader may be behind: then it is cut off, and can come back for the rest */
const MAX_BEHIND_BYTES = 1_048_576;

interface EventStream {
  readonly call: StreamCall;
  readonly filter: EventFilter;
  readonly out: Readable;
  /** it has been told everything up to this batch, and hears of the next ones; undefined: it is still catching up */
  after: number | undefined;
}

/**
 * Tells callers what happens in every process on the store. One tail of it serves all streams; while nobody has listened for
 * a minute, there is none.
 */
export class EventHub {
  readonly #options: typeof DEFAULTS;
  readonly #streams = new Set<EventStream>();
  #tail: Promise<EventTail> | undefined;
  /** those who catch up do so one after the other: many may come back at once */
  #catching: Promise<unknown> = Promise.resolve();
  #rounds: NodeJS.Timeout | undefined;
  #idleSince: number | undefined;

  constructor(
    readonly events: ClusterEvents,
    options: HubOptions = {},
  ) {
    this.#options = { ...DEFAULTS, ...options };
  }

  async subscribe(call: StreamCall): Promise<Readable> {
    const { perCredential, streams } = this.#options;
    const own = [...this.#streams].filter((stream) => stream.call.principal.name === call.principal.name).length;
    if (own >= perCredential || (this.#streams.size >= streams && !this.#makeRoom(call.principal)))
      throw pawlError("too_many_requests", { what: "a stream of events", retryAfter: 5_000 });
    const stream: EventStream = { call, filter: filterOf(call.filter), out: new Readable({ read() {} }), after: undefined };
    this.#streams.add(stream);
    stream.out.once("close", () => this.#leave(stream));
    try {
      const tail = await this.#follow();
      stream.out.push(": welcome\n\n");
      if (call.lastEventId === undefined) stream.after = tail.position.batch;
      else this.#oneAtATime(() => this.#catchUp(stream, tail)).catch((error: unknown) => stream.out.destroy(error as Error));
      return stream.out;
    } catch (error) {
      this.#leave(stream);
      throw error;
    }
  }

  /** Ends every stream. */
  async close(): Promise<void> {
    for (const { out } of [...this.#streams]) out.push(null);
    this.#streams.clear();
    await this.#stopTail();
  }

  /** Ends the youngest stream of whoever has most, if that is more than the caller would have. Its client comes back for what it misses. */
  #makeRoom(principal: Principal): boolean {
    const streams = [...this.#streams];
    const heaviest = ownerToEvict(
      streams.map(({ call }) => shareOwner(call.principal)),
      shareOwner(principal),
    );
    const youngest = heaviest === undefined ? undefined : streams.findLast(({ call }) => shareOwner(call.principal) === heaviest);
    if (youngest === undefined) return false;
    this.#leave(youngest);
    youngest.out.push(null);
    return true;
  }

  #leave(stream: EventStream): void {
    this.#streams.delete(stream);
    if (this.#streams.size === 0) this.#idleSince = Date.now();
  }

  /** The one tail, which is begun by whoever comes first. */
  #follow(): Promise<EventTail> {
    this.#idleSince = undefined;
    if (this.#tail !== undefined) return this.#tail;
    this.#tail = this.events.follow((batch) => this.#onBatch(batch));
    this.#tail.catch(() => {
      // The next one who comes tries again.
      this.#tail = undefined;
    });
    let sinceSign = 0;
    clearInterval(this.#rounds);
    this.#rounds = setInterval(() => {
      sinceSign += RECHECK_INTERVAL_MS;
      void this.#round(sinceSign >= KEEPALIVE_INTERVAL_MS);
      if (sinceSign >= KEEPALIVE_INTERVAL_MS) sinceSign = 0;
    }, RECHECK_INTERVAL_MS);
    this.#rounds.unref();
    return this.#tail;
  }

  async #stopTail(): Promise<void> {
    clearInterval(this.#rounds);
    const tail = this.#tail;
    this.#tail = undefined;
    await tail?.then(
      (open) => open.stop(),
      () => {},
    );
  }

  #onBatch(batch: EventBatch): void {
    const events = streamEventsOf(batch);
    for (const stream of this.#streams) {
      if (stream.after === undefined || stream.after >= batch.position.batch) continue;
      stream.after = batch.position.batch;
      send(stream, events);
    }
  }

  /** What it has missed since the event it saw last, page by page, and a gap where that is not kept; then it hears the rest with the others. */
  async #catchUp(stream: EventStream, tail: EventTail): Promise<void> {
    const seen = lastSeenOf(stream.call.lastEventId ?? "");
    // Of a batch that it has seen in part, the rest is to be told.
    const part = seen?.index === undefined ? undefined : { batch: seen.batch, index: seen.index };
    let position = { epoch: seen?.epoch ?? "", batch: (seen?.batch ?? 0) - (part === undefined ? 0 : 1) };
    while (!stream.out.destroyed) {
      const { gap, batches, end } = await this.events.since(position);
      if (gap) stream.out.push(GAP_EVENT);
      const events = batches.flatMap(streamEventsOf).filter((event) => event.batch !== part?.batch || event.index > part.index || gap);
      send(stream, events);
      position = batches.at(-1)?.position ?? { epoch: tail.position.epoch, batch: gap ? tail.position.batch : position.batch };
      if (!end || position.batch < tail.position.batch) continue;
      stream.after = position.batch;
      return;
    }
  }

  #oneAtATime(work: () => Promise<void>): Promise<void> {
    const result = this.#catching.then(work);
    this.#catching = result.catch(() => {});
    return result;
  }

  async #round(sign: boolean): Promise<void> {
    if (this.#idleSince !== undefined && Date.now() - this.#idleSince > IDLE_TAIL_MS) return this.#stopTail();
    for (const { call, out } of this.#streams) {
      if (sign) out.push(": still here\n\n");
      if (!(await call.stillAllowed())) out.push(null);
    }
  }
}

function send({ call, filter, out }: EventStream, events: readonly StreamEvent[]): void {
  const text = events
    .filter((event) => isVisibleTo(event, call.principal, filter))
    .map((event) => event.text)
    .join("");
  if (text === "") return;
  if (out.readableLength > MAX_BEHIND_BYTES) out.destroy();
  else out.push(text);
}

function filterOf({ event, queue, task }: StreamCall["filter"]): EventFilter {
  const names = event?.split(",").map((name) => name.trim());
  const unknownName = names?.find((name) => !(RECORDED_EVENTS as readonly string[]).includes(name));
  if (unknownName !== undefined)
    throw pawlError("field_invalid", { field: "query/event", reason: `must be some of ${RECORDED_EVENTS.join(", ")}`, pointer: "query/event" });
  return { names: names === undefined ? undefined : new Set(names), queue, task };
}

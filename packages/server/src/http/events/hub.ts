import { randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { type EventName, type Events, type Pawl, pawlError } from "pawl";
import type { StreamCall } from "../handler.js";
import { type Entry, type EventFilter, entryOf, isFor, TOLD } from "./entry.js";

export interface HubOptions {
  /** streams of one credential, and of all */
  readonly perCredential?: number;
  readonly streams?: number;
  /** events remembered for who comes back */
  readonly remembered?: number;
}

const DEFAULTS = { perCredential: 500, streams: 2_000, remembered: 10_000 };
/** ms: events are sent together; callers are asked again who they are; a sign of life for proxies; and the memory fades */
const TOGETHER = 25;
const RECHECK = 1_000;
const SIGN = 15_000;
const FADES = 60_000;
/** bytes a slow reader may be behind: then it is cut off, and can come back for the rest */
const BEHIND = 1_048_576;

interface Stream {
  readonly call: StreamCall;
  readonly filter: EventFilter;
  readonly out: Readable;
}

/** Tells callers what happens in this process. While nobody has listened for a minute, it does not listen itself. */
export class EventHub {
  readonly #boot = randomBytes(6).toString("hex");
  readonly #options: typeof DEFAULTS;
  readonly #streams = new Set<Stream>();
  #memory: Entry[] = [];
  #fresh: Entry[] = [];
  #seq = 0;
  #stop: (() => void)[] = [];
  #sending: NodeJS.Timeout | undefined;
  #rounds: NodeJS.Timeout | undefined;
  #idleSince: number | undefined;

  constructor(
    readonly pawl: Pick<Pawl, "on">,
    options: HubOptions = {},
  ) {
    this.#options = { ...DEFAULTS, ...options };
  }

  subscribe(call: StreamCall): Readable {
    const { perCredential, streams } = this.#options;
    const own = [...this.#streams].filter((stream) => stream.call.principal.name === call.principal.name).length;
    if (own >= perCredential || this.#streams.size >= streams)
      throw pawlError("too_many_requests", { what: "a stream of events", retryAfter: 5_000 });
    const filter = filterOf(call.filter);
    this.#listen();
    this.#send();
    const stream: Stream = { call, filter, out: new Readable({ read() {} }) };
    stream.out.push(": welcome\n\n");
    this.#catchUp(stream);
    this.#streams.add(stream);
    stream.out.once("close", () => this.#leave(stream));
    return stream.out;
  }

  /** Ends every stream. */
  close(): void {
    for (const { out } of [...this.#streams]) out.push(null);
    this.#streams.clear();
    this.#deaf();
  }

  #leave(stream: Stream): void {
    this.#streams.delete(stream);
    if (this.#streams.size === 0) this.#idleSince = Date.now();
  }

  #listen(): void {
    this.#idleSince = undefined;
    if (this.#stop.length > 0) return;
    this.#stop = TOLD.map((name) => this.pawl.on(name, (event) => this.#hear(name, event)));
    let sinceSign = 0;
    this.#rounds = setInterval(() => {
      sinceSign += RECHECK;
      void this.#round(sinceSign >= SIGN);
      if (sinceSign >= SIGN) sinceSign = 0;
    }, RECHECK);
    this.#rounds.unref();
  }

  #deaf(): void {
    for (const stop of this.#stop) stop();
    this.#stop = [];
    clearInterval(this.#rounds);
    clearTimeout(this.#sending);
    this.#sending = undefined;
    this.#memory = [];
    this.#fresh = [];
  }

  #hear<E extends EventName>(name: E, event: Events[E]): void {
    this.#fresh.push(entryOf(name, event, ++this.#seq, this.#boot));
    this.#sending ??= setTimeout(() => this.#send(), TOGETHER);
    if (this.#fresh.length >= this.#options.remembered) this.#send();
  }

  #send(): void {
    clearTimeout(this.#sending);
    this.#sending = undefined;
    const fresh = this.#fresh;
    if (fresh.length === 0) return;
    this.#fresh = [];
    this.#memory.push(...fresh);
    if (this.#memory.length > 2 * this.#options.remembered) this.#memory = this.#memory.slice(-this.#options.remembered);
    for (const stream of this.#streams) this.#tell(stream, fresh);
  }

  #tell({ call, filter, out }: Stream, entries: readonly Entry[]): void {
    const text = entries
      .filter((entry) => isFor(entry, call.principal, filter))
      .map((entry) => entry.text)
      .join("");
    if (text === "") return;
    if (out.readableLength > BEHIND) out.destroy();
    else out.push(text);
  }

  /** What it has missed since the event it saw last; if that is forgotten, a gap is told before what is left. */
  #catchUp(stream: Stream): void {
    const { lastEventId } = stream.call;
    if (lastEventId === undefined) return;
    const [boot, seq] = lastEventId.split("-");
    const seen = boot === this.#boot && /^\d{1,15}$/.test(seq ?? "") ? Number(seq) : -1;
    const oldest = (this.#memory[0]?.seq ?? this.#seq + 1) - 1;
    if (seen < oldest || seen > this.#seq) stream.out.push("event: gap\ndata: {}\n\n");
    this.#tell(
      stream,
      this.#memory.filter((entry) => entry.seq > seen),
    );
  }

  async #round(sign: boolean): Promise<void> {
    if (this.#idleSince !== undefined && Date.now() - this.#idleSince > FADES) return this.#deaf();
    for (const { call, out } of this.#streams) {
      if (sign) out.push(": still here\n\n");
      if (!(await call.stillAllowed())) out.push(null);
    }
  }
}

function filterOf({ event, queue, task }: StreamCall["filter"]): EventFilter {
  const names = event?.split(",").map((name) => name.trim());
  const strange = names?.find((name) => !(TOLD as readonly string[]).includes(name));
  if (strange !== undefined)
    throw pawlError("field_invalid", { field: "query/event", reason: `must be some of ${TOLD.join(", ")}`, pointer: "query/event" });
  return { names: names === undefined ? undefined : new Set(names), queue, task };
}

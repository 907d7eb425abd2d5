import type { Admission, Demand, IngestLimit } from "../core/backpressure.js";
import { isPawlError, type PawlError, pawlError } from "../core/error.js";
import type { NewJob } from "../core/job.js";
import type { Lane } from "../core/lane.js";
import { restFor } from "../runtime/alive.js";
import type { Bus } from "../runtime/bus.js";
import type { Clock } from "../runtime/clock.js";
import type { ForeignTransaction, Store } from "../store/port.js";

/** ms for which the limits are believed to be as they were read; after that they are read again beside the work */
const BELIEVED = 1_000;
/** ms from an enqueue that finds them old to that reading */
const AFTERWARDS = 10;
/** ms after which nothing is let in before they are */
const STALE = 5_000;

/** A demand in which the parts of one limit are added up. */
type Parts = Map<number, { limit: number; jobs: number; waiting: number }>;

/**
 * What stands between callers and an enqueue: whether their tenants and queues take more jobs now. Jobs under no limit
 * are told by a copy of the limits, without asking the store.
 */
export class Backpressure {
  readonly #store: Store;
  readonly #bus: Bus;
  readonly #clock: Clock;
  #limits: readonly IngestLimit[] = [];
  #places = new Map<string, number>();
  /** lanes are few, and shared by their jobs */
  #under = new WeakMap<Lane, readonly number[]>();
  #mark: string | undefined;
  #readAt = Number.NEGATIVE_INFINITY;
  #changes = 0;
  #reading: Promise<void> | undefined;
  #soon: (() => void) | undefined;

  constructor(store: Store, bus: Bus, clock: Clock) {
    this.#store = store;
    this.#bus = bus;
    this.#clock = clock;
    // Whoever changed a policy says so; what was read before may not hold any more.
    store.onHint(({ kind }) => {
      if (kind !== "lanes") return;
      this.#changes++;
      this.#readAt = Number.NEGATIVE_INFINITY;
    });
  }

  /** Lets jobs in all together, or throws. */
  async whole(jobs: readonly NewJob[], tx?: ForeignTransaction): Promise<void> {
    const [refusal] = await this.#judge(() => [jobs], tx);
    if (refusal !== undefined) throw refusal;
  }

  /** Lets jobs in one by one: the error of each that is not, undefined for one that is. */
  each(jobs: readonly NewJob[]): Promise<readonly (PawlError | undefined)[]> {
    return this.#judge(() => jobs.map((job) => [job]));
  }

  /** Sends what is to be let in, again and again until it is; gives up when it would not be within `patience` ms. */
  async patiently<T>(send: () => Promise<T>, patience: number): Promise<T> {
    const until = this.#clock.monotonic() + patience;
    for (;;) {
      try {
        return await send();
      } catch (error) {
        if (!isPawlError(error, "ingest_limited")) throw error;
        // A little later than it might: others were told the same.
        const wait = error.details.retryAfter * (1 + 0.1 * this.#clock.random());
        if (this.#clock.monotonic() + wait > until) throw error;
        await restFor(this.#clock, wait);
      }
    }
  }

  async #judge(group: () => readonly (readonly NewJob[])[], tx?: ForeignTransaction): Promise<readonly (PawlError | undefined)[]> {
    // Twice at most: one that was under way may have begun before a change.
    for (let looks = 0, fresh = this.#refresh(tx); fresh !== undefined && looks < 2; looks++, fresh = this.#refresh(tx)) await fresh;
    if (this.#limits.length === 0) return [];
    const groups = group();
    const wanted = groups.map((jobs) => this.#partsOf(jobs));
    const limited = wanted.flatMap((parts, place) => (parts.size === 0 ? [] : [place]));
    if (limited.length === 0) return [];
    const { limits, demands } = numbered(
      this.#limits,
      limited.map((place) => wanted[place] as Parts),
    );
    const admissions = await this.#store.ingest.take(limits, demands, tx);
    const refusals = new Array<PawlError | undefined>(groups.length).fill(undefined);
    limited.forEach((place, n) => {
      const admission = admissions[n] as Admission;
      if (admission.kind === "refused") refusals[place] = this.#refuse(admission, (groups[place] as readonly NewJob[]).length);
    });
    return refusals;
  }

  #refuse({ by, limit, retryAfter }: Extract<Admission, { kind: "refused" }>, jobs: number): PawlError {
    this.#bus.emit("ingest.refused", { ...by, limit, jobs, retryAfter });
    return pawlError("ingest_limited", { kind: by.kind, name: by.name, limit, retryAfter });
  }

  #partsOf(jobs: readonly NewJob[]): Parts {
    const parts: Parts = new Map();
    for (const job of jobs) {
      for (const limit of this.#limitsOf(job.lane)) {
        const part = parts.get(limit) ?? { limit, jobs: 0, waiting: 0 };
        part.jobs++;
        if (job.delay === undefined && job.runAt === undefined && job.dependsOn === undefined) part.waiting++;
        parts.set(limit, part);
      }
    }
    return parts;
  }

  #limitsOf(lane: Lane): readonly number[] {
    let under = this.#under.get(lane);
    if (under === undefined) {
      under = [this.#places.get(`queue\u0001${lane.queue}`), this.#places.get(`tenant\u0001${lane.tenant}`)].filter((place) => place !== undefined);
      this.#under.set(lane, under);
    }
    return under;
  }

  /** A promise if what is known is too old to go by. */
  #refresh(tx: ForeignTransaction | undefined): Promise<void> | undefined {
    const age = this.#clock.monotonic() - this.#readAt;
    if (age < BELIEVED) return undefined;
    // Inside a transaction of the caller's there may be no other connection.
    if (tx !== undefined) return age < STALE ? undefined : this.#read(tx);
    if (age >= STALE) return this.#readNow();
    // It is tried again by the next call, and then waited for. Not now: the enqueue that noticed would have to share the way.
    this.#soon ??= this.#clock.after(AFTERWARDS, () => {
      this.#soon = undefined;
      this.#readNow().catch(() => {});
    });
    return undefined;
  }

  #readNow(): Promise<void> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #read(tx?: ForeignTransaction): Promise<void> {
    const at = this.#clock.monotonic();
    const changes = this.#changes;
    const found = await this.#store.ingest.limits(this.#mark, tx);
    if (found !== undefined) {
      this.#mark = found.mark;
      this.#limits = found.limits;
      this.#places = new Map(found.limits.map(({ kind, name }, place) => [`${kind}\u0001${name}`, place]));
      this.#under = new WeakMap();
    }
    if (changes === this.#changes) this.#readAt = at;
  }
}

/** Only the limits that are meant, numbered anew. */
function numbered(
  all: readonly IngestLimit[],
  wanted: readonly Parts[],
): { readonly limits: readonly IngestLimit[]; readonly demands: readonly Demand[] } {
  const numbers = new Map<number, number>();
  const demands = wanted.map((parts) => ({
    parts: [...parts.values()].map((part) => {
      let number = numbers.get(part.limit);
      if (number === undefined) {
        number = numbers.size;
        numbers.set(part.limit, number);
      }
      return { ...part, limit: number };
    }),
  }));
  return { limits: [...numbers.keys()].map((place) => all[place] as IngestLimit), demands };
}

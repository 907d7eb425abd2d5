import type { NewJob } from "../../core/jobs/job.js";
import type { Lane } from "../../core/jobs/lane.js";
import type { IngestAdmission, IngestDemand, IngestLimit } from "../../core/limits/ingest-limit.js";
import { isPawlError, type PawlError, pawlError } from "../../core/values/error.js";
import type { Bus } from "../../runtime/process/bus.js";
import { keepAliveFor } from "../../runtime/process/keep-alive.js";
import type { Clock } from "../../runtime/time/clock.js";
import type { Store, StoreTransaction } from "../../store/port/index.js";

/** ms for which the limits are believed to be as they were read; after that they are read again beside the work */
const LIMITS_FRESH_MS = 1_000;
/** ms from an enqueue that finds them old to that reading */
const REFRESH_DELAY_MS = 10;
/** ms after which nothing is let in before they are */
const LIMITS_STALE_MS = 5_000;

/** A demand in which the parts of one limit are added up. */
type DemandByLimit = Map<number, { limit: number; jobs: number; waiting: number }>;

/**
 * What stands between callers and an enqueue: whether their tenants and queues take more jobs now. Jobs under no limit
 * are told by a copy of the limits, without asking the store.
 */
export class IngestLimiter {
  readonly #store: Store;
  readonly #bus: Bus;
  readonly #clock: Clock;
  #limits: readonly IngestLimit[] = [];
  #limitIndexes = new Map<string, number>();
  /** lanes are few, and shared by their jobs */
  #indexes = new WeakMap<Lane, readonly number[]>();
  #version: string | undefined;
  #readAt = Number.NEGATIVE_INFINITY;
  #changeCount = 0;
  #pendingRead: Promise<void> | undefined;
  #cancelRefresh: (() => void) | undefined;

  constructor(store: Store, bus: Bus, clock: Clock) {
    this.#store = store;
    this.#bus = bus;
    this.#clock = clock;
    // Whoever changed a policy says so; what was read before may not hold any more.
    store.onWakeup(({ kind }) => {
      if (kind !== "lanes") return;
      this.#changeCount++;
      this.#readAt = Number.NEGATIVE_INFINITY;
    });
  }

  /** Lets jobs in all together, or throws. */
  async admitAll(jobs: readonly NewJob[], tx?: StoreTransaction): Promise<void> {
    const [refusal] = await this.#admit(() => [jobs], tx);
    if (refusal !== undefined) throw refusal;
  }

  /** Lets jobs in one by one: the error of each that is not, undefined for one that is. */
  admitEach(jobs: readonly NewJob[]): Promise<readonly (PawlError | undefined)[]> {
    return this.#admit(() => jobs.map((job) => [job]));
  }

  /** Sends what is to be let in, again and again until it is; gives up when it would not be within `patience` ms. */
  async retryUntilAdmitted<T>(send: () => Promise<T>, maxWait: number): Promise<T> {
    const until = this.#clock.monotonic() + maxWait;
    for (;;) {
      try {
        return await send();
      } catch (error) {
        if (!isPawlError(error, "ingest_limited")) throw error;
        // A little later than it might: others were told the same.
        const wait = error.details.retryAfter * (1 + 0.1 * this.#clock.random());
        if (this.#clock.monotonic() + wait > until) throw error;
        await keepAliveFor(this.#clock, wait);
      }
    }
  }

  async #admit(group: () => readonly (readonly NewJob[])[], tx?: StoreTransaction): Promise<readonly (PawlError | undefined)[]> {
    // Twice at most: one that was under way may have begun before a change.
    for (let tries = 0, refreshing = this.#refresh(tx); refreshing !== undefined && tries < 2; tries++, refreshing = this.#refresh(tx))
      await refreshing;
    if (this.#limits.length === 0) return [];
    const groups = group();
    const demandsByGroup = groups.map((jobs) => this.#demandOf(jobs));
    const limitedGroups = demandsByGroup.flatMap((parts, index) => (parts.size === 0 ? [] : [index]));
    if (limitedGroups.length === 0) return [];
    const { limits, demands } = numbered(
      this.#limits,
      limitedGroups.map((index) => demandsByGroup[index] as DemandByLimit),
    );
    const admissions = await this.#store.ingest.take(limits, demands, tx);
    const refusals = new Array<PawlError | undefined>(groups.length).fill(undefined);
    limitedGroups.forEach((index, n) => {
      const admission = admissions[n] as IngestAdmission;
      if (admission.kind === "refused") refusals[index] = this.#refuse(admission, (groups[index] as readonly NewJob[]).length);
    });
    return refusals;
  }

  #refuse({ by, limit, retryAfter }: Extract<IngestAdmission, { kind: "refused" }>, jobs: number): PawlError {
    this.#bus.emit("ingest.refused", { ...by, limit, jobs, retryAfter });
    return pawlError("ingest_limited", { kind: by.kind, name: by.name, limit, retryAfter });
  }

  #demandOf(jobs: readonly NewJob[]): DemandByLimit {
    const parts: DemandByLimit = new Map();
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
    let indexes = this.#indexes.get(lane);
    if (indexes === undefined) {
      indexes = [this.#limitIndexes.get(`queue\u0001${lane.queue}`), this.#limitIndexes.get(`tenant\u0001${lane.tenant}`)].filter(
        (index) => index !== undefined,
      );
      this.#indexes.set(lane, indexes);
    }
    return indexes;
  }

  /** A promise if what is known is too old to go by. */
  #refresh(tx: StoreTransaction | undefined): Promise<void> | undefined {
    const age = this.#clock.monotonic() - this.#readAt;
    if (age < LIMITS_FRESH_MS) return undefined;
    // Inside a transaction of the caller's there may be no other connection.
    if (tx !== undefined) return age < LIMITS_STALE_MS ? undefined : this.#read(tx);
    if (age >= LIMITS_STALE_MS) return this.#readNow();
    // It is tried again by the next call, and then waited for. Not now: the enqueue that noticed would have to share the way.
    this.#cancelRefresh ??= this.#clock.after(REFRESH_DELAY_MS, () => {
      this.#cancelRefresh = undefined;
      this.#readNow().catch(() => {});
    });
    return undefined;
  }

  #readNow(): Promise<void> {
    this.#pendingRead ??= this.#read().finally(() => {
      this.#pendingRead = undefined;
    });
    return this.#pendingRead;
  }

  async #read(tx?: StoreTransaction): Promise<void> {
    const at = this.#clock.monotonic();
    const changes = this.#changeCount;
    const found = await this.#store.ingest.limits(this.#version, tx);
    if (found !== undefined) {
      this.#version = found.version;
      this.#limits = found.limits;
      this.#limitIndexes = new Map(found.limits.map(({ kind, name }, index) => [`${kind}\u0001${name}`, index]));
      this.#indexes = new WeakMap();
    }
    if (changes === this.#changeCount) this.#readAt = at;
  }
}

/** Only the limits that are meant, numbered anew. */
function numbered(
  all: readonly IngestLimit[],
  demandsByGroup: readonly DemandByLimit[],
): { readonly limits: readonly IngestLimit[]; readonly demands: readonly IngestDemand[] } {
  const numbers = new Map<number, number>();
  const demands = demandsByGroup.map((parts) => ({
    perLimit: [...parts.values()].map((part) => {
      let number = numbers.get(part.limit);
      if (number === undefined) {
        number = numbers.size;
        numbers.set(part.limit, number);
      }
      return { ...part, limit: number };
    }),
  }));
  return { limits: [...numbers.keys()].map((index) => all[index] as IngestLimit), demands };
}

import { pawlError } from "../core/error.js";
import type { JobId } from "../core/id.js";
import { isFinished, type JobRecord } from "../core/job.js";
import { keepAlive } from "../runtime/alive.js";
import type { Clock } from "../runtime/clock.js";
import { Limiter } from "../runtime/limiter.js";
import { closedError } from "../store/closable.js";
import type { Scope, Store } from "../store/port.js";
import { checkDuration, checkKeys, checkObject, invalid } from "./check.js";
import type { WaitOptions } from "./scheduler.js";

const WAIT_KEYS: ReadonlySet<string> = new Set<keyof WaitOptions>(["timeout", "signal"]);
const SHORTEST = 50;
const LONGEST = 1_000;
const GRAIN = 10;
/** Reads on their way at any moment, however many wait: a crowd of waiters must not crowd out everybody else. */
const AT_ONCE = 16;

/** One job somebody waits for. It leaves the map when it ends, or when nobody waits for it any more. */
class Watched {
  waiters = 0;
  /** ms, doubled with every look in vain */
  interval = SHORTEST;
  /** idle until `lookAt` or a hint; then in line to be read; then being read, during which a hint asks for one more */
  mode: "idle" | "in line" | "read" | "read again" = "idle";
  readonly ended: Promise<JobRecord | undefined>;
  end!: (record: JobRecord | undefined) => void;
  fail!: (error: unknown) => void;

  constructor(
    readonly id: JobId,
    public lookAt: number,
  ) {
    this.ended = new Promise((resolve, reject) => {
      this.end = resolve;
      this.fail = reject;
    });
    // Who gave up waiting leaves nobody to hear of a failure.
    this.ended.catch(() => {});
  }
}

/**
 * Everybody in this process who waits for a job to finish. A hint says when to look; hints may be lost, so one shared
 * loop looks anyway, at each job ever less often. While nobody waits, nothing runs.
 */
export class Waiters {
  readonly #watched = new Map<JobId, Watched>();
  readonly #reads = new Limiter(AT_ONCE);
  #nextRound = 0;
  #stopTimer: (() => void) | undefined;
  #stopListening: (() => void) | undefined;
  #release: (() => void) | undefined;
  #closed = false;

  constructor(
    readonly store: Store,
    readonly clock: Clock,
  ) {}

  /** The finished job. */
  async wait(scope: Scope, id: JobId, options: WaitOptions = {}): Promise<JobRecord> {
    checkKeys(checkObject("options", options), WAIT_KEYS);
    const timeout = options.timeout === undefined ? undefined : checkDuration("timeout", options.timeout);
    if (options.signal !== undefined && !(options.signal instanceof AbortSignal)) throw invalid("signal", "it is not an AbortSignal");
    options.signal?.throwIfAborted();
    if (this.#closed) throw closedError();
    // Watched before it is read, so that no end can fall between the two.
    const watched = this.#watch(id);
    try {
      const now = await this.#reads.run(() => this.store.jobs.get(scope, id));
      if (now !== undefined && isFinished(now.state)) return now;
      const ended = now === undefined ? undefined : await this.#until(watched, timeout, options.signal);
      if (ended === undefined) throw pawlError("job_unknown", { job: id });
      return ended;
    } finally {
      watched.waiters--;
      if (watched.waiters === 0) this.#forget(watched);
    }
  }

  /** Ends every wait with `closed`. */
  close(): void {
    this.#closed = true;
    for (const watched of [...this.#watched.values()]) {
      watched.fail(closedError());
      this.#forget(watched);
    }
  }

  #until({ ended, id }: Watched, timeout: number | undefined, signal: AbortSignal | undefined): Promise<JobRecord | undefined> {
    if (timeout === undefined && signal === undefined) return ended;
    return new Promise((resolve, reject) => {
      const onAbort = () => leave(() => reject(signal?.reason));
      const onTimeout = () => leave(() => reject(pawlError("wait_timeout", { job: id, timeout })));
      const stopTimer = timeout === undefined ? undefined : this.clock.after(timeout, onTimeout);
      const leave = (settle: () => void) => {
        stopTimer?.();
        signal?.removeEventListener("abort", onAbort);
        settle();
      };
      if (signal?.aborted) return onAbort();
      signal?.addEventListener("abort", onAbort, { once: true });
      ended.then(
        (record) => leave(() => resolve(record)),
        (error) => leave(() => reject(error)),
      );
    });
  }

  #watch(id: JobId): Watched {
    let watched = this.#watched.get(id);
    if (watched === undefined) {
      const now = this.clock.monotonic();
      // Those who come within a moment of each other are looked at in one round.
      watched = new Watched(id, Math.ceil((now + SHORTEST) / GRAIN) * GRAIN);
      this.#watched.set(id, watched);
      this.#stopListening ??= this.store.onHint((hint) => {
        if (hint.kind === "finished") for (const job of hint.jobs) this.#heardOf(job);
      });
      this.#release ??= keepAlive();
      if (this.#stopTimer === undefined || watched.lookAt < this.#nextRound) this.#roundAt(watched.lookAt, now);
    }
    watched.waiters++;
    return watched;
  }

  #forget(watched: Watched): void {
    if (this.#watched.get(watched.id) === watched) this.#watched.delete(watched.id);
    if (this.#watched.size > 0) return;
    this.#stopTimer?.();
    this.#stopListening?.();
    this.#release?.();
    this.#stopTimer = this.#stopListening = this.#release = undefined;
  }

  #heardOf(id: JobId): void {
    const watched = this.#watched.get(id);
    if (watched === undefined) return;
    if (watched.mode === "read") watched.mode = "read again";
    if (watched.mode === "idle") void this.#look(watched);
  }

  /** Looks at what it is time to look at, and sets the timer for the rest. */
  #round(): void {
    const now = this.clock.monotonic();
    let next = now + LONGEST;
    for (const watched of this.#watched.values()) {
      if (watched.lookAt <= now) {
        watched.lookAt = now + watched.interval;
        watched.interval = Math.min(LONGEST, watched.interval * 2);
        if (watched.mode === "idle") void this.#look(watched);
      }
      next = Math.min(next, watched.lookAt);
    }
    this.#roundAt(next, now);
  }

  #roundAt(at: number, now: number): void {
    this.#stopTimer?.();
    this.#nextRound = at;
    this.#stopTimer = this.clock.after(at - now, () => this.#round());
  }

  async #look(watched: Watched): Promise<void> {
    watched.mode = "in line";
    try {
      await this.#reads.run(async () => {
        // The line may be long, and those who waited gone with what they saw at first.
        if (watched.waiters === 0) return;
        watched.mode = "read";
        // Whoever waits has been shown the job in its own scope.
        const record = await this.store.jobs.get("everyone", watched.id);
        if (record !== undefined && !isFinished(record.state)) return;
        watched.end(record);
        // Out of the map at once: a job can be redriven, and who waits then waits for another end.
        this.#forget(watched);
      });
    } catch {
      // The store is away: a later look may find it back, and a wait has its own timeout.
    }
    const again = (watched.mode as Watched["mode"]) === "read again";
    watched.mode = "idle";
    if (again && this.#watched.get(watched.id) === watched) void this.#look(watched);
  }
}

import type { JobId } from "../../core/jobs/id.js";
import { isFinished, type JobRecord } from "../../core/jobs/job.js";
import { pawlError } from "../../core/values/error.js";
import { ConcurrencyLimiter } from "../../runtime/io/concurrency-limiter.js";
import { keepAlive } from "../../runtime/process/keep-alive.js";
import type { Clock } from "../../runtime/time/clock.js";
import type { Scope, Store } from "../../store/port/index.js";
import { closedError } from "../../store/wrap/closable.js";
import type { Wait } from "../scheduler.js";
import { checkWait } from "./check-wait.js";

const MIN_READ_INTERVAL_MS = 50;
const MAX_READ_INTERVAL_MS = 1_000;
const READ_TIME_STEP_MS = 10;
/** Reads on their way at any moment, however many wait: a crowd of waiters must not crowd out everybody else. */
const MAX_CONCURRENT_READS = 16;

/** One job somebody waits for. It leaves the map when it ends, or when nobody waits for it any more. */
class WaitedJob {
  waiters = 0;
  /** ms, doubled with every look in vain */
  interval = MIN_READ_INTERVAL_MS;
  /** idle until `lookAt` or a wakeup; then in line to be read; then being read, during which a wakeup asks for one more */
  mode: "idle" | "queued" | "read" | "read again" = "idle";
  readonly ended: Promise<JobRecord | undefined>;
  end!: (record: JobRecord | undefined) => void;
  fail!: (error: unknown) => void;

  constructor(
    readonly id: JobId,
    public readAt: number,
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
 * Everybody in this process who waits for a job to finish. A wakeup says when to look; wakeups may be lost, so one shared
 * loop looks anyway, at each job ever less often. While nobody waits, nothing runs.
 */
export class JobWaiters {
  readonly #waitedJobs = new Map<JobId, WaitedJob>();
  readonly #reads = new ConcurrencyLimiter(MAX_CONCURRENT_READS);
  #nextReadAt = 0;
  #stopTimer: (() => void) | undefined;
  #stopListening: (() => void) | undefined;
  #release: (() => void) | undefined;
  #closed = false;

  constructor(
    readonly store: Store,
    readonly clock: Clock,
  ) {}

  /** The finished job. */
  async wait(scope: Scope, id: JobId, how?: Wait): Promise<JobRecord> {
    const { wait, signal } = checkWait(how);
    if (this.#closed) throw closedError();
    // Watched before it is read, so that no end can fall between the two.
    const waitedJob = this.#addWait(id);
    try {
      const now = await this.#reads.run(() => this.store.jobs.get(scope, id));
      if (now !== undefined && isFinished(now.state)) return now;
      const ended = now === undefined ? undefined : await this.#until(waitedJob, wait, signal);
      if (ended === undefined) throw pawlError("job_unknown", { job: id });
      return ended;
    } finally {
      waitedJob.waiters--;
      if (waitedJob.waiters === 0) this.#forget(waitedJob);
    }
  }

  /** Ends every wait with `closed`. */
  close(): void {
    this.#closed = true;
    for (const waitedJob of [...this.#waitedJobs.values()]) {
      waitedJob.fail(closedError());
      this.#forget(waitedJob);
    }
  }

  #until({ ended, id }: WaitedJob, wait: number | undefined, signal: AbortSignal | undefined): Promise<JobRecord | undefined> {
    if (wait === undefined && signal === undefined) return ended;
    return new Promise((resolve, reject) => {
      const onAbort = () => finish(() => reject(signal?.reason));
      const onTimeout = () => finish(() => reject(pawlError("wait_timeout", { job: id, wait })));
      const stopTimer = wait === undefined ? undefined : this.clock.after(wait, onTimeout);
      const finish = (settle: () => void) => {
        stopTimer?.();
        signal?.removeEventListener("abort", onAbort);
        settle();
      };
      if (signal?.aborted) return onAbort();
      signal?.addEventListener("abort", onAbort, { once: true });
      ended.then(
        (record) => finish(() => resolve(record)),
        (error) => finish(() => reject(error)),
      );
    });
  }

  #addWait(id: JobId): WaitedJob {
    let waitedJob = this.#waitedJobs.get(id);
    if (waitedJob === undefined) {
      const now = this.clock.monotonic();
      // Those who come within a moment of each other are looked at in one round.
      waitedJob = new WaitedJob(id, Math.ceil((now + MIN_READ_INTERVAL_MS) / READ_TIME_STEP_MS) * READ_TIME_STEP_MS);
      this.#waitedJobs.set(id, waitedJob);
      this.#stopListening ??= this.store.onWakeup((wakeup) => {
        if (wakeup.kind === "finished") for (const job of wakeup.jobs) this.#onFinished(job);
      });
      this.#release ??= keepAlive();
      if (this.#stopTimer === undefined || waitedJob.readAt < this.#nextReadAt) this.#scheduleRead(waitedJob.readAt, now);
    }
    waitedJob.waiters++;
    return waitedJob;
  }

  #forget(waitedJob: WaitedJob): void {
    if (this.#waitedJobs.get(waitedJob.id) === waitedJob) this.#waitedJobs.delete(waitedJob.id);
    if (this.#waitedJobs.size > 0) return;
    this.#stopTimer?.();
    this.#stopListening?.();
    this.#release?.();
    this.#stopTimer = this.#stopListening = this.#release = undefined;
  }

  #onFinished(id: JobId): void {
    const waitedJob = this.#waitedJobs.get(id);
    if (waitedJob === undefined) return;
    if (waitedJob.mode === "read") waitedJob.mode = "read again";
    if (waitedJob.mode === "idle") void this.#read(waitedJob);
  }

  /** Looks at what it is time to look at, and sets the timer for the rest. */
  #readDue(): void {
    const now = this.clock.monotonic();
    let next = now + MAX_READ_INTERVAL_MS;
    for (const waitedJob of this.#waitedJobs.values()) {
      if (waitedJob.readAt <= now) {
        waitedJob.readAt = now + waitedJob.interval;
        waitedJob.interval = Math.min(MAX_READ_INTERVAL_MS, waitedJob.interval * 2);
        if (waitedJob.mode === "idle") void this.#read(waitedJob);
      }
      next = Math.min(next, waitedJob.readAt);
    }
    this.#scheduleRead(next, now);
  }

  #scheduleRead(at: number, now: number): void {
    this.#stopTimer?.();
    this.#nextReadAt = at;
    this.#stopTimer = this.clock.after(at - now, () => this.#readDue());
  }

  async #read(waitedJob: WaitedJob): Promise<void> {
    waitedJob.mode = "queued";
    try {
      await this.#reads.run(async () => {
        // The line may be long, and those who waited gone with what they saw at first.
        if (waitedJob.waiters === 0) return;
        waitedJob.mode = "read";
        // Whoever waits has been shown the job in its own scope.
        const record = await this.store.jobs.get("everyone", waitedJob.id);
        if (record !== undefined && !isFinished(record.state)) return;
        waitedJob.end(record);
        // Out of the map at once: a job can be redriven, and who waits then waits for another end.
        this.#forget(waitedJob);
      });
    } catch {
      // The store is away: a later look may find it back, and a wait has its own timeout.
    }
    const again = (waitedJob.mode as WaitedJob["mode"]) === "read again";
    waitedJob.mode = "idle";
    if (again && this.#waitedJobs.get(waitedJob.id) === waitedJob) void this.#read(waitedJob);
  }
}

import type { Lane } from "../../core/jobs/lane.js";
import { Share } from "../../core/sharing/fair-share.js";
import { newInstanceId } from "../../runtime/process/identity.js";
import { Backoff } from "../../runtime/time/backoff.js";
import type { ClaimerDeps, JobSource } from "../../worker/claim/claimer.js";
import { WorkerLimits } from "../../worker/claim/worker-limits.js";
import type { WorkerSettings } from "../../worker/options.js";
import { runOptions } from "../transport/job-fields.js";
import { HeldJobCounter } from "./held-jobs.js";
import type { PulledClaim, PullStore } from "./pull-store.js";

/** ms that one long poll waits */
const POLL_WAIT_MS = 20_000;
/** ms that a stop is held up for what may have been missed */
const MISSED_ANSWER_WAIT_MS = 2_000;
const MAX_JOBS_PER_CLAIM = 1_000;

/**
 * Asks the service for jobs, one long poll at a time: for as many as can start soon. What is fair, within limits and
 * there at all is for the service to know, which claims by the same rules as a worker beside the store would.
 */
export class Puller implements JobSource {
  readonly lanes = 0;
  readonly limits: WorkerLimits;
  readonly #share = new Share(undefined);
  readonly #heldJobCounter = new HeldJobCounter();
  readonly #backoff: Backoff;
  readonly #serves: object;
  #open = false;
  #pendingClaim: { readonly gone: AbortController; readonly limit: number } | undefined;
  #backingOff = false;
  #onIdle: (() => void)[] = [];

  constructor(
    private readonly deps: ClaimerDeps,
    private readonly pull: PullStore,
  ) {
    this.limits = new WorkerLimits([...deps.limits, this.#heldJobCounter]);
    this.#backoff = new Backoff(deps.clock, { min: 50, max: 1_500 });
    this.#serves = servesOf(deps.settings, deps);
  }

  get inFlight(): number {
    return this.#pendingClaim === undefined ? 0 : 1;
  }

  /** One share for all: the service is fair among its tenants. */
  shareOf(): Share {
    return this.#share;
  }

  fullLanes(): readonly Lane[] {
    return [];
  }

  tenantDurations(): undefined {}

  start(): void {
    this.#open = true;
    this.claimIfUseful();
  }

  /** Asks no more. An answer that is on its way is given back by whoever takes it. */
  stop(): Promise<void> {
    this.#open = false;
    this.#pendingClaim?.gone.abort();
    if (this.#pendingClaim === undefined) return Promise.resolve();
    return new Promise((resolve) => this.#onIdle.push(resolve));
  }

  handleWakeup(): void {}
  jobSettled(_: Lane): void {}

  claimIfUseful(): void {
    if (!this.#open || this.#backingOff) return;
    const { load, settings } = this.deps;
    const free = Math.min(load.free, MAX_JOBS_PER_CLAIM);
    const size = Math.min(settings.maxJobsPerClaim, MAX_JOBS_PER_CLAIM, load.free + load.ahead - load.unstarted);
    if (size <= 0) return;
    if (this.#pendingClaim !== undefined) return;
    // Every slot is spoken for: what is left is a matter of batch size, so let a good one gather.
    if (load.unstarted >= load.free && size < Math.min(settings.maxJobsPerClaim, load.ahead / 2)) return;
    void this.#claim(size, Math.max(0, free - load.unstarted));
  }

  async #claim(limit: number, free: number): Promise<void> {
    const { clock, onClaimed, onError } = this.deps;
    const gone = new AbortController();
    this.#pendingClaim = { gone, limit };
    let sentAt = clock.monotonic();
    const body = {
      ...this.#serves,
      limit,
      freeSlots: Math.min(free, limit),
      wait: POLL_WAIT_MS,
      heldJobs: this.#heldJobCounter.heldJobs(),
      idempotencyKey: newInstanceId(),
    };
    let pulled: readonly PulledClaim[] = [];
    try {
      pulled = await this.pull.claim(body, { timeout: POLL_WAIT_MS + 15_000, signal: gone.signal });
      this.#backoff.reset();
    } catch (error) {
      if (gone.signal.aborted) {
        sentAt = clock.monotonic();
        pulled = await this.#claimMissed(body);
      } else {
        onError("claim", error);
        this.#backOff();
      }
    }
    this.#pendingClaim = undefined;
    for (const resolve of this.#onIdle.splice(0)) resolve();
    // It began while the service waited for us, so long after it heard of us: counted from when we spoke, that is never too late.
    for (const { claimed, beganAfter, suspect } of pulled) onClaimed(claimed, sentAt + beganAfter, suspect);
    this.claimIfUseful();
  }

  /** What was on its way when it hung up: repeated, it is answered the same, and need not wait for its leases to run out. */
  async #claimMissed(body: object): Promise<readonly PulledClaim[]> {
    try {
      return await this.pull.claim({ ...body, wait: 0 }, { timeout: MISSED_ANSWER_WAIT_MS, tries: 1 });
    } catch {
      return [];
    }
  }

  #backOff(): void {
    this.#backingOff = true;
    this.deps.clock.after(this.#backoff.next(), () => {
      this.#backingOff = false;
      this.claimIfUseful();
    });
  }
}

/** What it serves and has, as the service is told. */
function servesOf(settings: WorkerSettings, { plans }: ClaimerDeps): object {
  const { concurrency, queues, tasks, priorities, tenants, provides, reserve, queueSlots, taskSlots } = settings;
  const parts = { ...some("queues", queueSlots), ...some("tasks", taskSlots) };
  return {
    concurrency: Object.keys(parts).length === 0 ? concurrency : { total: concurrency, ...parts },
    tasks: tasks.map((name) => runOptions(plans.of({ queue: "", task: name })?.task ?? { name, options: {} })),
    ...(queues === undefined ? {} : { queues }),
    ...(priorities === undefined ? {} : { priorities }),
    ...(tenants === undefined ? {} : { tenants }),
    provides,
    ...(reserve.length === 0 ? {} : { reserve }),
  };
}

function some(name: string, sizes: ReadonlyMap<string, number>): object {
  return sizes.size === 0 ? {} : { [name]: Object.fromEntries(sizes) };
}

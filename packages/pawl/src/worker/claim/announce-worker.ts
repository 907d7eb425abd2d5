import type { WorkerRef } from "../../core/jobs/lease.js";
import type { Serves, Took } from "../../core/limits/capacity.js";
import type { SlotUse } from "../../core/limits/slot-use.js";
import { DEFAULTS } from "../../core/values/defaults.js";
import { VERSION } from "../../core/values/version.js";
import type { Clock } from "../../runtime/time/clock.js";
import { type Loop, loop } from "../../runtime/time/loop.js";
import type { WorkerStore } from "../../store/port/claim/workers.js";
import type { WorkerSettings } from "../options.js";

/** ms after which a new worker has seen jobs end, and can say how long they take */
const SECOND_SIGN_MS = 3_000;
/** ms that a change lasts before it is told, and between what is told for that: quick jobs fill and free slots all the time */
const CHANGE_DELAY_MS = 1_000;
const CHANGE_INTERVAL_MS = 5_000;

export interface AnnouncerDeps {
  readonly workers: WorkerStore;
  readonly worker: WorkerRef;
  readonly clock: Clock;
  readonly serves: Serves;
  /** how long jobs take lately, by tenant */
  readonly tenantDurations: () => readonly Took[] | undefined;
  readonly slots: () => SlotUse;
  readonly onError: (error: unknown) => void;
}

export function servesOf(settings: WorkerSettings): Serves {
  const { tasks, queues, priorities, tenants, provides, concurrency, queueSlots, taskSlots } = settings;
  return {
    tasks,
    ...(queues === undefined ? {} : { queues }),
    ...(priorities === undefined ? {} : { priorities }),
    ...(tenants === undefined ? {} : { tenants }),
    provides,
    concurrency: {
      total: concurrency,
      ...(queueSlots.size === 0 ? {} : { queues: Object.fromEntries(queueSlots) }),
      ...(taskSlots.size === 0 ? {} : { tasks: Object.fromEntries(taskSlots) }),
    },
    version: VERSION,
  };
}

/** Tells the others what this worker serves and how full it is, as long as it does. */
export class Announcer {
  #signs: Loop | undefined;
  /** as it was told last */
  #lastAnnounced: { readonly full: boolean; readonly at: number } | undefined;
  #cancelChange: (() => void) | undefined;

  constructor(private readonly deps: AnnouncerDeps) {}

  start(): void {
    const { workers, worker, clock, serves, tenantDurations, slots, onError } = this.deps;
    const { life, sign } = DEFAULTS.capacity;
    let isFirst = true;
    this.#signs = loop({
      clock,
      step: async () => {
        const took = tenantDurations();
        const use = slots();
        this.#lastAnnounced = { full: use.inUse >= use.total, at: clock.monotonic() };
        await workers.publish(worker, { ...serves, slots: use, ...(took === undefined ? {} : { took }) }, life);
        const next = isFirst ? SECOND_SIGN_MS : sign;
        isFirst = false;
        return next * (1 + 0.1 * clock.random());
      },
      onError,
      backoff: { min: 1_000, max: sign },
      patience: life,
    });
  }

  /**
   * A slot was taken or is free again. Told is that all are taken, or not any more, without waiting for the next sign of life:
   * asked for every job, so it must cost nothing.
   */
  slotsChanged(full: boolean): void {
    if (this.#lastAnnounced === undefined || full === this.#lastAnnounced.full || this.#cancelChange !== undefined) return;
    const { clock, slots } = this.deps;
    const wait = Math.max(CHANGE_DELAY_MS, this.#lastAnnounced.at + CHANGE_INTERVAL_MS - clock.monotonic());
    this.#cancelChange = clock.after(wait, () => {
      this.#cancelChange = undefined;
      const { inUse, total } = slots();
      if (inUse >= total !== this.#lastAnnounced?.full) this.#signs?.wake();
    });
  }

  /** Says how it is at once: it takes nothing more. */
  draining(): void {
    this.#signs?.wake();
  }

  async stop(): Promise<void> {
    const signs = this.#signs;
    if (signs === undefined) return;
    this.#signs = undefined;
    this.#cancelChange?.();
    await signs.stop();
    // If this is lost, its time runs out.
    await this.deps.workers.retire(this.deps.worker).catch(this.deps.onError);
  }
}

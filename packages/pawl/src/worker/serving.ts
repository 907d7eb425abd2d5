import type { Serves, Took } from "../core/capacity.js";
import { DEFAULTS } from "../core/defaults.js";
import type { WorkerRef } from "../core/lease.js";
import type { SlotUse } from "../core/slots.js";
import { VERSION } from "../core/version.js";
import type { Clock } from "../runtime/clock.js";
import { type Loop, loop } from "../runtime/loop.js";
import type { WorkerStore } from "../store/port-workers.js";
import type { Settings } from "./options.js";

/** ms after which a new worker has seen jobs end, and can say how long they take */
const KNOWS_AFTER = 3_000;
/** ms that a change lasts before it is told, and between what is told for that: quick jobs fill and free slots all the time */
const CHANGED_FOR = 1_000;
const CHANGES_APART = 5_000;

export interface ServingParts {
  readonly workers: WorkerStore;
  readonly worker: WorkerRef;
  readonly clock: Clock;
  readonly serves: Serves;
  /** how long jobs take lately, by tenant */
  readonly took: () => readonly Took[] | undefined;
  readonly slots: () => SlotUse;
  readonly onError: (error: unknown) => void;
}

export function servesOf({ tasks, queues, bands, tenants, tags, amounts, concurrency }: Settings): Serves {
  return {
    tasks,
    ...(queues === undefined ? {} : { queues }),
    ...(bands === undefined ? {} : { bands }),
    ...(tenants === undefined ? {} : { tenants }),
    tags,
    amounts,
    concurrency,
    version: VERSION,
  };
}

/** Tells the others what this worker serves and how full it is, as long as it does. */
export class Serving {
  #signs: Loop | undefined;
  /** as it was told last */
  #told: { readonly full: boolean; readonly at: number } | undefined;
  #cancelChange: (() => void) | undefined;

  constructor(private readonly parts: ServingParts) {}

  start(): void {
    const { workers, worker, clock, serves, took, slots, onError } = this.parts;
    const { life, sign } = DEFAULTS.capacity;
    let isFirst = true;
    this.#signs = loop({
      clock,
      step: async () => {
        const lately = took();
        const use = slots();
        this.#told = { full: use.inUse >= use.total, at: clock.monotonic() };
        await workers.publish(worker, { ...serves, slots: use, ...(lately === undefined ? {} : { took: lately }) }, life);
        const next = isFirst ? KNOWS_AFTER : sign;
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
    if (this.#told === undefined || full === this.#told.full || this.#cancelChange !== undefined) return;
    const { clock, slots } = this.parts;
    const wait = Math.max(CHANGED_FOR, this.#told.at + CHANGES_APART - clock.monotonic());
    this.#cancelChange = clock.after(wait, () => {
      this.#cancelChange = undefined;
      const { inUse, total } = slots();
      if (inUse >= total !== this.#told?.full) this.#signs?.wake();
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
    await this.parts.workers.retire(this.parts.worker).catch(this.parts.onError);
  }
}

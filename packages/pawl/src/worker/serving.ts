import type { Serves, Took } from "../core/capacity.js";
import { DEFAULTS } from "../core/defaults.js";
import type { WorkerRef } from "../core/lease.js";
import { VERSION } from "../core/version.js";
import type { Clock } from "../runtime/clock.js";
import { type Loop, loop } from "../runtime/loop.js";
import type { WorkerStore } from "../store/port-workers.js";
import type { Settings } from "./options.js";

/** ms after which a new worker has seen jobs end, and can say how long they take */
const KNOWS_AFTER = 3_000;

export interface ServingParts {
  readonly workers: WorkerStore;
  readonly worker: WorkerRef;
  readonly clock: Clock;
  readonly serves: Serves;
  /** how long jobs take lately, by tenant */
  readonly took: () => readonly Took[] | undefined;
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

/** Tells the others what this worker serves, as long as it does. */
export class Serving {
  #signs: Loop | undefined;

  constructor(private readonly parts: ServingParts) {}

  start(): void {
    const { workers, worker, clock, serves, took, onError } = this.parts;
    const { life, sign } = DEFAULTS.capacity;
    let isFirst = true;
    this.#signs = loop({
      clock,
      async step() {
        const lately = took();
        await workers.publish(worker, lately === undefined ? serves : { ...serves, took: lately }, life);
        const next = isFirst ? KNOWS_AFTER : sign;
        isFirst = false;
        return next * (1 + 0.1 * clock.random());
      },
      onError,
      backoff: { min: 1_000, max: sign },
      patience: life,
    });
  }

  async stop(): Promise<void> {
    const signs = this.#signs;
    if (signs === undefined) return;
    this.#signs = undefined;
    await signs.stop();
    // If this is lost, its time runs out.
    await this.parts.workers.retire(this.parts.worker).catch(this.parts.onError);
  }
}

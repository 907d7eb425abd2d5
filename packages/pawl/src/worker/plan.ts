import { DEFAULTS } from "../core/defaults.js";
import { milliseconds } from "../core/duration.js";
import type { Lane } from "../core/lane.js";
import type { Retry } from "../core/retry.js";
import type { Durations } from "../core/slots.js";
import { Pace } from "./pace.js";
import type { AnyTask, TaskDefaults } from "./task.js";

/** How jobs of one task in one queue are run here: task before queue before the defaults. A job's own options come first. */
export interface Plan {
  readonly task: AnyTask;
  readonly retry: Retry;
  /** ms */
  readonly timeout: number;
  readonly atMostOnce: boolean;
  readonly pace: Pace;
}

/** Plans of the tasks a worker serves, made once each. */
export class Plans {
  readonly #plans = new Map<string, Map<string, Plan>>();
  readonly #paces = new Map<string, Pace>();

  constructor(
    private readonly tasks: ReadonlyMap<string, AnyTask>,
    private readonly defaults: Readonly<Record<string, TaskDefaults>>,
  ) {}

  task(name: string): AnyTask | undefined {
    return this.tasks.get(name);
  }

  of(lane: Pick<Lane, "queue" | "task">): Plan | undefined {
    return this.#plans.get(lane.queue)?.get(lane.task) ?? this.#make(lane);
  }

  /** How long handlers take lately, of the tasks of which some have ended here. */
  durations(): ReadonlyMap<string, Durations> {
    const known = new Map<string, Durations>();
    for (const [task, { durations }] of this.#paces) if (durations !== undefined) known.set(task, durations);
    return known;
  }

  #make(lane: Pick<Lane, "queue" | "task">): Plan | undefined {
    const task = this.tasks.get(lane.task);
    if (task === undefined) return undefined;
    const queue = Object.hasOwn(this.defaults, lane.queue) ? (this.defaults[lane.queue] ?? {}) : {};
    const plan: Plan = {
      task,
      retry: task.options.retry ?? queue.retry ?? DEFAULTS.job.retries,
      timeout: milliseconds(task.options.timeout ?? queue.timeout ?? DEFAULTS.job.timeout),
      atMostOnce: task.options.atMostOnce ?? false,
      pace: this.#paceOf(lane.task),
    };
    let ofQueue = this.#plans.get(lane.queue);
    if (ofQueue === undefined) {
      ofQueue = new Map();
      this.#plans.set(lane.queue, ofQueue);
    }
    ofQueue.set(lane.task, plan);
    return plan;
  }

  #paceOf(task: string): Pace {
    let pace = this.#paces.get(task);
    if (pace === undefined) {
      pace = new Pace();
      this.#paces.set(task, pace);
    }
    return pace;
  }
}

import type { Lane } from "../../core/jobs/lane.js";
import type { RetryPolicy } from "../../core/jobs/retry.js";
import type { AnyTask, JobDefaults } from "../../core/jobs/task.js";
import type { Durations } from "../../core/limits/slot-use.js";
import { DEFAULTS } from "../../core/values/defaults.js";
import { milliseconds } from "../../core/values/duration.js";
import { DurationEstimate } from "./duration-estimate.js";

/** How jobs of one task in one queue are run here: task before queue before the defaults. A job's own options come first. */
export interface TaskPlan {
  readonly task: AnyTask;
  readonly retry: RetryPolicy;
  /** ms */
  readonly timeout: number;
  readonly atMostOnce: boolean;
  readonly estimate: DurationEstimate;
}

/** Plans of the tasks a worker serves, made once each. */
export class TaskPlans {
  readonly #plans = new Map<string, Map<string, TaskPlan>>();
  readonly #estimates = new Map<string, DurationEstimate>();

  constructor(
    private readonly tasks: ReadonlyMap<string, AnyTask>,
    private readonly defaults: Readonly<Record<string, JobDefaults>>,
  ) {}

  task(name: string): AnyTask | undefined {
    return this.tasks.get(name);
  }

  of(lane: Pick<Lane, "queue" | "task">): TaskPlan | undefined {
    return this.#plans.get(lane.queue)?.get(lane.task) ?? this.#make(lane);
  }

  /** How long handlers take lately, of the tasks of which some have ended here. */
  durations(): ReadonlyMap<string, Durations> {
    const byTask = new Map<string, Durations>();
    for (const [task, { durations }] of this.#estimates) if (durations !== undefined) byTask.set(task, durations);
    return byTask;
  }

  #make(lane: Pick<Lane, "queue" | "task">): TaskPlan | undefined {
    const task = this.tasks.get(lane.task);
    if (task === undefined) return undefined;
    const queue = Object.hasOwn(this.defaults, lane.queue) ? (this.defaults[lane.queue] ?? {}) : {};
    const plan: TaskPlan = {
      task,
      retry: task.options.retry ?? queue.retry ?? DEFAULTS.job.retries,
      timeout: milliseconds(task.options.timeout ?? queue.timeout ?? DEFAULTS.job.timeout),
      atMostOnce: task.options.atMostOnce ?? false,
      estimate: this.#estimateOf(lane.task),
    };
    let ofQueue = this.#plans.get(lane.queue);
    if (ofQueue === undefined) {
      ofQueue = new Map();
      this.#plans.set(lane.queue, ofQueue);
    }
    ofQueue.set(lane.task, plan);
    return plan;
  }

  #estimateOf(task: string): DurationEstimate {
    let estimate = this.#estimates.get(task);
    if (estimate === undefined) {
      estimate = new DurationEstimate();
      this.#estimates.set(task, estimate);
    }
    return estimate;
  }
}

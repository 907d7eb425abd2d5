import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { IdSuffix } from "../../core/jobs/id.js";
import type { JobOptions, NewJob, Priority } from "../../core/jobs/job.js";
import { spreadOut } from "../../core/jobs/spread.js";
import type { TaskOptions } from "../../core/jobs/task.js";
import type { Transaction } from "../../core/jobs/transaction.js";
import type { LimitKeyValue } from "../../core/limits/limit-options.js";
import { DEFAULTS } from "../../core/values/defaults.js";
import { checkName } from "../../core/values/name.js";
import { checkDefaults, checkPeriod, checkPriority, checkSpread, invalid, show } from "../check.js";
import type { EnqueueOptions, QueueDefaults } from "../options.js";
import { idempotencyKeyOfJob } from "./idempotency-key.js";
import { type JobExtras, readOptions } from "./read-options.js";

/** All of a new job but its id and its input: what a task and a set of options come to. */
export interface JobPlan extends Pick<NewJob, "lane" | "options"> {
  /** what most jobs have none of */
  readonly extras?: JobExtras | undefined;
}

/** Jobs without extras are made as plain literals, which is several times faster: bulk enqueues are made of them. */
export function jobFromPlan({ lane, options, extras }: JobPlan, idSuffix: IdSuffix, input: string): NewJob {
  const job: NewJob = extras === undefined ? { idSuffix, lane, input, options } : withExtras({ idSuffix, lane, input, options }, extras);
  return options?.spread === undefined ? job : spreadOut(job);
}

function withExtras(job: NewJob, more: JobExtras): NewJob {
  if (more.idempotencyKey === undefined) return { ...job, ...(more as Omit<JobExtras, "idempotencyKey">) };
  return { ...job, ...more, idempotencyKey: idempotencyKeyOfJob(more.idempotencyKey, job.lane.task, job.input) };
}

export interface PlannedJob {
  readonly plan: JobPlan;
  readonly tx: Transaction | undefined;
  readonly limitKeys: Readonly<Record<string, LimitKeyValue>> | undefined;
}

/** A task as the planner needs it: its code, or no more than its name. */
export interface TaskLike {
  readonly name: string;
  readonly options: TaskOptions<StandardSchemaV1 | undefined, never>;
  readonly schema?: StandardSchemaV1 | undefined;
}

/** What a task's jobs in one queue are unless they say otherwise. */
interface TaskQueueDefaults {
  readonly priority: Priority;
  readonly options: JobOptions;
}

/**
 * Resolves options: job before task before queue before the defaults. Only what differs from the defaults is stored.
 * A retry policy or timeout of a task or queue is not stored at all: it is read where the job runs, so that a deploy
 * can change it for jobs that wait. What the store itself must know (deadline, expiry, crash limit) is.
 */
export class JobPlanner {
  readonly #queues: Readonly<Record<string, QueueDefaults>>;
  /** what this planner enqueues for, and nobody else */
  readonly #tenant: string | undefined;
  readonly #bases = new WeakMap<TaskLike, Map<string, TaskQueueDefaults>>();
  readonly #plain = new WeakMap<TaskLike, PlannedJob>();

  constructor(queues: Readonly<Record<string, QueueDefaults>>, tenant?: string) {
    this.#queues = queues;
    this.#tenant = tenant;
  }

  plan(task: TaskLike, options: EnqueueOptions | undefined): PlannedJob {
    if (options !== undefined) return this.#resolve(task, options);
    let plain = this.#plain.get(task);
    if (plain === undefined) {
      plain = this.#resolve(task, {});
      this.#plain.set(task, plain);
    }
    return plain;
  }

  #resolve(task: TaskLike, options: EnqueueOptions): PlannedJob {
    const draft = readOptions(options);
    const queue = draft.queue ?? task.options.queue ?? DEFAULTS.job.queue;
    const base = this.#base(task, queue);
    const { spread = 0, ...optionsWithoutSpread }: JobOptions = { ...base.options, ...draft.options };
    const stored: JobOptions = spread === 0 ? optionsWithoutSpread : { ...optionsWithoutSpread, spread };
    const lane = { queue, priority: draft.priority ?? base.priority, tenant: this.#tenantOf(draft.tenant), task: task.name };
    const { extras, tx, limitKeys } = draft;
    return { plan: { lane, options: isEmpty(stored) ? undefined : stored, extras: isEmpty(extras) ? undefined : extras }, tx, limitKeys };
  }

  #tenantOf(requestedTenant: string | undefined): string {
    if (this.#tenant === undefined) return requestedTenant ?? DEFAULTS.job.tenant;
    if (requestedTenant !== undefined && requestedTenant !== this.#tenant)
      throw invalid("tenant", `this scheduler acts for ${show(this.#tenant)} only`);
    return this.#tenant;
  }

  #base(task: TaskLike, queue: string): TaskQueueDefaults {
    let bases = this.#bases.get(task);
    if (bases === undefined) {
      checkDefaults("", task.options);
      if (task.options.queue !== undefined) checkName("queue", task.options.queue);
      bases = new Map();
      this.#bases.set(task, bases);
    }
    let base = bases.get(queue);
    if (base === undefined) {
      base = baseOf(task.options, Object.hasOwn(this.#queues, queue) ? (this.#queues[queue] as QueueDefaults) : {});
      // Callers may invent queue names without end; what they cost must not grow with them.
      if (bases.size >= 1_000) bases.clear();
      bases.set(queue, base);
    }
    return base;
  }
}

function baseOf(task: TaskLike["options"], queue: QueueDefaults): TaskQueueDefaults {
  const finishWithin = task.finishWithin ?? queue.finishWithin;
  const startWithin = task.startWithin ?? queue.startWithin;
  const spread = task.spread ?? queue.spread;
  const maxCrashes = task.maxCrashes ?? queue.maxCrashes ?? DEFAULTS.job.maxCrashes;
  return {
    priority: checkPriority(task.priority ?? queue.priority ?? DEFAULTS.job.priority),
    options: {
      ...(finishWithin === undefined ? {} : { finishWithin: checkPeriod("finishWithin", finishWithin) }),
      ...(startWithin === undefined ? {} : { startWithin: checkPeriod("startWithin", startWithin) }),
      ...(maxCrashes === DEFAULTS.job.maxCrashes ? {} : { maxCrashes }),
      ...(spread === undefined ? {} : { spread: checkSpread(spread) }),
      ...(task.atMostOnce === true ? { atMostOnce: true } : {}),
    },
  };
}

function isEmpty(value: object): boolean {
  for (const _ in value) return false;
  return true;
}

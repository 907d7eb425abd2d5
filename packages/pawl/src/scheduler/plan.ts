import type { StandardSchemaV1 } from "@standard-schema/spec";
import { DEFAULTS } from "../core/defaults.js";
import type { IdTail } from "../core/id.js";
import type { JobOptions, NewJob, Priority } from "../core/job.js";
import type { LimitKey } from "../core/limit-options.js";
import { checkName } from "../core/name.js";
import { spreadOut } from "../core/spread.js";
import type { ForeignTransaction } from "../store/port.js";
import type { TaskOptions } from "../worker/task.js";
import { checkDefaults, checkPeriod, checkPriority, checkSpread, invalid, show } from "./check.js";
import { type Extras, readOptions } from "./given.js";
import { jobRequest } from "./once.js";
import type { EnqueueOptions, QueueDefaults } from "./options.js";

/** All of a new job but its id and its input: what a task and a set of options come to. */
export interface Plan extends Pick<NewJob, "lane" | "options"> {
  /** what most jobs have none of */
  readonly more?: Extras | undefined;
}

/** Jobs without extras are made as plain literals, which is several times faster: bulk enqueues are made of them. */
export function jobOf({ lane, options, more }: Plan, tail: IdTail, input: string): NewJob {
  const job: NewJob = more === undefined ? { tail, lane, input, options } : withExtras({ tail, lane, input, options }, more);
  return options?.spread === undefined ? job : spreadOut(job);
}

function withExtras(job: NewJob, more: Extras): NewJob {
  if (more.request === undefined) return { ...job, ...(more as Omit<Extras, "request">) };
  return { ...job, ...more, request: jobRequest(more.request, job.lane.task, job.input) };
}

export interface Planned {
  readonly plan: Plan;
  readonly tx: ForeignTransaction | undefined;
  readonly limitKeys: Readonly<Record<string, LimitKey>> | undefined;
}

/** A task as the planner needs it: its code, or no more than its name. */
export interface TaskLike {
  readonly name: string;
  readonly options: TaskOptions<StandardSchemaV1 | undefined, never>;
  readonly schema?: StandardSchemaV1 | undefined;
}

/** What a task's jobs in one queue are unless they say otherwise. */
interface Base {
  readonly band: Priority;
  readonly stored: JobOptions;
}

/**
 * Resolves options: job before task before queue before the defaults. Only what differs from the defaults is stored.
 * A retry policy or timeout of a task or queue is not stored at all: it is read where the job runs, so that a deploy
 * can change it for jobs that wait. What the store itself must know (deadline, expiry, crash limit) is.
 */
export class Planner {
  readonly #queues: Readonly<Record<string, QueueDefaults>>;
  /** what this planner enqueues for, and nobody else */
  readonly #tenant: string | undefined;
  readonly #bases = new WeakMap<TaskLike, Map<string, Base>>();
  readonly #plain = new WeakMap<TaskLike, Planned>();

  constructor(queues: Readonly<Record<string, QueueDefaults>>, tenant?: string) {
    this.#queues = queues;
    this.#tenant = tenant;
  }

  plan(task: TaskLike, options: EnqueueOptions | undefined): Planned {
    if (options !== undefined) return this.#resolve(task, options);
    let plain = this.#plain.get(task);
    if (plain === undefined) {
      plain = this.#resolve(task, {});
      this.#plain.set(task, plain);
    }
    return plain;
  }

  #resolve(task: TaskLike, options: EnqueueOptions): Planned {
    const given = readOptions(options);
    const queue = given.queue ?? task.options.queue ?? DEFAULTS.job.queue;
    const base = this.#base(task, queue);
    const { spread = 0, ...asked }: JobOptions = { ...base.stored, ...given.stored };
    const stored: JobOptions = spread === 0 ? asked : { ...asked, spread };
    const lane = { queue, band: given.band ?? base.band, tenant: this.#tenantOf(given.tenant), task: task.name };
    const { more, tx, limitKeys } = given;
    return { plan: { lane, options: isEmpty(stored) ? undefined : stored, more: isEmpty(more) ? undefined : more }, tx, limitKeys };
  }

  #tenantOf(asked: string | undefined): string {
    if (this.#tenant === undefined) return asked ?? DEFAULTS.job.tenant;
    if (asked !== undefined && asked !== this.#tenant) throw invalid("tenant", `this scheduler acts for ${show(this.#tenant)} only`);
    return this.#tenant;
  }

  #base(task: TaskLike, queue: string): Base {
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

function baseOf(task: TaskLike["options"], queue: QueueDefaults): Base {
  const deadline = task.deadline ?? queue.deadline;
  const expire = task.expire ?? queue.expire;
  const spread = task.spread ?? queue.spread;
  const crashLimit = task.crashLimit ?? queue.crashLimit ?? DEFAULTS.job.crashLimit;
  return {
    band: checkPriority(task.priority ?? queue.priority ?? DEFAULTS.job.priority),
    stored: {
      ...(deadline === undefined ? {} : { deadline: checkPeriod("deadline", deadline) }),
      ...(expire === undefined ? {} : { expire: checkPeriod("expire", expire) }),
      ...(crashLimit === DEFAULTS.job.crashLimit ? {} : { crashLimit }),
      ...(spread === undefined ? {} : { spread: checkSpread(spread) }),
      ...(task.atMostOnce === true ? { atMostOnce: true } : {}),
    },
  };
}

function isEmpty(value: object): boolean {
  for (const _ in value) return false;
  return true;
}

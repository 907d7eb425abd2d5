import type { StandardSchemaV1 } from "@standard-schema/spec";
import { DEFAULTS } from "../core/defaults.js";
import type { DeathPolicy } from "../core/dependency.js";
import { isJobId, type JobId } from "../core/id.js";
import type { JobOptions, NewJob, Priority } from "../core/job.js";
import { checkName } from "../core/name.js";
import { storedRetry } from "../core/retry.js";
import type { UniqueRule } from "../core/unique.js";
import type { ForeignTransaction } from "../store/port.js";
import type { TaskOptions } from "../worker/task.js";
import {
  checkCrashLimit,
  checkDefaults,
  checkDuration,
  checkInstant,
  checkKeys,
  checkObject,
  checkOneOf,
  checkPeriod,
  checkPriority,
  invalid,
  show,
  unknownOption,
} from "./check.js";
import type { EnqueueOptions, QueueDefaults } from "./options.js";

/** All of a new job but its id and its input: what a task and a set of options come to. */
export type Plan = Omit<NewJob, "tail" | "input">;

export interface Planned {
  readonly plan: Plan;
  readonly tx: ForeignTransaction | undefined;
}

/** A task as the planner needs it: its code, or no more than its name. */
export interface TaskLike {
  readonly name: string;
  readonly options: TaskOptions<StandardSchemaV1 | undefined>;
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
    const given = read(options);
    const queue = given.queue ?? task.options.queue ?? DEFAULTS.job.queue;
    const base = this.#base(task, queue);
    const stored: JobOptions = { ...base.stored, ...given.stored };
    const lane = { queue, band: given.band ?? base.band, tenant: this.#tenantOf(given.tenant), task: task.name };
    const { rest, tx } = given;
    return { plan: { lane, options: isEmpty(stored) ? undefined : stored, ...rest }, tx };
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
  const crashLimit = task.crashLimit ?? queue.crashLimit ?? DEFAULTS.job.crashLimit;
  return {
    band: checkPriority(task.priority ?? queue.priority ?? DEFAULTS.job.priority),
    stored: {
      ...(deadline === undefined ? {} : { deadline: checkPeriod("deadline", deadline) }),
      ...(expire === undefined ? {} : { expire: checkPeriod("expire", expire) }),
      ...(crashLimit === DEFAULTS.job.crashLimit ? {} : { crashLimit }),
      ...(task.atMostOnce === true ? { atMostOnce: true } : {}),
    },
  };
}

/** What the caller asked for, checked, in stored form. */
interface Given {
  queue?: string;
  band?: Priority;
  tenant?: string;
  tx?: ForeignTransaction;
  readonly stored: { -readonly [K in keyof JobOptions]: JobOptions[K] };
  readonly rest: { -readonly [K in keyof Omit<Plan, "lane" | "options">]: Plan[K] };
}

const READERS: { readonly [K in keyof Required<EnqueueOptions>]: (value: unknown, given: Given, options: EnqueueOptions) => void } = {
  queue(value, given) {
    given.queue = checkName("queue", value);
  },
  priority(value, given) {
    given.band = checkPriority(value);
  },
  tenant(value, given) {
    given.tenant = checkName("tenant", value);
  },
  tags(value, given) {
    const tags = checkTags(value);
    if (tags.length > 0) given.stored.tags = tags;
  },
  retry(value, given) {
    given.stored.retry = storedRetry(value as Parameters<typeof storedRetry>[0]);
  },
  timeout(value, given) {
    given.stored.timeout = checkPeriod("timeout", value);
  },
  deadline(value, given) {
    given.stored.deadline = checkPeriod("deadline", value);
  },
  expire(value, given) {
    given.stored.expire = checkPeriod("expire", value);
  },
  crashLimit(value, given) {
    given.stored.crashLimit = checkCrashLimit(value);
  },
  delay(value, given, { runAt }) {
    if (runAt !== undefined) throw invalid("delay", "runAt is given too: choose one");
    const delay = checkDuration("delay", value);
    if (delay > 0) given.rest.delay = delay;
  },
  runAt(value, given) {
    given.rest.runAt = checkInstant("runAt", value);
  },
  key(value, given, { unique }) {
    if (unique !== undefined) throw invalid("key", "unique is given too: choose one");
    setUnique(given, { key: checkName("key", value), hold: "unfinished", onConflict: "existing" });
  },
  unique(value, given) {
    setUnique(given, checkUnique(value));
  },
  request(value, given) {
    given.rest.request = checkName("request id", value);
  },
  dependsOn(value, given, { onDeath }) {
    const parents = checkParents(value);
    if (parents.length > 0) given.rest.dependsOn = { parents, onDeath: onDeath ?? "die" };
  },
  onDeath(value, _given, { dependsOn }) {
    checkOneOf<DeathPolicy>("onDeath", value, ["die", "run", "wait"]);
    if (dependsOn === undefined) throw invalid("onDeath", "it says nothing without dependsOn");
  },
  tx(value, given) {
    given.tx = checkTransaction(value);
  },
};

function read(options: EnqueueOptions): Given {
  checkObject("options", options);
  const given: Given = { stored: {}, rest: {} };
  for (const name of Object.keys(options)) {
    if (!Object.hasOwn(READERS, name)) throw unknownOption(name, Object.keys(READERS));
    const value = options[name as keyof EnqueueOptions];
    if (value !== undefined) READERS[name as keyof EnqueueOptions](value, given, options);
  }
  return given;
}

function setUnique(given: Given, unique: UniqueRule): void {
  given.rest.unique = unique;
  given.stored.key = unique.key;
}

const UNIQUE_KEYS = new Set(["key", "while", "onConflict"]);

function checkUnique(value: unknown): UniqueRule {
  const given = checkObject("unique", value) as { key?: unknown; while?: unknown; onConflict?: unknown };
  checkKeys(given, UNIQUE_KEYS, "unique.");
  const hold = given.while ?? "unfinished";
  return {
    key: checkName("key", given.key),
    hold: hold === "pending" || hold === "unfinished" ? hold : checkPeriod("unique.while", hold),
    onConflict: checkOneOf("unique.onConflict", given.onConflict ?? "existing", ["reject", "existing", "replace"]),
  };
}

function checkTags(value: unknown): readonly string[] {
  if (!Array.isArray(value)) throw invalid("tags", `${show(value)} is not an array`);
  const tags = [...new Set(value.map((tag) => checkName("tag", tag)))];
  if (tags.length > DEFAULTS.limits.tags) throw invalid("tags", `${tags.length} are more than ${DEFAULTS.limits.tags}`);
  return tags;
}

function checkParents(value: unknown): readonly JobId[] {
  const parents = new Set<JobId>();
  for (const parent of Array.isArray(value) ? value : [value]) {
    const id = idOf(parent);
    if (id === undefined) throw invalid("dependsOn", `${show(parent)} is not a job or its id`);
    parents.add(id);
  }
  const { dependencies } = DEFAULTS.limits;
  if (parents.size > dependencies) throw invalid("dependsOn", `${parents.size} jobs are more than ${dependencies}`);
  return [...parents];
}

/** The id of what was given as a job, in the one form stores compare; undefined if it is none. */
export function idOf(job: unknown): JobId | undefined {
  const id: unknown = typeof job === "object" && job !== null ? (job as { id?: unknown }).id : job;
  return typeof id === "string" && isJobId(id) ? (id.toLowerCase() as JobId) : undefined;
}

function checkTransaction(value: unknown): ForeignTransaction {
  if (typeof (value as { query?: unknown } | null)?.query === "function") return value as ForeignTransaction;
  throw invalid("tx", "it has no query(text, values) function");
}

function isEmpty(value: object): boolean {
  for (const _ in value) return false;
  return true;
}

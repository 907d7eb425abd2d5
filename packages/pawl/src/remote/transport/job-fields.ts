import { publishedRetry, storedRetry } from "../../core/jobs/retry.js";
import type { JobDefaults } from "../../core/jobs/task.js";
import { pawlError } from "../../core/values/error.js";
import type { TaskLike } from "../../scheduler/enqueue/job-plan.js";
import { optionNames } from "../../scheduler/enqueue/option-table.js";
import { uniqueRuleOf } from "../../scheduler/enqueue/plan-for-input.js";
import { jobIdOf, readOptions } from "../../scheduler/enqueue/read-options.js";
import { withLimits } from "../../scheduler/limits/limits.js";
import type { EnqueueOptions, QueueDefaults } from "../../scheduler/options.js";

/** What a job is enqueued with, as the service takes it. */
export type JobFields = Readonly<Record<string, unknown>>;

/** What of a task and a queue is said with each job: the rest is read where it runs. */
const SENT_DEFAULTS = optionNames(
  ({ alsoOf, readWhereItRuns }) => alsoOf?.includes("queue") === true && readWhereItRuns !== true,
) as readonly Exclude<keyof JobDefaults, "queue">[];

/**
 * Checked here as they would be where the store is, so that a mistake is found before it is sent; then job before task
 * before queue, since the service need not know this code.
 */
export function jobFields(
  task: TaskLike,
  queues: Readonly<Record<string, QueueDefaults>>,
  tenant: string | undefined,
  options: EnqueueOptions,
): JobFields {
  const { queue = task.options.queue } = readOptions(options);
  if (options.tx !== undefined) throw pawlError("remote_unsupported", { what: "enqueueing in a transaction of your own" });
  const ofQueue: JobDefaults = queue !== undefined && Object.hasOwn(queues, queue) ? (queues[queue] ?? {}) : {};
  const fields: Record<string, unknown> = queue === undefined ? {} : { queue };
  for (const name of SENT_DEFAULTS) {
    const value = task.options[name] ?? ofQueue[name];
    if (value !== undefined) fields[name] = value;
  }
  return { ...fields, ...jobOptionsOf(options), ...(tenant === undefined ? {} : { tenant }) };
}

const NO_LANE = { queue: "", priority: 5, tenant: "", task: "" } as const;

/** The same of one job, with its unique key and the keys of its limits: those that only this code can compute are computed here. */
export function jobFieldsOfInput(
  task: TaskLike,
  queues: Readonly<Record<string, QueueDefaults>>,
  tenant: string | undefined,
  input: unknown,
  options: EnqueueOptions,
): JobFields {
  const fields = { ...jobFields(task, queues, tenant, options), ...uniqueFieldOf(task, input, options) };
  if (task.options.limits === undefined) return fields;
  const { options: limited } = withLimits({ lane: NO_LANE, options: undefined }, task, input, options.limitKeys);
  const keys = Object.fromEntries(task.options.limits.map(({ name }) => [name, null as string | null]));
  for (const { limit, key } of limited?.limits ?? []) keys[limit] = key;
  return { ...fields, limitKeys: keys };
}

function uniqueFieldOf(task: TaskLike, input: unknown, { unique, debounce }: EnqueueOptions): JobFields {
  if (unique !== undefined || debounce !== undefined) return {};
  const rule = uniqueRuleOf(task, input);
  return rule === undefined ? {} : { unique: { key: rule.key, for: rule.hold, onConflict: rule.onConflict } };
}

export function jobOptionsOf({ dependsOn, retry, tx: _, ...plain }: EnqueueOptions): JobFields {
  return {
    ...plain,
    ...(retry === undefined ? {} : { retry: storedRetry(retry) }),
    ...(dependsOn === undefined ? {} : { dependsOn: (Array.isArray(dependsOn) ? dependsOn : [dependsOn]).map(jobIdOf) }),
  };
}

/** How a task is run, as far as it can be said without its code. */
export function runOptions({ name, options: { retry, timeout, atMostOnce, needs, breaker } }: TaskLike): JobFields {
  const published = retry === undefined ? undefined : publishedRetry(retry);
  const fields = { name, retry: published, timeout, atMostOnce, needs, breaker };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

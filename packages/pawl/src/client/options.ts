import { pawlError } from "../core/error.js";
import { publishedRetry, storedRetry } from "../core/retry.js";
import type { DEFAULT_KEYS } from "../scheduler/check.js";
import { idOf, readOptions } from "../scheduler/given.js";
import { withLimits } from "../scheduler/limits.js";
import type { EnqueueOptions, QueueDefaults } from "../scheduler/options.js";
import type { TaskLike } from "../scheduler/plan.js";
import type { TaskDefaults } from "../worker/task.js";

/** What a job is enqueued with, as the service takes it. */
export type WireOptions = Readonly<Record<string, unknown>>;

/** What of a task and a queue is said with each job: the rest is read where it runs. */
const SAID = ["priority", "deadline", "expire", "crashLimit", "spread"] as const satisfies readonly (typeof DEFAULT_KEYS)[number][];

/**
 * Checked here as they would be where the store is, so that a mistake is found before it is sent; then job before task
 * before queue, since the service need not know this code.
 */
export function wireOptions(
  task: TaskLike,
  queues: Readonly<Record<string, QueueDefaults>>,
  tenant: string | undefined,
  options: EnqueueOptions,
): WireOptions {
  const { queue = task.options.queue } = readOptions(options);
  if (options.tx !== undefined) throw pawlError("remote_unsupported", { what: "enqueueing in a transaction of your own" });
  const ofQueue: TaskDefaults = queue !== undefined && Object.hasOwn(queues, queue) ? (queues[queue] ?? {}) : {};
  const said: Record<string, unknown> = queue === undefined ? {} : { queue };
  for (const name of SAID) {
    const value = task.options[name] ?? ofQueue[name];
    if (value !== undefined) said[name] = value;
  }
  return { ...said, ...jobOptionsOf(options), ...(tenant === undefined ? {} : { tenant }) };
}

const NO_LANE = { queue: "", band: 5, tenant: "", task: "" } as const;

/** The same of one job, with the keys of its limits: those that only this code can compute are computed here. */
export function toldOptions(
  task: TaskLike,
  queues: Readonly<Record<string, QueueDefaults>>,
  tenant: string | undefined,
  input: unknown,
  options: EnqueueOptions,
): WireOptions {
  const said = wireOptions(task, queues, tenant, options);
  if (task.options.limits === undefined) return said;
  const { options: limited } = withLimits({ lane: NO_LANE, options: undefined }, task, input, options.limitKeys);
  const keys = Object.fromEntries(task.options.limits.map(({ name }) => [name, null as string | null]));
  for (const { limit, key } of limited?.limits ?? []) keys[limit] = key;
  return { ...said, limitKeys: keys };
}

export function jobOptionsOf({ dependsOn, retry, tx: _, ...plain }: EnqueueOptions): WireOptions {
  return {
    ...plain,
    ...(retry === undefined ? {} : { retry: storedRetry(retry) }),
    ...(dependsOn === undefined ? {} : { dependsOn: (Array.isArray(dependsOn) ? dependsOn : [dependsOn]).map(idOf) }),
  };
}

/** How a task is run, as far as it can be said without its code. */
export function runOptions({ name, options: { retry, timeout, atMostOnce, needs, breaker } }: TaskLike): WireOptions {
  const published = retry === undefined ? undefined : publishedRetry(retry);
  const said = { name, retry: published, timeout, atMostOnce, needs, breaker };
  return Object.fromEntries(Object.entries(said).filter(([, value]) => value !== undefined));
}

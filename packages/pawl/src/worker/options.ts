import { DEFAULTS } from "../core/defaults.js";
import { type Duration, milliseconds } from "../core/duration.js";
import { pawlError } from "../core/error.js";
import { checkName } from "../core/name.js";
import { defaultName } from "../runtime/identity.js";
import type { Renewer } from "../store/port.js";
import type { Middleware } from "./context.js";
import type { AnyTask } from "./task.js";

export interface WorkerOptions {
  /** handlers at a time */
  readonly concurrency?: number;
  /** the queues to serve; absent: all */
  readonly queues?: readonly string[];
  /** the tasks to serve; absent: all that are registered */
  readonly tasks?: readonly string[];
  /** handlers at a time of one queue or one task, inside the total */
  readonly slots?: { readonly queues?: Readonly<Record<string, number>>; readonly tasks?: Readonly<Record<string, number>> };
  /** for people; several workers may share it */
  readonly name?: string;
  readonly lease?: Duration;
  readonly renewal?: Duration;
  /** how long `stop` lets handlers finish */
  readonly drain?: Duration;
  /** most jobs taken by one claim */
  readonly claimBatch?: number;
  /** around every attempt, the first one outermost */
  readonly middleware?: readonly Middleware[];
  /** how long an idle worker waits before it looks again; a wake-up cuts it short */
  readonly poll?: Duration;
  /** keeps leases alive in place of the store's own renewer */
  readonly renewer?: Renewer;
}

/** The options with every default filled in, checked. ms. */
export interface Settings {
  readonly name: string;
  readonly concurrency: number;
  readonly queues: readonly string[] | undefined;
  readonly tasks: readonly string[];
  readonly queueSlots: ReadonlyMap<string, number>;
  readonly taskSlots: ReadonlyMap<string, number>;
  readonly lease: number;
  readonly renewal: number;
  readonly drain: number;
  readonly claimBatch: number;
  readonly poll: number;
  readonly middleware: readonly Middleware[];
}

export function settingsOf(options: WorkerOptions, tasks: ReadonlyMap<string, AnyTask>): Settings {
  const lease = milliseconds(options.lease ?? DEFAULTS.lease.duration);
  const renewal = milliseconds(options.renewal ?? Math.min(DEFAULTS.lease.renewal, lease / 3));
  if (lease < 100) throw invalid("lease", "it is shorter than 100 ms");
  if (renewal < 1 || renewal > lease / 2) throw invalid("renewal", "it is not between 1 ms and half the lease");
  const poll = milliseconds(options.poll ?? DEFAULTS.worker.poll);
  if (poll < 1) throw invalid("poll", "it is shorter than 1 ms");
  return {
    name: checkName("worker name", options.name ?? defaultName()),
    concurrency: count("concurrency", options.concurrency ?? DEFAULTS.worker.concurrency),
    queues: options.queues?.map((queue) => checkName("queue", queue)),
    tasks: servedTasks(options.tasks, tasks),
    queueSlots: slots("slots.queues", options.slots?.queues),
    taskSlots: slots("slots.tasks", options.slots?.tasks),
    lease,
    renewal,
    drain: milliseconds(options.drain ?? DEFAULTS.worker.drain),
    claimBatch: count("claimBatch", options.claimBatch ?? DEFAULTS.worker.claimBatch),
    poll,
    middleware: options.middleware ?? [],
  };
}

function servedTasks(asked: readonly string[] | undefined, registered: ReadonlyMap<string, AnyTask>): readonly string[] {
  if (asked === undefined) return [...registered.keys()];
  for (const task of asked) if (!registered.has(task)) throw pawlError("task_unknown", { task });
  return [...new Set(asked)];
}

function slots(option: string, given: Readonly<Record<string, number>> | undefined): ReadonlyMap<string, number> {
  return new Map(Object.entries(given ?? {}).map(([name, size]) => [name, count(`${option}.${name}`, size)]));
}

function count(option: string, value: number): number {
  if (!Number.isInteger(value) || value < 1 || value > 100_000) throw invalid(option, `${value} is not a whole number from 1 to 100000`);
  return value;
}

function invalid(option: string, reason: string) {
  return pawlError("option_invalid", { option, reason });
}

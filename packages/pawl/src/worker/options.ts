import { DEFAULTS } from "../core/defaults.js";
import type { Duration } from "../core/duration.js";
import { pawlError } from "../core/error.js";
import { checkName } from "../core/name.js";
import { checkArray, checkDuration, checkFunction, checkKeys, checkObject, checkPeriod, checkWhole, invalid, show } from "../core/option.js";
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
  const lease = checkDuration("lease", options.lease ?? DEFAULTS.lease.duration);
  const renewal = checkDuration("renewal", options.renewal ?? Math.min(DEFAULTS.lease.renewal, lease / 3));
  if (lease < 100) throw invalid("lease", "it is shorter than 100 ms");
  if (renewal < 1 || renewal > lease / 2) throw invalid("renewal", "it is not between 1 ms and half the lease");
  return {
    name: checkName("worker name", options.name ?? defaultName()),
    concurrency: count("concurrency", options.concurrency ?? DEFAULTS.worker.concurrency),
    queues: servedQueues(options.queues),
    tasks: servedTasks(options.tasks, tasks),
    ...slotsOf(options.slots, tasks),
    lease,
    renewal,
    drain: checkDuration("drain", options.drain ?? DEFAULTS.worker.drain),
    claimBatch: count("claimBatch", options.claimBatch ?? DEFAULTS.worker.claimBatch),
    poll: checkPeriod("poll", options.poll ?? DEFAULTS.worker.poll),
    middleware: checkMiddleware(options.middleware),
  };
}

function servedQueues(asked: WorkerOptions["queues"]): readonly string[] | undefined {
  return asked === undefined ? undefined : checkArray("queues", asked).map((queue) => checkName("queue", queue));
}

function servedTasks(asked: WorkerOptions["tasks"], registered: ReadonlyMap<string, AnyTask>): readonly string[] {
  if (asked === undefined) return [...registered.keys()];
  return [...new Set(checkArray("tasks", asked).map((task) => known(task, registered)))];
}

const SLOT_KEYS: ReadonlySet<string> = new Set(["queues", "tasks"]);

function slotsOf(given: WorkerOptions["slots"] = {}, registered: ReadonlyMap<string, AnyTask>): Pick<Settings, "queueSlots" | "taskSlots"> {
  checkKeys(checkObject("slots", given), SLOT_KEYS, "slots.");
  return {
    queueSlots: slots("slots.queues", given.queues, (queue) => checkName("queue", queue)),
    taskSlots: slots("slots.tasks", given.tasks, (task) => known(task, registered)),
  };
}

function slots(option: string, given: Readonly<Record<string, number>> = {}, name: (given: string) => string): ReadonlyMap<string, number> {
  return new Map(Object.entries(checkObject(option, given)).map(([key, size]) => [name(key), count(`${option}.${key}`, size)]));
}

function checkMiddleware(given: WorkerOptions["middleware"] = []): readonly Middleware[] {
  checkArray("middleware", given).forEach((layer, index) => {
    checkFunction(`middleware[${index}]`, layer);
  });
  return given;
}

function known(task: unknown, registered: ReadonlyMap<string, AnyTask>): string {
  if (typeof task === "string" && registered.has(task)) return task;
  throw pawlError("task_unknown", { task: show(task) });
}

function count(option: string, value: unknown): number {
  return checkWhole(option, value, 1, 100_000);
}

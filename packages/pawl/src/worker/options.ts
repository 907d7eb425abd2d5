import type { Middleware } from "../core/jobs/context.js";
import type { Priority } from "../core/jobs/job.js";
import type { AnyTask } from "../core/jobs/task.js";
import type { Provides } from "../core/limits/capacity.js";
import { checkProvides } from "../core/limits/capacity-check.js";
import { DEFAULTS } from "../core/values/defaults.js";
import type { Duration } from "../core/values/duration.js";
import { pawlError } from "../core/values/error.js";
import { checkName } from "../core/values/name.js";
import {
  checkArray,
  checkDuration,
  checkFunction,
  checkKeys,
  checkObject,
  checkPeriod,
  checkWhole,
  invalid,
  shortened,
  show,
} from "../core/values/option.js";
import { defaultName } from "../runtime/process/identity.js";
import type { Renewer } from "../store/port/settle/leases.js";

export interface WorkerOptions {
  /** handlers at a time of this worker: a number, or one with smaller numbers for some queues and tasks */
  readonly concurrency?: number | ConcurrencyOptions;
  /** the queues to serve; absent: all */
  readonly queues?: readonly string[];
  /** the tasks to serve; absent: all that are registered */
  readonly tasks?: readonly string[];
  /** the priorities to serve; absent: all */
  readonly priorities?: readonly number[];
  /** the tenants to serve; absent: all */
  readonly tenants?: readonly string[];
  /** what it has, for tasks that need it. See docs/capacity.md */
  readonly provides?: Provides;
  /** slots kept for a priority or a tenant, which others never take */
  readonly reserve?: readonly Reservation[];
  /** handlers lost, going on 30 s and more after their time, from which on it takes nothing more (default: as many as it has slots) */
  readonly mostLost?: number;
  /** for people; several workers may share it */
  readonly name?: string;
  readonly leaseDuration?: Duration;
  readonly renewInterval?: Duration;
  /** how long `stop` lets handlers finish */
  readonly shutdownGrace?: Duration;
  /** most jobs taken by one claim */
  readonly maxJobsPerClaim?: number;
  /** around every attempt, the first one outermost */
  readonly middleware?: readonly Middleware[];
  /** how long an idle worker waits before it looks again; a wakeup cuts it short */
  readonly pollInterval?: Duration;
  /** keeps leases alive in place of the store's own renewer */
  readonly renewer?: Renewer;
}

export const WORKER_KEYS: ReadonlySet<string> = new Set(
  Object.keys({
    concurrency: true,
    queues: true,
    tasks: true,
    priorities: true,
    tenants: true,
    provides: true,
    reserve: true,
    mostLost: true,
    name: true,
    leaseDuration: true,
    renewInterval: true,
    shutdownGrace: true,
    maxJobsPerClaim: true,
    middleware: true,
    pollInterval: true,
    renewer: true,
  } satisfies Record<keyof WorkerOptions, true>),
);

/** Handlers at a time of one worker. */
export interface ConcurrencyOptions {
  /** of all queues and tasks together (default: 10) */
  readonly total?: number;
  /** of one queue, inside the total */
  readonly queues?: Readonly<Record<string, number>>;
  /** of one task, inside the total */
  readonly tasks?: Readonly<Record<string, number>>;
}

/** Slots kept free for a priority, a tenant, or a tenant's jobs of a priority. */
export interface Reservation {
  readonly priority?: number;
  readonly tenant?: string;
  readonly slots: number;
}

/** The options with every default filled in, checked. ms. */
export interface WorkerSettings {
  readonly name: string;
  readonly concurrency: number;
  readonly queues: readonly string[] | undefined;
  readonly tasks: readonly string[];
  readonly priorities: readonly Priority[] | undefined;
  readonly tenants: readonly string[] | undefined;
  readonly provides: Required<Provides>;
  readonly reserve: readonly Reservation[];
  readonly queueSlots: ReadonlyMap<string, number>;
  readonly taskSlots: ReadonlyMap<string, number>;
  readonly mostLost: number;
  readonly leaseDuration: number;
  readonly renewInterval: number;
  readonly shutdownGrace: number;
  readonly maxJobsPerClaim: number;
  readonly pollInterval: number;
  readonly middleware: readonly Middleware[];
}

export function settingsOf(options: WorkerOptions, tasks: ReadonlyMap<string, AnyTask>): WorkerSettings {
  const leaseDuration = checkDuration("leaseDuration", options.leaseDuration ?? DEFAULTS.lease.duration);
  const renewInterval = checkDuration("renewInterval", options.renewInterval ?? Math.min(DEFAULTS.lease.renewInterval, leaseDuration / 3));
  if (leaseDuration < 100) throw invalid("leaseDuration", "it is shorter than 100 ms");
  if (renewInterval < 1 || renewInterval > leaseDuration / 2) throw invalid("renewInterval", "it is not between 1 ms and half the leaseDuration");
  const { concurrency, queueSlots, taskSlots } = concurrencyOf(options.concurrency, tasks);
  const priorities =
    options.priorities === undefined
      ? undefined
      : checkNotEmpty("priorities", options.priorities).map((priority) => checkPriority("priorities", priority));
  const tenants = options.tenants === undefined ? undefined : checkNotEmpty("tenants", options.tenants).map((tenant) => checkName("tenant", tenant));
  return {
    name: checkName("worker name", options.name ?? defaultName()),
    concurrency,
    queues: servedQueues(options.queues),
    tasks: servedTasks(options.tasks, tasks),
    priorities,
    tenants,
    provides: checkProvides("provides", options.provides),
    reserve: reservationsOf(options.reserve, { concurrency, priorities, tenants }),
    queueSlots,
    taskSlots,
    mostLost: checkWhole("mostLost", options.mostLost ?? concurrency, 1, concurrency),
    leaseDuration,
    renewInterval,
    shutdownGrace: checkDuration("shutdownGrace", options.shutdownGrace ?? DEFAULTS.worker.shutdownGrace),
    maxJobsPerClaim: count("maxJobsPerClaim", options.maxJobsPerClaim ?? DEFAULTS.worker.maxJobsPerClaim),
    pollInterval: checkPeriod("pollInterval", options.pollInterval ?? DEFAULTS.worker.pollInterval),
    middleware: checkMiddleware(options.middleware),
  };
}

function servedQueues(names: WorkerOptions["queues"]): readonly string[] | undefined {
  return names === undefined ? undefined : checkArray("queues", names).map((queue) => checkName("queue", queue));
}

function servedTasks(names: WorkerOptions["tasks"], registered: ReadonlyMap<string, AnyTask>): readonly string[] {
  if (names === undefined) return [...registered.keys()];
  return [...new Set(checkArray("tasks", names).map((task) => checkRegistered(task, registered)))];
}

const CONCURRENCY_KEYS: ReadonlySet<string> = new Set(["total", "queues", "tasks"] satisfies readonly (keyof ConcurrencyOptions)[]);

function concurrencyOf(
  raw: WorkerOptions["concurrency"] = {},
  registered: ReadonlyMap<string, AnyTask>,
): Pick<WorkerSettings, "concurrency" | "queueSlots" | "taskSlots"> {
  if (typeof raw === "number") return { concurrency: count("concurrency", raw), queueSlots: new Map(), taskSlots: new Map() };
  const { total, queues, tasks } = checkConcurrencyObject(raw);
  return {
    concurrency: total === undefined ? DEFAULTS.worker.concurrency : count("concurrency.total", total),
    queueSlots: slots("concurrency.queues", queues, (queue) => checkName("queue", queue)),
    taskSlots: slots("concurrency.tasks", tasks, (task) => checkRegistered(task, registered)),
  };
}

function checkConcurrencyObject(raw: unknown): ConcurrencyOptions {
  if (typeof raw !== "object" || raw === null || Array.isArray(raw))
    throw invalid("concurrency", `${show(raw)} is neither a number nor { total, queues, tasks }`);
  checkKeys(raw, CONCURRENCY_KEYS, "concurrency.");
  return raw;
}

function slots(option: string, raw: Readonly<Record<string, number>> = {}, name: (raw: string) => string): ReadonlyMap<string, number> {
  return new Map(Object.entries(checkObject(option, raw)).map(([key, size]) => [name(key), count(`${option}.${key}`, size)]));
}

const RESERVE_KEYS: ReadonlySet<string> = new Set(["priority", "tenant", "slots"] satisfies readonly (keyof Reservation)[]);

function reservationsOf(
  raw: WorkerOptions["reserve"] = [],
  { concurrency, priorities, tenants }: Pick<WorkerSettings, "concurrency" | "priorities" | "tenants">,
): readonly Reservation[] {
  const reservations = checkArray("reserve", raw).map((one, index) => {
    const option = `reserve[${index}]`;
    const { priority, tenant, slots } = checkObject(option, one) as Partial<Reservation>;
    checkKeys(one as object, RESERVE_KEYS, `${option}.`);
    if (priority === undefined && tenant === undefined) throw invalid(option, "it names neither a priority nor a tenant");
    if (priority !== undefined && priorities?.includes(checkPriority(`${option}.priority`, priority)) === false)
      throw invalid(option, `priority ${priority} is not served here`);
    if (tenant !== undefined && tenants?.includes(checkName("tenant", tenant)) === false)
      throw invalid(option, `tenant ${tenant} is not served here`);
    return { ...(priority === undefined ? {} : { priority }), ...(tenant === undefined ? {} : { tenant }), slots: count(`${option}.slots`, slots) };
  });
  const total = reservations.reduce((sum, { slots }) => sum + slots, 0);
  if (total > concurrency) throw invalid("reserve", `${total} slots are more than the concurrency of ${concurrency}`);
  return reservations;
}

function checkPriority(option: string, value: unknown): Priority {
  return checkWhole(option, value, 0, 9) as Priority;
}

/** None at all would be a worker that does nothing, and says nothing. */
function checkNotEmpty(option: string, value: unknown): readonly unknown[] {
  const raw = checkArray(option, value);
  if (raw.length === 0) throw invalid(option, "it is empty; leave it out to serve all");
  return raw;
}

function checkMiddleware(raw: WorkerOptions["middleware"] = []): readonly Middleware[] {
  checkArray("middleware", raw).forEach((layer, index) => {
    checkFunction(`middleware[${index}]`, layer);
  });
  return raw;
}

function checkRegistered(task: unknown, registered: ReadonlyMap<string, AnyTask>): string {
  if (typeof task === "string" && registered.has(task)) return task;
  throw pawlError("task_unknown", { task: shortened(task) });
}

function count(option: string, value: unknown): number {
  return checkWhole(option, value, 1, 100_000);
}

import { checkAmounts, checkTags } from "../core/capacity-check.js";
import { DEFAULTS } from "../core/defaults.js";
import type { Duration } from "../core/duration.js";
import { pawlError } from "../core/error.js";
import type { Priority } from "../core/job.js";
import { checkName } from "../core/name.js";
import { checkArray, checkDuration, checkFunction, checkKeys, checkObject, checkPeriod, checkWhole, invalid, told } from "../core/option.js";
import { defaultName } from "../runtime/identity.js";
import type { Renewer } from "../store/port-leases.js";
import type { Middleware } from "./context.js";
import type { AnyTask } from "./task.js";

export interface WorkerOptions {
  /** handlers at a time */
  readonly concurrency?: number;
  /** the queues to serve; absent: all */
  readonly queues?: readonly string[];
  /** the tasks to serve; absent: all that are registered */
  readonly tasks?: readonly string[];
  /** the bands to serve; absent: all */
  readonly bands?: readonly number[];
  /** the tenants to serve; absent: all */
  readonly tenants?: readonly string[];
  /** what it has that not every worker has: tasks may need it. See docs/capacity.md */
  readonly tags?: readonly string[];
  /** how much it has of what handlers share: cpu, memory, connections, whatever tasks ask for by name */
  readonly amounts?: Readonly<Record<string, number>>;
  /** slots kept for a band or a tenant, which others never take */
  readonly reserve?: readonly Reservation[];
  /** handlers at a time of one queue or one task, inside the total */
  readonly slots?: { readonly queues?: Readonly<Record<string, number>>; readonly tasks?: Readonly<Record<string, number>> };
  /** handlers lost, going on 30 s and more after their time, from which on it takes nothing more (default: as many as it has slots) */
  readonly mostLost?: number;
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

/** What `work` takes. */
export interface WorkOptions extends WorkerOptions {
  /**
   * on SIGINT or SIGTERM close everything gracefully, on a second one exit at once. It exits, too, where handlers go on after that (70),
   * and where they are so many that the worker is stuck (75)
   */
  readonly signals?: boolean;
}

export const WORK_KEYS: ReadonlySet<string> = new Set(
  Object.keys({
    concurrency: true,
    queues: true,
    tasks: true,
    bands: true,
    tenants: true,
    tags: true,
    amounts: true,
    reserve: true,
    slots: true,
    mostLost: true,
    name: true,
    lease: true,
    renewal: true,
    drain: true,
    claimBatch: true,
    middleware: true,
    poll: true,
    renewer: true,
    signals: true,
  } satisfies Record<keyof WorkOptions, true>),
);

/** Slots kept free for a band, a tenant, or a tenant's jobs of a band. */
export interface Reservation {
  readonly band?: number;
  readonly tenant?: string;
  readonly slots: number;
}

/** The options with every default filled in, checked. ms. */
export interface Settings {
  readonly name: string;
  readonly concurrency: number;
  readonly queues: readonly string[] | undefined;
  readonly tasks: readonly string[];
  readonly bands: readonly Priority[] | undefined;
  readonly tenants: readonly string[] | undefined;
  readonly tags: readonly string[];
  readonly amounts: Readonly<Record<string, number>>;
  readonly reserve: readonly Reservation[];
  readonly queueSlots: ReadonlyMap<string, number>;
  readonly taskSlots: ReadonlyMap<string, number>;
  readonly mostLost: number;
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
  const concurrency = count("concurrency", options.concurrency ?? DEFAULTS.worker.concurrency);
  const bands = options.bands === undefined ? undefined : some("bands", options.bands).map((band) => checkBand("bands", band));
  const tenants = options.tenants === undefined ? undefined : some("tenants", options.tenants).map((tenant) => checkName("tenant", tenant));
  return {
    name: checkName("worker name", options.name ?? defaultName()),
    concurrency,
    queues: servedQueues(options.queues),
    tasks: servedTasks(options.tasks, tasks),
    bands,
    tenants,
    tags: checkTags("tags", options.tags),
    amounts: checkAmounts("amounts", options.amounts),
    reserve: reservationsOf(options.reserve, { concurrency, bands, tenants }),
    ...slotsOf(options.slots, tasks),
    mostLost: checkWhole("mostLost", options.mostLost ?? concurrency, 1, concurrency),
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

const RESERVE_KEYS: ReadonlySet<string> = new Set(["band", "tenant", "slots"] satisfies readonly (keyof Reservation)[]);

function reservationsOf(
  given: WorkerOptions["reserve"] = [],
  { concurrency, bands, tenants }: Pick<Settings, "concurrency" | "bands" | "tenants">,
): readonly Reservation[] {
  const kept = checkArray("reserve", given).map((one, index) => {
    const option = `reserve[${index}]`;
    const { band, tenant, slots } = checkObject(option, one) as Partial<Reservation>;
    checkKeys(one as object, RESERVE_KEYS, `${option}.`);
    if (band === undefined && tenant === undefined) throw invalid(option, "it names neither a band nor a tenant");
    if (band !== undefined && bands?.includes(checkBand(`${option}.band`, band)) === false) throw invalid(option, `band ${band} is not served here`);
    if (tenant !== undefined && tenants?.includes(checkName("tenant", tenant)) === false)
      throw invalid(option, `tenant ${tenant} is not served here`);
    return { ...(band === undefined ? {} : { band }), ...(tenant === undefined ? {} : { tenant }), slots: count(`${option}.slots`, slots) };
  });
  const total = kept.reduce((sum, { slots }) => sum + slots, 0);
  if (total > concurrency) throw invalid("reserve", `${total} slots are more than the concurrency of ${concurrency}`);
  return kept;
}

function checkBand(option: string, value: unknown): Priority {
  return checkWhole(option, value, 0, 9) as Priority;
}

/** None at all would be a worker that does nothing, and says nothing. */
function some(option: string, value: unknown): readonly unknown[] {
  const given = checkArray(option, value);
  if (given.length === 0) throw invalid(option, "it is empty; leave it out to serve all");
  return given;
}

function checkMiddleware(given: WorkerOptions["middleware"] = []): readonly Middleware[] {
  checkArray("middleware", given).forEach((layer, index) => {
    checkFunction(`middleware[${index}]`, layer);
  });
  return given;
}

function known(task: unknown, registered: ReadonlyMap<string, AnyTask>): string {
  if (typeof task === "string" && registered.has(task)) return task;
  throw pawlError("task_unknown", { task: told(task) });
}

function count(option: string, value: unknown): number {
  return checkWhole(option, value, 1, 100_000);
}

import type { AnyTask } from "../core/jobs/task.js";
import { narrowerScope } from "../scheduler/access/narrower-scope.js";
import type { Targets } from "../scheduler/access/targets.js";
import { invalid, show } from "../scheduler/check.js";
import { splitCallOptions } from "../scheduler/enqueue/call-options.js";
import { checkItems, taskOrRefusal } from "../scheduler/enqueue/item-enqueuer.js";
import type { TaskRegistry } from "../scheduler/enqueue/task-registry.js";
import { enqueueAllResultOf, JobHandle } from "../scheduler/jobs/handle.js";
import { type CountsOptions, checkCountsOptions, type JobCounts } from "../scheduler/observe/counts.js";
import { type Tracing, withSpan } from "../scheduler/observe/tracing.js";
import type {
  CallOptions,
  EnqueueAllOptions,
  EnqueueItem,
  EnqueueManyOptions,
  EnqueueOptions,
  EnqueueStreamOptions,
  StreamSummary,
} from "../scheduler/options.js";
import type { Dead, EnqueueAllResult, Job, Scheduler } from "../scheduler/scheduler.js";
import type { Schedules } from "../scheduler/schedules/schedules.js";
import type { Scope } from "../store/port/index.js";
import type { RemoteEnqueuer } from "./enqueue/enqueue.js";
import type { HttpTransport } from "./transport/http-transport.js";
import { RemoteDead } from "./views/dead.js";
import { RemoteJobs } from "./views/jobs.js";
import { RemoteSchedules } from "./views/schedules.js";
import { RemoteTargets } from "./views/targets.js";

/** What the schedulers of all scopes of one service share. */
export interface RemoteDeps {
  readonly transport: HttpTransport;
  readonly registry: TaskRegistry;
  readonly enqueuer: RemoteEnqueuer;
  readonly tracing?: Tracing;
}

/** The scheduler of one scope, through the service. */
export class RemoteScheduler implements Scheduler {
  readonly jobs: RemoteJobs;
  readonly dead: Dead;
  readonly schedules: Schedules;
  readonly targets: Targets;
  readonly #deps: RemoteDeps;
  readonly #scope: Scope;

  constructor(deps: RemoteDeps, scope: Scope = "everyone") {
    const { transport, registry } = deps;
    this.#deps = deps;
    this.#scope = scope;
    this.jobs = new RemoteJobs(transport, scope);
    this.dead = new RemoteDead(transport, scope, this.jobs);
    this.schedules = new RemoteSchedules(transport, scope, registry, this.jobs);
    this.targets = new RemoteTargets(transport, scope);
  }

  async enqueue<Out>(taskOrName: AnyTask | string, input?: unknown, options?: EnqueueOptions): Promise<Job<Out>> {
    const found = this.#deps.registry.find(taskOrName);
    const task = found instanceof Promise ? await found : found;
    const { enqueuer, tracing } = this.#deps;
    const stored = await withSpan(
      tracing,
      { task: task.name, verb: "enqueue" },
      options,
      (own) => enqueuer.one(task, this.#tenant(options), input, own),
      ({ id }) => ({ jobs: 1, job: id }),
    );
    return new JobHandle<Out>(this.jobs, task.name, stored);
  }

  async call<Out>(taskOrName: AnyTask | string, input?: unknown, options?: CallOptions): Promise<Out> {
    const { job, wait } = splitCallOptions(options);
    return (await this.enqueue<Out>(taskOrName, input, job)).result(wait);
  }

  async enqueueMany<Out>(
    taskOrName: AnyTask | string,
    inputs: readonly unknown[],
    options?: EnqueueManyOptions<never>,
  ): Promise<readonly Job<Out>[]> {
    const task = await this.#deps.registry.find(taskOrName);
    const { enqueuer, tracing } = this.#deps;
    const stored = await withSpan(
      tracing,
      { task: task.name, verb: "enqueueMany" },
      options as EnqueueManyOptions<unknown> | undefined,
      (own) => enqueuer.many(task, this.#tenant(options), inputs, own),
      ({ length }) => ({ jobs: length }),
    );
    return stored.map((one) => new JobHandle<Out>(this.jobs, task.name, one));
  }

  async enqueueAll(items: readonly EnqueueItem[], options: EnqueueAllOptions = {}): Promise<EnqueueAllResult> {
    const { jobs, task } = checkItems(items, options);
    const { enqueuer, registry, tracing } = this.#deps;
    const stored = await withSpan(
      tracing,
      { task, verb: "enqueueAll" },
      options,
      async (own) => {
        const batch = await Promise.all(
          jobs.map(async (job) => ({ ...job, options: { ...traceIn(own), ...job.options }, task: await taskOrRefusal(registry, job.task) })),
        );
        return enqueuer.batch(this.#tenant(undefined), batch, options);
      },
      ({ results }) => ({ jobs: results.length }),
    );
    return enqueueAllResultOf(this.jobs, stored);
  }

  async enqueueStream(
    taskOrName: AnyTask | string,
    inputs: Iterable<unknown> | AsyncIterable<unknown>,
    options?: EnqueueStreamOptions<never>,
  ): Promise<StreamSummary> {
    const task = await this.#deps.registry.find(taskOrName);
    const { enqueuer, tracing } = this.#deps;
    return withSpan(
      tracing,
      { task: task.name, verb: "enqueueStream" },
      options as EnqueueStreamOptions<unknown> | undefined,
      (own) => enqueuer.stream(task, this.#tenant(options), inputs, own),
      ({ count }) => ({ jobs: count }),
    );
  }

  async counts(of: CountsOptions = {}): Promise<JobCounts> {
    const tenant = this.#tenant(undefined);
    return (await this.#deps.transport.get("/v1/counts", { ...checkCountsOptions(of), ...(tenant === undefined ? {} : { tenant }) })) as JobCounts;
  }

  forTenant(tenant: string): Scheduler {
    return new RemoteScheduler(this.#deps, narrowerScope(this.#scope, tenant));
  }

  #tenant(options: { readonly tenant?: string } | undefined): string | undefined {
    if (this.#scope === "everyone") return undefined;
    const { tenant } = this.#scope;
    if (options?.tenant !== undefined && options.tenant !== tenant) throw invalid("tenant", `this scheduler acts for ${show(tenant)} only`);
    return tenant;
  }
}

function traceIn(options: EnqueueAllOptions | undefined): Pick<EnqueueAllOptions, "trace"> {
  return options?.trace === undefined ? {} : { trace: options.trace };
}

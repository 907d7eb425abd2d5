import type { AnyTask } from "../core/jobs/task.js";
import type { Scope } from "../store/port/index.js";
import { narrowerScope } from "./access/narrower-scope.js";
import { ScopedTargets, type Targets } from "./access/targets.js";
import type { SchedulerDeps } from "./deps.js";
import { splitCallOptions } from "./enqueue/call-options.js";
import { Enqueuer } from "./enqueue/enqueuer.js";
import { ItemEnqueuer } from "./enqueue/item-enqueuer.js";
import { transactionOf } from "./enqueue/read-options.js";
import { ScopedDead } from "./jobs/dead.js";
import { enqueueAllResultOf, JobHandle } from "./jobs/handle.js";
import { ScopedJobs } from "./jobs/jobs.js";
import { type CountsOptions, countsOf, type JobCounts } from "./observe/counts.js";
import type {
  CallOptions,
  EnqueueAllOptions,
  EnqueueItem,
  EnqueueManyOptions,
  EnqueueOptions,
  EnqueueStreamOptions,
  StreamSummary,
} from "./options.js";
import type { Dead, EnqueueAllResult, Job, Jobs, Scheduler } from "./scheduler.js";
import { type Schedules, ScopedSchedules } from "./schedules/schedules.js";

/** The scheduler of one scope on a store in this process. */
export class LocalScheduler implements Scheduler {
  readonly jobs: Jobs;
  readonly dead: Dead;
  readonly schedules: Schedules;
  readonly targets: Targets;
  readonly #deps: SchedulerDeps;
  readonly #scope: Scope;
  readonly #enqueuer: Enqueuer;
  readonly #items: ItemEnqueuer;

  constructor(deps: SchedulerDeps, scope: Scope = "everyone") {
    this.#deps = deps;
    this.#scope = scope;
    this.#enqueuer = new Enqueuer(deps, scope);
    this.#items = new ItemEnqueuer(deps, scope);
    const { store, registry, waiters, redact, caller } = deps;
    this.jobs = new ScopedJobs({
      store,
      scope,
      registry,
      waiters,
      enqueuer: this.#enqueuer,
      ...(redact === undefined ? {} : { redact }),
      ...(caller === undefined ? {} : { caller }),
    });
    this.dead = new ScopedDead(store, scope, this.jobs, redact);
    this.schedules = new ScopedSchedules(deps, scope, this.jobs);
    this.targets = new ScopedTargets(deps.targets, scope);
  }

  async enqueue<Out>(taskOrName: AnyTask | string, input?: unknown, options?: EnqueueOptions): Promise<Job<Out>> {
    const found = this.#deps.registry.find(taskOrName, transactionOf(options));
    // No turn is lost where the task is known, so that calls of one turn share a write.
    const task = found instanceof Promise ? await found : found;
    return new JobHandle<Out>(this.jobs, task.name, await this.#enqueuer.one(task, input, options));
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
    const task = await this.#deps.registry.find(taskOrName, transactionOf(options));
    const stored = await this.#enqueuer.many(task, inputs, options as EnqueueManyOptions<unknown> | undefined);
    return stored.map((one) => new JobHandle<Out>(this.jobs, task.name, one));
  }

  async enqueueAll(items: readonly EnqueueItem[], options?: EnqueueAllOptions): Promise<EnqueueAllResult> {
    return enqueueAllResultOf(this.jobs, await this.#items.enqueue(items, options));
  }

  async enqueueStream(
    taskOrName: AnyTask | string,
    inputs: Iterable<unknown> | AsyncIterable<unknown>,
    options?: EnqueueStreamOptions<never>,
  ): Promise<StreamSummary> {
    const task = await this.#deps.registry.find(taskOrName, transactionOf(options));
    return this.#enqueuer.stream(task, inputs, options as EnqueueStreamOptions<unknown> | undefined);
  }

  counts(of?: CountsOptions): Promise<JobCounts> {
    return countsOf(this.#deps.store, this.#scope, of);
  }

  forTenant(tenant: string): Scheduler {
    return new LocalScheduler(this.#deps, narrowerScope(this.#scope, tenant));
  }
}

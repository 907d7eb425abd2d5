import { checkName } from "../core/name.js";
import { checkBatch, taskOrRefusal } from "../scheduler/batch.js";
import { checkKeys, checkObject, invalid, show } from "../scheduler/check.js";
import { type Counts, type CountsOf, checkCounts } from "../scheduler/counts.js";
import { batchOf, JobHandle } from "../scheduler/handle.js";
import type { BatchJob, BatchOptions, EnqueueOptions, ManyOptions, StreamOptions, StreamSummary } from "../scheduler/options.js";
import type { Registry } from "../scheduler/registry.js";
import type { ActingAs, Batch, Dead, Job, Scheduler } from "../scheduler/scheduler.js";
import type { Schedules } from "../scheduler/schedules.js";
import type { Targets } from "../scheduler/targets.js";
import { type Tracing, traced } from "../scheduler/tracing.js";
import type { Scope } from "../store/port.js";
import type { AnyTask } from "../worker/task.js";
import { RemoteDead } from "./dead.js";
import type { RemoteEnqueuer } from "./enqueue.js";
import { RemoteJobs } from "./jobs.js";
import { RemoteSchedules } from "./schedules.js";
import { RemoteTargets } from "./targets.js";
import type { Wire } from "./wire.js";

/** What the schedulers of all scopes of one service share. */
export interface RemoteParts {
  readonly wire: Wire;
  readonly registry: Registry;
  readonly enqueuer: RemoteEnqueuer;
  readonly tracing?: Tracing;
}

/** The scheduler of one scope, through the service. */
export class RemoteScheduler implements Scheduler {
  readonly jobs: RemoteJobs;
  readonly dead: Dead;
  readonly schedules: Schedules;
  readonly targets: Targets;
  readonly #parts: RemoteParts;
  readonly #scope: Scope;

  constructor(parts: RemoteParts, scope: Scope = "everyone") {
    const { wire, registry } = parts;
    this.#parts = parts;
    this.#scope = scope;
    this.jobs = new RemoteJobs(wire, scope);
    this.dead = new RemoteDead(wire, scope, this.jobs);
    this.schedules = new RemoteSchedules(wire, scope, registry, this.jobs);
    this.targets = new RemoteTargets(wire, scope);
  }

  async enqueue<Out>(given: AnyTask | string, input?: unknown, options?: EnqueueOptions): Promise<Job<Out>> {
    const found = this.#parts.registry.find(given);
    const task = found instanceof Promise ? await found : found;
    const { enqueuer, tracing } = this.#parts;
    const stored = await traced(
      tracing,
      { task: task.name, verb: "enqueue" },
      options,
      (own) => enqueuer.one(task, this.#tenant(options), input, own),
      ({ id }) => ({ jobs: 1, job: id }),
    );
    return new JobHandle<Out>(this.jobs, task.name, stored);
  }

  async enqueueMany<Out>(given: AnyTask | string, inputs: readonly unknown[], options?: ManyOptions<never>): Promise<readonly Job<Out>[]> {
    const task = await this.#parts.registry.find(given);
    const { enqueuer, tracing } = this.#parts;
    const stored = await traced(
      tracing,
      { task: task.name, verb: "enqueueMany" },
      options as ManyOptions<unknown> | undefined,
      (own) => enqueuer.many(task, this.#tenant(options), inputs, own),
      ({ length }) => ({ jobs: length }),
    );
    return stored.map((one) => new JobHandle<Out>(this.jobs, task.name, one));
  }

  async enqueueBatch(jobs: readonly BatchJob[], options: BatchOptions = {}): Promise<Batch> {
    const { all, task } = checkBatch(jobs, options);
    const { enqueuer, registry, tracing } = this.#parts;
    const stored = await traced(
      tracing,
      { task, verb: "enqueueBatch" },
      options,
      async (own) => {
        const items = await Promise.all(
          all.map(async (job) => ({ ...job, options: { ...traceIn(own), ...job.options }, task: await taskOrRefusal(registry, job.task) })),
        );
        return enqueuer.batch(this.#tenant(undefined), items, options);
      },
      ({ answers }) => ({ jobs: answers.length }),
    );
    return batchOf(this.jobs, stored);
  }

  async enqueueStream(
    given: AnyTask | string,
    inputs: Iterable<unknown> | AsyncIterable<unknown>,
    options?: StreamOptions<never>,
  ): Promise<StreamSummary> {
    const task = await this.#parts.registry.find(given);
    const { enqueuer, tracing } = this.#parts;
    return traced(
      tracing,
      { task: task.name, verb: "enqueueStream" },
      options as StreamOptions<unknown> | undefined,
      (own) => enqueuer.stream(task, this.#tenant(options), inputs, own),
      ({ count }) => ({ jobs: count }),
    );
  }

  async counts(of: CountsOf = {}): Promise<Counts> {
    const tenant = this.#tenant(undefined);
    return (await this.#parts.wire.get("/v1/counts", { ...checkCounts(of), ...(tenant === undefined ? {} : { tenant }) })) as Counts;
  }

  as(scope: ActingAs): Scheduler {
    checkKeys(checkObject("scope", scope), SCOPE_KEYS);
    const tenant = checkName("tenant", scope.tenant);
    if (this.#scope !== "everyone" && this.#scope.tenant !== tenant)
      throw invalid("tenant", `this scheduler acts for ${show(this.#scope.tenant)} only`);
    return new RemoteScheduler(this.#parts, { tenant });
  }

  #tenant(options: { readonly tenant?: string } | undefined): string | undefined {
    if (this.#scope === "everyone") return undefined;
    const { tenant } = this.#scope;
    if (options?.tenant !== undefined && options.tenant !== tenant) throw invalid("tenant", `this scheduler acts for ${show(tenant)} only`);
    return tenant;
  }
}

const SCOPE_KEYS = new Set(["tenant"]);

function traceIn(options: BatchOptions | undefined): Pick<BatchOptions, "trace"> {
  return options?.trace === undefined ? {} : { trace: options.trace };
}

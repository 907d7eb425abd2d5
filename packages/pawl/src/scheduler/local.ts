import { checkName } from "../core/name.js";
import type { Scope } from "../store/port.js";
import type { AnyTask } from "../worker/task.js";
import { BatchEnqueuer } from "./batch.js";
import { checkKeys, checkObject, checkText, invalid, show } from "./check.js";
import { type Counts, type CountsOf, countsOf } from "./counts.js";
import { ScopedDead } from "./dead.js";
import { Enqueuer } from "./enqueuer.js";
import { transactionOf } from "./given.js";
import { batchOf, JobHandle } from "./handle.js";
import { ScopedJobs } from "./jobs.js";
import type { BatchJob, BatchOptions, EnqueueOptions, ManyOptions, StreamOptions, StreamSummary } from "./options.js";
import type { SchedulerParts } from "./parts.js";
import type { ActingAs, Batch, Dead, Job, Jobs, Scheduler } from "./scheduler.js";
import { type Schedules, ScopedSchedules } from "./schedules.js";
import { ScopedTargets, type Targets } from "./targets.js";

/** The scheduler of one scope on a store in this process. */
export class LocalScheduler implements Scheduler {
  readonly jobs: Jobs;
  readonly dead: Dead;
  readonly schedules: Schedules;
  readonly targets: Targets;
  readonly #parts: SchedulerParts;
  readonly #scope: Scope;
  readonly #enqueuer: Enqueuer;
  readonly #batches: BatchEnqueuer;

  constructor(parts: SchedulerParts, scope: Scope = "everyone") {
    this.#parts = parts;
    this.#scope = scope;
    this.#enqueuer = new Enqueuer(parts, scope);
    this.#batches = new BatchEnqueuer(parts, scope);
    const { store, registry, waiters, redact, caller } = parts;
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
    this.schedules = new ScopedSchedules(parts, scope, this.jobs);
    this.targets = new ScopedTargets(parts.targets, scope);
  }

  async enqueue<Out>(given: AnyTask | string, input?: unknown, options?: EnqueueOptions): Promise<Job<Out>> {
    const found = this.#parts.registry.find(given, transactionOf(options));
    // No turn is lost where the task is known, so that calls of one turn share a write.
    const task = found instanceof Promise ? await found : found;
    return new JobHandle<Out>(this.jobs, task.name, await this.#enqueuer.one(task, input, options));
  }

  async enqueueMany<Out>(given: AnyTask | string, inputs: readonly unknown[], options?: ManyOptions<never>): Promise<readonly Job<Out>[]> {
    const task = await this.#parts.registry.find(given, transactionOf(options));
    const stored = await this.#enqueuer.many(task, inputs, options as ManyOptions<unknown> | undefined);
    return stored.map((one) => new JobHandle<Out>(this.jobs, task.name, one));
  }

  async enqueueBatch(jobs: readonly BatchJob[], options?: BatchOptions): Promise<Batch> {
    return batchOf(this.jobs, await this.#batches.enqueue(jobs, options));
  }

  async enqueueStream(
    given: AnyTask | string,
    inputs: Iterable<unknown> | AsyncIterable<unknown>,
    options?: StreamOptions<never>,
  ): Promise<StreamSummary> {
    const task = await this.#parts.registry.find(given, transactionOf(options));
    return this.#enqueuer.stream(task, inputs, options as StreamOptions<unknown> | undefined);
  }

  counts(of?: CountsOf): Promise<Counts> {
    return countsOf(this.#parts.store, this.#scope, of);
  }

  as(scope: ActingAs): Scheduler {
    checkKeys(checkObject("scope", scope), SCOPE_KEYS);
    const { caller } = scope;
    const parts = caller === undefined ? this.#parts : { ...this.#parts, caller: checkText("caller", caller) };
    if (caller !== undefined && scope.tenant === undefined) return new LocalScheduler(parts, this.#scope);
    const tenant = checkName("tenant", scope.tenant);
    if (this.#scope !== "everyone" && this.#scope.tenant !== tenant)
      throw invalid("tenant", `this scheduler acts for ${show(this.#scope.tenant)} only`);
    return new LocalScheduler(parts, { tenant });
  }
}

const SCOPE_KEYS = new Set(["tenant", "caller"]);

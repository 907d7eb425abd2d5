import { checkName } from "../core/name.js";
import { checkKeys, checkObject, invalid, show } from "../scheduler/check.js";
import { JobHandle } from "../scheduler/handle.js";
import type { EnqueueOptions, ManyOptions, StreamOptions, StreamSummary } from "../scheduler/options.js";
import type { Registry } from "../scheduler/registry.js";
import type { Dead, Job, Scheduler } from "../scheduler/scheduler.js";
import type { Schedules } from "../scheduler/schedules.js";
import type { Scope } from "../store/port.js";
import type { AnyTask } from "../worker/task.js";
import { RemoteDead } from "./dead.js";
import type { RemoteEnqueuer } from "./enqueue.js";
import { RemoteJobs } from "./jobs.js";
import { RemoteSchedules } from "./schedules.js";
import type { Wire } from "./wire.js";

/** What the schedulers of all scopes of one service share. */
export interface RemoteParts {
  readonly wire: Wire;
  readonly registry: Registry;
  readonly enqueuer: RemoteEnqueuer;
}

/** The scheduler of one scope, through the service. */
export class RemoteScheduler implements Scheduler {
  readonly jobs: RemoteJobs;
  readonly dead: Dead;
  readonly schedules: Schedules;
  readonly #parts: RemoteParts;
  readonly #scope: Scope;

  constructor(parts: RemoteParts, scope: Scope = "everyone") {
    const { wire, registry } = parts;
    this.#parts = parts;
    this.#scope = scope;
    this.jobs = new RemoteJobs(wire, scope);
    this.dead = new RemoteDead(wire, scope, this.jobs);
    this.schedules = new RemoteSchedules(wire, scope, registry, this.jobs);
  }

  async enqueue<Out>(given: AnyTask | string, input?: unknown, options?: EnqueueOptions): Promise<Job<Out>> {
    const found = this.#parts.registry.find(given);
    const task = found instanceof Promise ? await found : found;
    return new JobHandle<Out>(this.jobs, task.name, await this.#parts.enqueuer.one(task, this.#tenant(options), input, options));
  }

  async enqueueMany<Out>(given: AnyTask | string, inputs: readonly unknown[], options?: ManyOptions<never>): Promise<readonly Job<Out>[]> {
    const task = await this.#parts.registry.find(given);
    const stored = await this.#parts.enqueuer.many(task, this.#tenant(options), inputs, options as ManyOptions<unknown> | undefined);
    return stored.map((one) => new JobHandle<Out>(this.jobs, task.name, one));
  }

  async enqueueStream(
    given: AnyTask | string,
    inputs: Iterable<unknown> | AsyncIterable<unknown>,
    options?: StreamOptions<never>,
  ): Promise<StreamSummary> {
    const task = await this.#parts.registry.find(given);
    return this.#parts.enqueuer.stream(task, this.#tenant(options), inputs, options as StreamOptions<unknown> | undefined);
  }

  as(scope: { readonly tenant: string }): Scheduler {
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

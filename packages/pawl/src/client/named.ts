import { checkName, type NameKind } from "../core/name.js";
import type { Policies, PolicyChanges, PolicyKind } from "../core/policy.js";
import type { BreakerListing, BreakersOperator, BreakerView } from "../scheduler/breakers.js";
import { storedDefaults } from "../scheduler/check.js";
import type { Named, TaskView } from "../scheduler/scheduler.js";
import type { TaskDefinition, Tasks } from "../scheduler/tasks.js";
import type { BreakerFilter, BreakerRef } from "../store/port-breakers.js";
import { breakerView } from "./views.js";
import type { Wire } from "./wire.js";

/** Queues, tasks or tenants, through the service. */
export class RemoteNamed<Kind extends PolicyKind & NameKind, View> implements Named<Kind, View> {
  constructor(
    protected readonly wire: Wire,
    private readonly kind: Kind,
  ) {}

  async pause(name: string): Promise<void> {
    await this.wire.post(`${this.path(name)}/pause`);
  }
  async resume(name: string): Promise<void> {
    await this.wire.post(`${this.path(name)}/resume`);
  }
  async set(name: string, changes: PolicyChanges[Kind]): Promise<Policies[Kind]> {
    return (await this.wire.json({ method: "PATCH", path: this.path(name), body: JSON.stringify(changes) })) as Policies[Kind];
  }
  async get(name: string): Promise<View> {
    return (await this.wire.get(this.path(name))) as View;
  }
  async list(): Promise<readonly View[]> {
    return ((await this.wire.get(`/v1/${this.kind}s`)) as Record<string, readonly View[]>)[`${this.kind}s`] ?? [];
  }

  protected path(name: string): string {
    return `/v1/${this.kind}s/${encodeURIComponent(checkName(this.kind, name))}`;
  }
}

export class RemoteTasks extends RemoteNamed<"task", TaskView> implements Tasks {
  constructor(wire: Wire) {
    super(wire, "task");
  }

  async define(name: string, { inputSchema, ...options }: TaskDefinition): Promise<void> {
    const body = { ...storedDefaults(options, name), ...(inputSchema === undefined ? {} : { inputSchema }) };
    await this.wire.json({ method: "PUT", path: this.path(name), body: JSON.stringify(body), repeatable: true });
  }
}

/** Breakers of tenants and tasks, through the service. */
export class RemoteBreakers implements BreakersOperator {
  constructor(private readonly wire: Wire) {}

  async list(filter: BreakerFilter = {}, page: { readonly limit?: number; readonly after?: BreakerRef } = {}): Promise<BreakerListing> {
    const { limit, after } = page;
    const query = { ...filter, limit, after: after?.task, afterTenant: after?.tenant };
    const { breakers, next } = (await this.wire.get("/v1/breakers", query)) as BreakerListing;
    return { breakers: breakers.map(breakerView), ...(next === undefined ? {} : { next }) };
  }
  async get({ tenant, task }: BreakerRef): Promise<BreakerView | undefined> {
    return (await this.list({ tenant: checkName("tenant", tenant), task: checkName("task", task) })).breakers[0];
  }
  open(of: BreakerRef): Promise<BreakerView> {
    return this.#act("open", of);
  }
  close(of: BreakerRef): Promise<BreakerView> {
    return this.#act("close", of);
  }
  reset(of: BreakerRef): Promise<BreakerView> {
    return this.#act("reset", of);
  }

  async #act(verb: string, { tenant, task }: BreakerRef): Promise<BreakerView> {
    return breakerView(await this.wire.post(`/v1/breakers/${encodeURIComponent(checkName("task", task))}/${verb}`, {}, { tenant }));
  }
}

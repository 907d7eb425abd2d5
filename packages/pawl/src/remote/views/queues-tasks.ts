import type { Policies, PolicyChanges, PolicyKind } from "../../core/sharing/policy.js";
import { checkName, type NameKind } from "../../core/values/name.js";
import { storedDefaults } from "../../scheduler/check.js";
import { checkOptionalReason } from "../../scheduler/jobs/check-reason.js";
import type { TaskDefinition, Tasks } from "../../scheduler/jobs/tasks.js";
import type { BreakersOperator, BreakerView } from "../../scheduler/limits/breakers.js";
import { checkPageOptions, type Page, type PagedList, type PageOptions, pagedList, revivedPage } from "../../scheduler/page.js";
import type { PolicyOperator, TaskView } from "../../scheduler/scheduler.js";
import type { BreakerFilter, BreakerRef } from "../../store/port/limits/breakers.js";
import type { HttpTransport } from "../transport/http-transport.js";
import { breakerView } from "./parse-views.js";

/** Queues, tasks or tenants, through the service. */
export class RemoteNamed<Kind extends PolicyKind & NameKind, View> implements PolicyOperator<Kind, View> {
  constructor(
    protected readonly transport: HttpTransport,
    private readonly kind: Kind,
  ) {}

  async pause(name: string, reason?: string): Promise<void> {
    await this.transport.post(`${this.path(name)}/pause`, { reason: checkOptionalReason(reason) });
  }
  async resume(name: string, reason?: string): Promise<void> {
    await this.transport.post(`${this.path(name)}/resume`, { reason: checkOptionalReason(reason) });
  }
  async update(name: string, changes: PolicyChanges[Kind]): Promise<Policies[Kind]> {
    return (await this.transport.json({ method: "PATCH", path: this.path(name), body: JSON.stringify(changes) })) as Policies[Kind];
  }
  async get(name: string): Promise<View> {
    return (await this.transport.get(this.path(name))) as View;
  }
  list(): PagedList<View> {
    return pagedList(undefined, async () => (await this.transport.get(`/v1/${this.kind}s`)) as Page<View>);
  }

  protected path(name: string): string {
    return `/v1/${this.kind}s/${encodeURIComponent(checkName(this.kind, name))}`;
  }
}

export class RemoteTasks extends RemoteNamed<"task", TaskView> implements Tasks {
  constructor(transport: HttpTransport) {
    super(transport, "task");
  }

  async put(name: string, { inputSchema, ...options }: TaskDefinition): Promise<void> {
    const body = { ...storedDefaults(options, name), ...(inputSchema === undefined ? {} : { inputSchema }) };
    await this.transport.json({ method: "PUT", path: this.path(name), body: JSON.stringify(body), repeatable: true });
  }
}

/** Breakers of tenants and tasks, through the service. */
export class RemoteBreakers implements BreakersOperator {
  constructor(private readonly transport: HttpTransport) {}

  list(filter: BreakerFilter = {}, page?: PageOptions): PagedList<BreakerView> {
    return pagedList(page, async (one) =>
      revivedPage(await this.transport.get("/v1/breakers", { ...filter, ...checkPageOptions(one) }), breakerView),
    );
  }
  async get({ tenant, task }: BreakerRef): Promise<BreakerView> {
    const path = `/v1/breakers/${encodeURIComponent(checkName("task", task))}`;
    return breakerView(await this.transport.get(path, { tenant: checkName("tenant", tenant) }));
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
    return breakerView(await this.transport.post(`/v1/breakers/${encodeURIComponent(checkName("task", task))}/${verb}`, {}, { tenant }));
  }
}

import type { TargetRef } from "../core/target.js";
import { checkKeys, checkObject, checkPageKeys, invalid, show } from "../scheduler/check.js";
import {
  checkReference,
  checkTargetOptions,
  type ShownTarget,
  type TargetListing,
  type TargetOptions,
  type TargetReference,
  type Targets,
  type TargetView,
} from "../scheduler/targets.js";
import type { Scope } from "../store/port.js";
import { targetView } from "./views.js";
import type { Wire } from "./wire.js";

/** Targets through the service, which says where jobs may be pushed to. */
export class RemoteTargets implements Targets {
  constructor(
    private readonly wire: Wire,
    private readonly scope: Scope,
  ) {}

  async put(task: string, given: TargetOptions): Promise<ShownTarget> {
    const { tenant, ...options } = checkTargetOptions(given);
    const body = { ...options, ...this.#tenant(tenant) };
    return shown(await this.wire.json({ method: "PUT", path: this.#one(task).path, body: JSON.stringify(body) }));
  }

  async get(given: TargetReference): Promise<TargetView> {
    const { path, query } = this.#one(given);
    return targetView(await this.wire.get(path, query));
  }

  async list(filter: { readonly tenant?: string } = {}, page: { readonly limit?: number; readonly after?: TargetRef } = {}): Promise<TargetListing> {
    checkKeys(checkObject("filter", filter), FILTER_KEYS, "filter.");
    checkPageKeys(page);
    const { limit, after } = page;
    const query = { ...this.#tenant(filter.tenant), limit, after: after?.task, afterTenant: after?.tenant };
    const { targets, next } = (await this.wire.get("/v1/targets", query)) as TargetListing;
    return { targets: targets.map(targetView), ...(next === undefined ? {} : { next }) };
  }

  async rotate(given: TargetReference, how: Parameters<Targets["rotate"]>[1] = {}): Promise<ShownTarget> {
    const { path, query } = this.#one(given);
    return shown(await this.wire.post(`${path}/rotate`, how, query));
  }

  async remove(given: TargetReference): Promise<void> {
    await this.wire.json({ method: "DELETE", ...this.#one(given) });
  }

  #one(given: TargetReference) {
    const { task, tenant } = checkReference(given);
    return { path: `/v1/targets/${encodeURIComponent(task)}`, query: this.#tenant(tenant) };
  }

  #tenant(asked: string | undefined): { readonly tenant?: string } {
    if (this.scope === "everyone") return asked === undefined ? {} : { tenant: asked };
    if (asked !== undefined && asked !== this.scope.tenant) throw invalid("tenant", `this scheduler acts for ${show(this.scope.tenant)} only`);
    return { tenant: this.scope.tenant };
  }
}

const FILTER_KEYS: ReadonlySet<string> = new Set(["tenant"]);

function shown(told: unknown): ShownTarget {
  const { target, ...rest } = told as ShownTarget;
  return { target: targetView(target), ...rest };
}

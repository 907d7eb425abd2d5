import {
  checkReference,
  checkTargetOptions,
  type TargetOptions,
  type TargetReference,
  type Targets,
  type TargetView,
  type TargetWithSecret,
} from "../../scheduler/access/targets.js";
import { checkKeys, checkObject, invalid, show } from "../../scheduler/check.js";
import { checkPageOptions, type PagedList, type PageOptions, pagedList, revivedPage } from "../../scheduler/page.js";
import type { Scope } from "../../store/port/index.js";
import type { HttpTransport } from "../transport/http-transport.js";
import { targetView } from "./parse-views.js";

/** Targets through the service, which says where jobs may be pushed to. */
export class RemoteTargets implements Targets {
  constructor(
    private readonly transport: HttpTransport,
    private readonly scope: Scope,
  ) {}

  async put(task: string, targetOptions: TargetOptions): Promise<TargetWithSecret> {
    const { tenant, ...options } = checkTargetOptions(targetOptions);
    const body = { ...options, ...this.#tenant(tenant) };
    return shown(await this.transport.json({ method: "PUT", path: this.#targetPath(task).path, body: JSON.stringify(body) }));
  }

  async get(reference: TargetReference): Promise<TargetView> {
    const { path, query } = this.#targetPath(reference);
    return targetView(await this.transport.get(path, query));
  }

  list(filter: { readonly tenant?: string } = {}, page?: PageOptions): PagedList<TargetView> {
    return pagedList(page, async (one) => {
      checkKeys(checkObject("filter", filter), FILTER_KEYS, "filter.");
      const query = { ...this.#tenant(filter.tenant), ...checkPageOptions(one) };
      return revivedPage(await this.transport.get("/v1/targets", query), targetView);
    });
  }

  async rotate(reference: TargetReference, how: Parameters<Targets["rotate"]>[1] = {}): Promise<TargetWithSecret> {
    const { path, query } = this.#targetPath(reference);
    return shown(await this.transport.post(`${path}/rotate`, how, query));
  }

  async delete(reference: TargetReference): Promise<void> {
    await this.transport.json({ method: "DELETE", ...this.#targetPath(reference) });
  }

  #targetPath(reference: TargetReference) {
    const { task, tenant } = checkReference(reference);
    return { path: `/v1/targets/${encodeURIComponent(task)}`, query: this.#tenant(tenant) };
  }

  #tenant(tenant: string | undefined): { readonly tenant?: string } {
    if (this.scope === "everyone") return tenant === undefined ? {} : { tenant };
    if (tenant !== undefined && tenant !== this.scope.tenant) throw invalid("tenant", `this scheduler acts for ${show(this.scope.tenant)} only`);
    return { tenant: this.scope.tenant };
  }
}

const FILTER_KEYS: ReadonlySet<string> = new Set(["tenant"]);

function shown(answer: unknown): TargetWithSecret {
  const { target, ...rest } = answer as TargetWithSecret;
  return { target: targetView(target), ...rest };
}

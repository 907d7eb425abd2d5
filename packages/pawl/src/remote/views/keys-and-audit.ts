import { checkName } from "../../core/values/name.js";
import type { ApiKeyOptions, ApiKeys, ApiKeysFilter, ApiKeyView, ApiKeyWithSecret } from "../../scheduler/access/api-keys.js";
import type { AnchoredHead, Audit, AuditQuery, AuditReport, AuditView } from "../../scheduler/access/audit.js";
import { checkPageOptions, type PagedList, type PageOptions, pagedList, revivedPage } from "../../scheduler/page.js";
import type { HttpTransport } from "../transport/http-transport.js";
import { auditView, keyView } from "./parse-views.js";

/** API keys, through the service, which shows and makes those that the caller's own key may. */
export class RemoteKeys implements ApiKeys {
  constructor(
    private readonly transport: HttpTransport,
    private readonly tenant?: string,
  ) {}

  async create({ tenant = this.tenant, ...key }: ApiKeyOptions): Promise<ApiKeyWithSecret> {
    return shown(await this.transport.post("/v1/api-keys", { ...key, ...(tenant === undefined ? {} : { tenant }) }));
  }
  async get(id: string): Promise<ApiKeyView> {
    return keyView(await this.transport.get(path(id)));
  }
  list(filter: ApiKeysFilter = {}, page?: PageOptions): PagedList<ApiKeyView> {
    return pagedList(page, async (one) => {
      const query = { tenant: this.tenant, ...filter, ...checkPageOptions(one) };
      return revivedPage(await this.transport.get("/v1/api-keys", query), keyView);
    });
  }
  async rotate(id: string, how: Parameters<ApiKeys["rotate"]>[1] = {}): Promise<ApiKeyWithSecret> {
    return shown(await this.transport.post(`${path(id)}/rotate`, how));
  }
  async revoke(id: string): Promise<ApiKeyView> {
    return keyView(await this.transport.post(`${path(id)}/revoke`));
  }
  forTenant(tenant: string): ApiKeys {
    return new RemoteKeys(this.transport, checkName("tenant", tenant));
  }
}

/** The audit log, through the service, which writes it itself. */
export class RemoteAudit implements Pick<Audit, "list" | "verify"> {
  constructor(private readonly transport: HttpTransport) {}

  list({ since, until, ...query }: AuditQuery = {}, page?: PageOptions): PagedList<AuditView> {
    return pagedList(page, async (one) => {
      const times = { since: timeOf(since), until: timeOf(until) };
      return revivedPage(await this.transport.get("/v1/audit", { ...query, ...times, ...checkPageOptions(one) }), auditView);
    });
  }
  async verify({ anchors = [] }: { readonly anchors?: readonly AnchoredHead[] } = {}): Promise<AuditReport> {
    const anchoredHeads = anchors.map(({ tenant, seq, hash }) => ({ ...(tenant === undefined ? {} : { tenant }), seq, hash }));
    return (await this.transport.post("/v1/audit/verify", { anchors: anchoredHeads })) as AuditReport;
  }
}

function path(id: string): string {
  return `/v1/api-keys/${encodeURIComponent(id)}`;
}

function shown(value: unknown): ApiKeyWithSecret {
  const { key, secret } = value as ApiKeyWithSecret;
  return { key: keyView(key), secret };
}

function timeOf(instant: AuditQuery["since"]): string | undefined {
  return instant === undefined ? undefined : instant instanceof Date ? instant.toISOString() : String(instant);
}

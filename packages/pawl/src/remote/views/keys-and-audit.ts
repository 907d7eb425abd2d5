import { checkName } from "../../core/values/name.js";
import type { ApiKeyListing, ApiKeyOptions, ApiKeys, ApiKeyView, ApiKeyWithSecret } from "../../scheduler/access/api-keys.js";
import type { AnchoredHead, Audit, AuditListing, AuditQuery, AuditReport } from "../../scheduler/access/audit.js";
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
  async list({ limit, after }: { readonly limit?: number; readonly after?: string } = {}): Promise<ApiKeyListing> {
    const { keys, ...rest } = (await this.transport.get("/v1/api-keys", { tenant: this.tenant, limit, after })) as ApiKeyListing;
    return { ...rest, keys: keys.map(keyView) };
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

  async list({ since, until, ...query }: AuditQuery = {}, page: { readonly limit?: number; readonly before?: number } = {}): Promise<AuditListing> {
    const times = { since: timeOf(since), until: timeOf(until) };
    const { entries, ...rest } = (await this.transport.get("/v1/audit", { ...query, ...times, ...page })) as AuditListing;
    return { ...rest, entries: entries.map(auditView) };
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

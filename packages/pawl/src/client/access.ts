import { checkName } from "../core/name.js";
import type { Audit, AuditListing, AuditMark, AuditQuery, AuditReport } from "../scheduler/audit.js";
import type { KeyListing, Keys, KeyView, NewKey, ShownKey } from "../scheduler/keys.js";
import { auditView, keyView } from "./views.js";
import type { Wire } from "./wire.js";

/** API keys, through the service, which shows and makes those that the caller's own key may. */
export class RemoteKeys implements Keys {
  constructor(
    private readonly wire: Wire,
    private readonly tenant?: string,
  ) {}

  async create({ tenant = this.tenant, ...key }: NewKey): Promise<ShownKey> {
    return shown(await this.wire.post("/v1/keys", { ...key, ...(tenant === undefined ? {} : { tenant }) }));
  }
  async get(id: string): Promise<KeyView> {
    return keyView(await this.wire.get(path(id)));
  }
  async list({ limit, after }: { readonly limit?: number; readonly after?: string } = {}): Promise<KeyListing> {
    const { keys, ...rest } = (await this.wire.get("/v1/keys", { tenant: this.tenant, limit, after })) as KeyListing;
    return { ...rest, keys: keys.map(keyView) };
  }
  async rotate(id: string, how: Parameters<Keys["rotate"]>[1] = {}): Promise<ShownKey> {
    return shown(await this.wire.post(`${path(id)}/rotate`, how));
  }
  async revoke(id: string): Promise<KeyView> {
    return keyView(await this.wire.post(`${path(id)}/revoke`));
  }
  as({ tenant }: { readonly tenant: string }): Keys {
    return new RemoteKeys(this.wire, checkName("tenant", tenant));
  }
}

/** The audit log, through the service, which writes it itself. */
export class RemoteAudit implements Pick<Audit, "list" | "verify"> {
  constructor(private readonly wire: Wire) {}

  async list({ since, until, ...query }: AuditQuery = {}, page: { readonly limit?: number; readonly before?: number } = {}): Promise<AuditListing> {
    const times = { since: timeOf(since), until: timeOf(until) };
    const { entries, ...rest } = (await this.wire.get("/v1/audit", { ...query, ...times, ...page })) as AuditListing;
    return { ...rest, entries: entries.map(auditView) };
  }
  async verify({ anchors = [] }: { readonly anchors?: readonly AuditMark[] } = {}): Promise<AuditReport> {
    const marks = anchors.map(({ tenant, seq, hash }) => ({ ...(tenant === undefined ? {} : { tenant }), seq, hash }));
    return (await this.wire.post("/v1/audit/verify", { anchors: marks })) as AuditReport;
  }
}

function path(id: string): string {
  return `/v1/keys/${encodeURIComponent(id)}`;
}

function shown(told: unknown): ShownKey {
  const { key, text } = told as ShownKey;
  return { key: keyView(key), text };
}

function timeOf(instant: AuditQuery["since"]): string | undefined {
  return instant === undefined ? undefined : instant instanceof Date ? instant.toISOString() : String(instant);
}

import { OWN_TENANT } from "../../core/access/tenant.js";
import { checkName } from "../../core/values/name.js";
import { newToken } from "../../runtime/process/identity.js";
import type { Clock } from "../../runtime/time/clock.js";
import type { Store } from "../../store/port/index.js";
import { checkFunction, checkKeys, checkObject, invalid } from "../check.js";
import { StoredPolicies } from "../limits/queues-tasks-tenants.js";
import type { PolicyOperator, TenantView } from "../scheduler.js";
import { type ExportDeps, type ExportEntry, exportTenant } from "./tenant-export.js";
import { carryOutPurge, type PurgeOptions, type PurgeProgress, type PurgeView } from "./tenant-purge.js";

/** Tenants: what holds for all of one, and what becomes of all that is held of it. */
export interface Tenants extends PolicyOperator<"tenant", TenantView> {
  /** Everything that is held of the tenant, line by line. See docs/protection.md. */
  export(tenant: string): AsyncIterable<ExportEntry>;
  /** Everything of the tenant goes, but for the audit log. Ends when nothing is left; interrupted, it is asked for again. */
  purge(tenant: string, how?: PurgeOptions): Promise<PurgeProgress>;
}

/** Purges of tenants, requested by one process and carried out by another. */
export interface Purges {
  /**
   * Requests a purge and answers its id; a tenant has one at a time. `prepare` is given the id of a new purge before it is
   * noted: a caller that arranges there for it to be carried out leaves no purge that nobody sees to.
   */
  request(tenant: string, prepare?: (id: string) => Promise<unknown>): Promise<string>;
  /** Carries out a purge that was requested. */
  carryOut(id: string, how?: PurgeOptions): Promise<PurgeProgress>;
  /** Purges that were requested and are not done, oldest first. */
  list(): Promise<readonly PurgeView[]>;
}

const PURGE_KEYS: ReadonlySet<string> = new Set(["onProgress", "signal"] satisfies (keyof PurgeOptions)[]);

export class StoredTenants extends StoredPolicies<"tenant", TenantView> implements Tenants {
  constructor(
    store: Store,
    private readonly clock: Clock,
    private readonly purges: Purges,
    private readonly depsOf: (tenant: string) => Omit<ExportDeps, "tenant" | "jobs" | "clock">,
  ) {
    super(store, "tenant", [], ({ name: tenant, paused, policy }) => ({ tenant, paused, policy }));
  }

  export(tenant: string): AsyncIterable<ExportEntry> {
    checkName("tenant", tenant);
    return exportTenant(tenant, { ...this.depsOf(tenant), jobs: this.store.jobs, clock: this.clock, tenant: () => this.get(tenant) });
  }

  async purge(tenant: string, how: PurgeOptions = {}): Promise<PurgeProgress> {
    checkHow(how);
    return this.purges.carryOut(await this.purges.request(tenant), how);
  }
}

export class StoredPurges implements Purges {
  constructor(
    private readonly store: Store,
    private readonly clock: Clock,
  ) {}

  async request(tenant: string, prepare?: (id: string) => Promise<unknown>): Promise<string> {
    if (checkName("tenant", tenant) === OWN_TENANT) throw invalid("tenant", "it is Pawl's own, and purges are its jobs");
    const existing = (await this.store.purges.list()).find((purge) => purge.tenant === tenant);
    if (existing !== undefined) return existing.id;
    const id = newToken();
    await prepare?.(id);
    return this.store.purges.begin(id, tenant);
  }

  async carryOut(id: string, how: PurgeOptions = {}): Promise<PurgeProgress> {
    return carryOutPurge(this.store, this.clock, id, checkHow(how));
  }

  async list(): Promise<readonly PurgeView[]> {
    return (await this.store.purges.list()).map(({ askedAt, ...purge }) => ({ ...purge, askedAt: new Date(askedAt) }));
  }
}

function checkHow(how: PurgeOptions): PurgeOptions {
  checkKeys(checkObject("how", how), PURGE_KEYS);
  if (how.onProgress !== undefined) checkFunction("onProgress", how.onProgress);
  if (how.signal !== undefined && !(how.signal instanceof AbortSignal)) throw invalid("signal", "it is not an AbortSignal");
  return how;
}

import { checkName } from "../core/name.js";
import { OWN_TENANT } from "../core/tenant.js";
import type { Clock } from "../runtime/clock.js";
import { newToken } from "../runtime/identity.js";
import type { Store } from "../store/port.js";
import { checkFunction, checkKeys, checkObject, invalid } from "./check.js";
import { NamedLanes } from "./named.js";
import type { Named, TenantView } from "./scheduler.js";
import { type ExportEntry, type ExportParts, exported } from "./tenant-export.js";
import { carryOutPurge, type PurgeOptions, type PurgeProgress, type PurgeView } from "./tenant-purge.js";

/** Tenants: what holds for all of one, and what becomes of all that is held of it. */
export interface Tenants extends Named<"tenant", TenantView> {
  /** Everything that is held of the tenant, line by line. See docs/protection.md. */
  export(tenant: string): AsyncIterable<ExportEntry>;
  /** Everything of the tenant goes, but for the audit log. Ends when nothing is left; interrupted, it is asked for again. */
  purge(tenant: string, how?: PurgeOptions): Promise<PurgeProgress>;
}

/** Where the store is, a purge can also be asked for here and carried out elsewhere. */
export interface LocalTenants extends Tenants {
  /**
   * The id of a purge to carry out; of one tenant there is one at a time. `prepare` is given the id of a new one before it
   * is noted: who arranges there for it to be carried out leaves no purge that nobody sees to.
   */
  askPurge(tenant: string, prepare?: (id: string) => Promise<unknown>): Promise<string>;
  carryOutPurge(id: string, how?: PurgeOptions): Promise<PurgeProgress>;
  /** Those that were asked for and are not done, oldest first. */
  purges(): Promise<readonly PurgeView[]>;
}

const PURGE_KEYS: ReadonlySet<string> = new Set(["onProgress", "signal"] satisfies (keyof PurgeOptions)[]);

export class StoredTenants extends NamedLanes<"tenant", TenantView> implements LocalTenants {
  constructor(
    store: Store,
    private readonly clock: Clock,
    private readonly partsOf: (tenant: string) => Omit<ExportParts, "tenant" | "jobs" | "clock">,
  ) {
    super(store, "tenant", [], ({ name: tenant, paused, policy }) => ({ tenant, paused, policy }));
  }

  export(tenant: string): AsyncIterable<ExportEntry> {
    checkName("tenant", tenant);
    return exported(tenant, { ...this.partsOf(tenant), jobs: this.store.jobs, clock: this.clock, tenant: () => this.get(tenant) });
  }

  async purge(tenant: string, how: PurgeOptions = {}): Promise<PurgeProgress> {
    checkHow(how);
    return this.carryOutPurge(await this.askPurge(tenant), how);
  }

  async askPurge(tenant: string, prepare?: (id: string) => Promise<unknown>): Promise<string> {
    if (checkName("tenant", tenant) === OWN_TENANT) throw invalid("tenant", "it is Pawl's own, and purges are its jobs");
    const standing = (await this.store.purges.list()).find((purge) => purge.tenant === tenant);
    if (standing !== undefined) return standing.id;
    const id = newToken();
    await prepare?.(id);
    return this.store.purges.begin(id, tenant);
  }

  async carryOutPurge(id: string, how: PurgeOptions = {}): Promise<PurgeProgress> {
    return carryOutPurge(this.store, this.clock, id, checkHow(how));
  }

  async purges(): Promise<readonly PurgeView[]> {
    return (await this.store.purges.list()).map(({ askedAt, ...purge }) => ({ ...purge, askedAt: new Date(askedAt) }));
  }
}

function checkHow(how: PurgeOptions): PurgeOptions {
  checkKeys(checkObject("how", how), PURGE_KEYS);
  if (how.onProgress !== undefined) checkFunction("onProgress", how.onProgress);
  if (how.signal !== undefined && !(how.signal instanceof AbortSignal)) throw invalid("signal", "it is not an AbortSignal");
  return how;
}

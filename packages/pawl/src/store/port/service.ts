import type { ApiKeyStore } from "./access/api-keys.js";
import type { AuditStore } from "./access/audit.js";
import type { DataKeyStore } from "./access/data-keys.js";
import type { PurgeStore } from "./access/purges.js";
import type { ReplyStore } from "./access/replies.js";
import type { PeriodicDuties } from "./duties/duty-table.js";
import type { EventStore } from "./observe/events.js";

/**
 * The part of a store that a service keeps beside the jobs. No verb of it reads or changes a job, so it can be kept in another place than the engine's,
 * and an engine can do without it.
 */
export interface ServiceStore {
  readonly apiKeys: ApiKeyStore;
  readonly audit: AuditStore;
  readonly replies: ReplyStore;
  readonly dataKeys: DataKeyStore;
  readonly purges: PurgeStore;
  readonly events: EventStore;
  /** this part's own duties */
  readonly duties: PeriodicDuties;
  close(): Promise<void>;
}

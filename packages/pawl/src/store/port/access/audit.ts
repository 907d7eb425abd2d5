import type { AuditLink, AuditNote, AuditOutcome, StoredEntry } from "../../../core/access/audit-entry.js";

/** The audit log, append only: there is no verb that changes or removes an entry. */
export interface AuditStore {
  /** (nothing) → the next entry of its chain. A note with an id that the chain has answers with that entry. */
  record(note: AuditNote): Promise<AuditLink>;
  /** newest first; `before` is the number the last page ended with */
  list(tenant: string | undefined, filter: AuditFilter, page: { readonly limit: number; readonly before?: number }): Promise<readonly StoredEntry[]>;
  /** oldest first, from after that number on */
  read(tenant: string | undefined, page: { readonly limit: number; readonly after: number }): Promise<readonly StoredEntry[]>;
  /** The newest entry of every chain, as its head says; `seq` 0 where a chain has entries and no head. */
  heads(): Promise<readonly AuditHead[]>;
}

export interface AuditHead {
  readonly tenant: string | undefined;
  readonly seq: number;
  readonly at: number;
  readonly hash: string;
}

export interface AuditFilter {
  readonly actor?: string;
  readonly action?: string;
  readonly outcome?: AuditOutcome;
  readonly subject?: string;
  /** ms; from then on, and before then */
  readonly since?: number;
  readonly until?: number;
}

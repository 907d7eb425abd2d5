import {
  AUDIT_OUTCOMES,
  type AuditEntry,
  type AuditFault,
  type AuditLink,
  type AuditNote,
  ChainCheck,
  checkNote,
  entryOf,
} from "../../core/access/audit-entry.js";
import { checkName } from "../../core/values/name.js";
import { sha256 } from "../../runtime/io/digest.js";
import { newToken } from "../../runtime/process/identity.js";
import type { AuditFilter, AuditHead } from "../../store/port/access/audit.js";
import type { Store } from "../../store/port/index.js";
import { checkArray, checkInstant, checkKeys, checkObject, checkOneOf, checkText } from "../check.js";
import { numberCursor, type PagedList, type PageOptions, pagedList, pageOfRows, readPage } from "../page.js";
import type { Instant } from "../schedules/schedule.js";

/** An entry of the audit log as people see it. */
export type AuditView = Omit<AuditEntry, "at"> & { readonly at: Date };
/** What is to be recorded; of the rest the store sees to it. */
export type NewAudit = Omit<AuditNote, "id" | "tenant"> & { readonly tenant?: string | undefined };

export interface AuditQuery extends Omit<AuditFilter, "since" | "until"> {
  /** whose chain; left out: that of the store as a whole */
  readonly tenant?: string | undefined;
  readonly since?: Instant;
  readonly until?: Instant;
}

export interface AuditReport {
  readonly ok: boolean;
  readonly chains: number;
  readonly entries: number;
  /** the first of each chain that has one */
  readonly faults: readonly AuditFault[];
  /** what would not have been found, for want of anchors; absent: every chain was held against one */
  readonly caveat?: string;
}

/** Where a chain was known to be. */
export type AnchoredHead = Pick<AuditHead, "tenant" | "seq" | "hash">;

/** Who did what, and who was not let: a chain of entries per tenant, and one of the store as a whole. */
export interface Audit {
  /** Appends an entry, and answers where. What must not happen unseen is done after this, never before. */
  record(entry: NewAudit): Promise<AuditLink>;
  /** newest first */
  list(query?: AuditQuery, page?: PageOptions): PagedList<AuditView>;
  /** The newest entry of every chain. */
  heads(): Promise<readonly AuditHead[]>;
  /** Follows every chain from its first entry, and holds it against what was known of it before (`anchors`). */
  verify(against?: { readonly anchors?: readonly AnchoredHead[] }): Promise<AuditReport>;
}

const QUERY_KEYS: ReadonlySet<string> = new Set(["tenant", "actor", "action", "outcome", "subject", "since", "until"] satisfies (keyof AuditQuery)[]);
const CURSOR = numberCursor("audit");
const MAX_ENTRIES_PER_READ = 1_000;

export function createAudit(store: Store): Audit {
  return {
    record: async (entry) => store.audit.record({ ...checkNote(entry), id: newToken() }),
    list: (query = {}, page) =>
      pagedList(page, async (one) => {
        const { tenant, ...filter } = checkQuery(query);
        const read = ({ limit, after: before }: { readonly limit: number; readonly after?: number }) =>
          store.audit.list(tenant, filter, { limit, ...(before === undefined ? {} : { before }) });
        return pageOfRows(readPage(one, CURSOR), CURSOR, read, { place: ({ seq }) => seq, view: viewOf });
      }),
    heads: () => store.audit.heads(),
    async verify(against = {}) {
      checkKeys(checkObject("against", against), new Set(["anchors"]));
      return verify(store, checkArray("anchors", against.anchors ?? []) as readonly AnchoredHead[]);
    },
  };
}

/** Heads first: what is appended while we read is not missed but left for the next time. */
async function verify(store: Store, anchors: readonly AnchoredHead[]): Promise<AuditReport> {
  const heads = new Map((await store.audit.heads()).map((head) => [head.tenant, head]));
  const faults: AuditFault[] = [];
  let entries = 0;
  for (const tenant of new Set([...heads.keys(), ...anchors.map((anchor) => anchor.tenant)])) {
    const own = anchors.filter((anchor) => anchor.tenant === tenant);
    const { fault, seq } = await verifyChain(store, heads.get(tenant) ?? { tenant, seq: 0, hash: "" }, own);
    entries += seq;
    if (fault !== undefined) faults.push(fault);
  }
  return { ok: faults.length === 0, chains: heads.size, entries, faults, ...caveatOf([...heads.keys()], anchors) };
}

/** Entries name the one before them, not the one after: how far a log went only those know who wrote that down elsewhere. */
function caveatOf(chains: readonly (string | undefined)[], anchors: readonly AnchoredHead[]): Pick<AuditReport, "caveat"> {
  const anchorHashes = new Set(anchors.map(({ tenant }) => tenant));
  const without = chains.filter((tenant) => !anchorHashes.has(tenant)).length;
  if (anchorHashes.size > 0 && without === 0) return {};
  const which = anchorHashes.size === 0 ? "without anchors" : `of ${without} of ${chains.length} logs, which have no anchor`;
  return { caveat: `${which}, an end that was cut off together with its head is not found, nor that all of it was written anew` };
}

async function verifyChain(store: Store, head: AnchoredHead, anchors: readonly AnchoredHead[]): Promise<{ fault?: AuditFault; seq: number }> {
  const { tenant } = head;
  const anchorHashes = new Map(anchors.map(({ seq, hash }) => [seq, hash]));
  const chain = new ChainCheck(tenant, sha256);
  const anchorFault = (): AuditFault | undefined =>
    (anchorHashes.get(chain.seq) ?? chain.head) === chain.head ? undefined : { tenant, seq: chain.seq, why: "anchor_mismatch" };
  while (chain.seq < head.seq) {
    const page = await store.audit.read(tenant, { after: chain.seq, limit: MAX_ENTRIES_PER_READ });
    if (page.length === 0) return { seq: chain.seq, fault: { tenant, seq: chain.seq + 1, why: "head_mismatch" } };
    for (const entry of page.slice(0, head.seq - chain.seq)) {
      const fault = chain.follow(entry) ?? anchorFault();
      if (fault !== undefined) return { seq: chain.seq, fault };
    }
  }
  const farthest = Math.max(0, ...anchorHashes.keys());
  if (farthest > head.seq) return { seq: chain.seq, fault: { tenant, seq: head.seq + 1, why: "anchor_mismatch" } };
  const broken = head.seq === 0 ? (await store.audit.read(tenant, { after: 0, limit: 1 })).length > 0 : chain.head !== head.hash;
  return { seq: chain.seq, ...(broken ? { fault: { tenant, seq: head.seq, why: "head_mismatch" as const } } : {}) };
}

function checkQuery(query: AuditQuery): AuditFilter & { readonly tenant: string | undefined } {
  checkKeys(checkObject("query", query), QUERY_KEYS, "query.");
  const { tenant, outcome, since, until } = query;
  const texts = Object.fromEntries(
    (["actor", "action", "subject"] as const).flatMap((field) => {
      const value: unknown = query[field];
      return value === undefined ? [] : [[field, checkText(`query.${field}`, value)]];
    }),
  );
  return {
    tenant: tenant === undefined ? undefined : checkName("tenant", tenant),
    ...texts,
    ...(outcome === undefined ? {} : { outcome: checkOneOf("query.outcome", outcome, AUDIT_OUTCOMES) }),
    ...(since === undefined ? {} : { since: checkInstant("query.since", since) }),
    ...(until === undefined ? {} : { until: checkInstant("query.until", until) }),
  };
}

function viewOf(stored: Parameters<typeof entryOf>[0]): AuditView {
  const entry = entryOf(stored);
  return { ...entry, at: new Date(entry.at) };
}

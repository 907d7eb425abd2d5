import { type AuditNote, canonical, GENESIS, hashedText, type StoredEntry } from "../../../core/access/audit-entry.js";
import { sha256 } from "../../../runtime/io/digest.js";
import type { AuditFilter, AuditStore } from "../../port/access/audit.js";
import type { Tables } from "../state.js";

export function memoryAudit(tables: Tables): AuditStore {
  const chainOf = (tenant: string | undefined) => tables.audit.get(tenant) ?? [];
  return {
    record: (note) =>
      tables.step(() => {
        const chain = chainOf(note.tenant);
        const existing = chain.find(({ id }) => id === note.id);
        if (existing !== undefined) return linkOf(existing);
        const last = chain.at(-1);
        const link = { seq: chain.length + 1, at: Math.floor(Math.max(tables.now, last?.at ?? 0)), prev: last?.hash ?? GENESIS };
        const body = canonical(note);
        const entry: StoredEntry = { tenant: note.tenant, id: note.id, body, ...link, hash: sha256(hashedText({ ...link, body })) };
        tables.audit.set(note.tenant, [...chain, entry]);
        return linkOf(entry);
      }),
    list: (tenant, filter, { limit, before = Number.POSITIVE_INFINITY }) =>
      tables.step(() =>
        chainOf(tenant)
          .filter((entry) => entry.seq < before && fits(entry, filter))
          .reverse()
          .slice(0, limit),
      ),
    read: (tenant, { limit, after }) => tables.step(() => chainOf(tenant).slice(after, after + limit)),
    heads: () =>
      tables.step(() =>
        [...tables.audit].map(([tenant, chain]) => {
          const { seq, at, hash } = chain.at(-1) as StoredEntry;
          return { tenant, seq, at, hash };
        }),
      ),
  };
}

function linkOf({ seq, at, prev, hash }: StoredEntry) {
  return { seq, at, prev, hash };
}

function fits({ at, body }: StoredEntry, { since, until, ...texts }: AuditFilter): boolean {
  const note = JSON.parse(body) as AuditNote;
  if (at < (since ?? 0) || at >= (until ?? Number.POSITIVE_INFINITY)) return false;
  return Object.entries(texts).every(([field, wanted]) => wanted === undefined || note[field as keyof typeof texts] === wanted);
}

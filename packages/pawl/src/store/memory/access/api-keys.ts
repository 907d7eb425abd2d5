import type { ApiKeyFacts } from "../../../core/access/api-key.js";
import { compareText } from "../../../core/jobs/lane.js";
import type { ApiKeyChange, ApiKeyStore } from "../../port/access/api-keys.js";
import type { Scope } from "../../port/index.js";
import type { Tables } from "../state.js";

export interface MemoryApiKey {
  facts: ApiKeyFacts;
  /** newest first: one that is good, and one that is good until its time */
  secrets: readonly { readonly digest: string; readonly pepper?: string; readonly until?: number }[];
}

export function memoryApiKeys(tables: Tables): ApiKeyStore {
  const rows = tables.apiKeys;
  const seen = (scope: Scope, row: MemoryApiKey | undefined) =>
    row !== undefined && (scope === "everyone" || row.facts.tenant === scope.tenant) ? row : undefined;

  const change = (scope: Scope, id: string, how: (row: MemoryApiKey) => ApiKeyChange | undefined) =>
    tables.step((): ApiKeyChange => {
      const row = seen(scope, rows.get(id));
      if (row === undefined) return { kind: "unknown" };
      const refused = how(row);
      if (refused !== undefined) return refused;
      tables.apiKeyVersion += 1;
      return { kind: "changed", key: row.facts };
    });

  return {
    create: ({ id, name, tenant, grants, digest, pepper, expiresIn }) =>
      tables.step(() => {
        const existing = rows.get(id);
        if (existing !== undefined) return existing.secrets[0]?.digest === digest ? "created" : "taken";
        const expires = expiresIn === undefined ? {} : { expiresAt: tables.now + expiresIn };
        rows.set(id, { facts: { id, name, tenant, grants, createdAt: tables.now, ...expires }, secrets: [secretOf(digest, pepper)] });
        return "created";
      }),

    check: (id, digest) =>
      tables.step(() => {
        const row = rows.get(id);
        const found = row?.secrets.find((secret) => secret.digest === digest && (secret.until ?? Number.POSITIVE_INFINITY) > tables.now);
        return {
          version: String(tables.apiKeyVersion),
          now: tables.now,
          ...(row === undefined ? {} : { key: row.facts }),
          ...(found === undefined ? {} : { secret: found.until === undefined ? {} : { until: found.until } }),
        };
      }),

    version: () => tables.step(() => String(tables.apiKeyVersion)),
    get: (scope, id) => tables.step(() => seen(scope, rows.get(id))?.facts),

    list: (scope, { limit, after }) =>
      tables.step(() => {
        const sorted = [...rows.values()]
          .filter((row) => seen(scope, row))
          .map(({ facts }) => facts)
          .sort((a, b) => b.createdAt - a.createdAt || compareText(b.id, a.id));
        const start = after === undefined ? 0 : sorted.findIndex(({ id }) => id === after) + 1;
        return after !== undefined && start === 0 ? [] : sorted.slice(start, start + limit);
      }),

    rotate: (scope, id, { digest, pepper, keepOldFor }) =>
      change(scope, id, (row) => {
        if (row.facts.revokedAt !== undefined) return { kind: "revoked" };
        const [newest] = row.secrets;
        if (newest !== undefined && newest.digest !== digest) row.secrets = [secretOf(digest, pepper), { ...newest, until: tables.now + keepOldFor }];
        return undefined;
      }),

    revoke: (scope, id) =>
      change(scope, id, (row) => {
        row.facts = { ...row.facts, revokedAt: row.facts.revokedAt ?? tables.now };
        return undefined;
      }),

    peppers: () =>
      tables.step(() => {
        const counts = new Map<string, number>();
        for (const { facts, secrets } of rows.values()) {
          const pepper = secrets[0]?.pepper;
          const isGood = facts.revokedAt === undefined && (facts.expiresAt ?? Number.POSITIVE_INFINITY) > tables.now;
          if (isGood && pepper !== undefined) counts.set(pepper, (counts.get(pepper) ?? 0) + 1);
        }
        return [...counts].map(([pepper, count]) => ({ pepper, count })).sort((a, b) => compareText(a.pepper, b.pepper));
      }),

    touch: (ids) =>
      tables.step(() => {
        for (const id of ids) {
          const row = rows.get(id);
          if (row !== undefined) row.facts = { ...row.facts, lastUsedAt: tables.now };
        }
      }),
  };
}

function secretOf(digest: string, pepper: string | undefined): MemoryApiKey["secrets"][number] {
  return pepper === undefined ? { digest } : { digest, pepper };
}

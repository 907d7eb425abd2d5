import type { ApiKeyFacts } from "../../core/api-key.js";
import { compareText } from "../../core/lane.js";
import type { Scope } from "../port.js";
import type { ApiKeyChange, ApiKeyStore } from "../port-keys.js";
import type { Tables } from "./state.js";

export interface ApiKeyRow {
  facts: ApiKeyFacts;
  /** newest first: one that is good, and one that is good until its time */
  secrets: readonly { readonly digest: string; readonly until?: number }[];
}

export function memoryApiKeys(tables: Tables): ApiKeyStore {
  const rows = tables.apiKeys;
  const seen = (scope: Scope, row: ApiKeyRow | undefined) =>
    row !== undefined && (scope === "everyone" || row.facts.tenant === scope.tenant) ? row : undefined;

  const change = (scope: Scope, id: string, how: (row: ApiKeyRow) => ApiKeyChange | undefined) =>
    tables.step((): ApiKeyChange => {
      const row = seen(scope, rows.get(id));
      if (row === undefined) return { kind: "unknown" };
      const refused = how(row);
      if (refused !== undefined) return refused;
      tables.apiKeyMark += 1;
      return { kind: "changed", key: row.facts };
    });

  return {
    create: ({ id, name, tenant, grants, digest, lasts }) =>
      tables.step(() => {
        const known = rows.get(id);
        if (known !== undefined) return known.secrets[0]?.digest === digest ? "created" : "taken";
        const expires = lasts === undefined ? {} : { expiresAt: tables.now + lasts };
        rows.set(id, { facts: { id, name, tenant, grants, createdAt: tables.now, ...expires }, secrets: [{ digest }] });
        return "created";
      }),

    check: (id, digest) =>
      tables.step(() => {
        const row = rows.get(id);
        const found = row?.secrets.find((secret) => secret.digest === digest && (secret.until ?? Number.POSITIVE_INFINITY) > tables.now);
        return {
          mark: String(tables.apiKeyMark),
          now: tables.now,
          ...(row === undefined ? {} : { key: row.facts }),
          ...(found === undefined ? {} : { secret: found.until === undefined ? {} : { until: found.until } }),
        };
      }),

    mark: () => tables.step(() => String(tables.apiKeyMark)),
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

    rotate: (scope, id, { digest, overlap }) =>
      change(scope, id, (row) => {
        if (row.facts.revokedAt !== undefined) return { kind: "revoked" };
        const [newest] = row.secrets;
        if (newest !== undefined && newest.digest !== digest) row.secrets = [{ digest }, { digest: newest.digest, until: tables.now + overlap }];
        return undefined;
      }),

    revoke: (scope, id) =>
      change(scope, id, (row) => {
        row.facts = { ...row.facts, revokedAt: row.facts.revokedAt ?? tables.now };
        return undefined;
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

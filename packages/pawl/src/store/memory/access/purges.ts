import { compareText } from "../../../core/jobs/lane.js";
import type { PurgeStore } from "../../port/access/purges.js";
import type { Tables } from "../state.js";
import { takeSome } from "./take-some.js";

export function memoryPurges(tables: Tables): PurgeStore {
  return {
    begin: (id, tenant) =>
      tables.step(() => {
        const unfinished = [...tables.purges.values()].find((purge) => purge.tenant === tenant);
        if (unfinished === undefined) tables.purges.set(id, { id, tenant, askedAt: tables.now });
        return unfinished?.id ?? id;
      }),
    get: (id) => tables.step(() => tables.purges.get(id)),
    list: () => tables.step(() => [...tables.purges.values()].sort((a, b) => a.askedAt - b.askedAt || compareText(a.id, b.id))),
    rest: (tenant, limit) =>
      tables.step(() => {
        const keys = takeSome(tables.apiKeys, limit, (_, { facts }) => facts.tenant === tenant);
        tables.apiKeyVersion += keys;
        const replies = takeSome(tables.replies, limit, (key) => JSON.parse(key)[0] === tenant);
        return keys + replies + takeSome(tables.dataKeys, limit, (_, key) => key.tenant === tenant);
      }),
    end: (id) => tables.step(() => void tables.purges.delete(id)),
  };
}

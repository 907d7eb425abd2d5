import { compareText } from "../../../core/jobs/lane.js";
import type { DataKeyRecord, DataKeyStore } from "../../port/access/data-keys.js";
import type { Tables } from "../state.js";

export function memoryDataKeys(tables: Tables): DataKeyStore {
  const rows = tables.dataKeys;
  const byId = () => [...rows.values()].sort((a, b) => compareText(a.id, b.id));

  return {
    add: (key) =>
      tables.step(() => {
        const existing = byId().find(({ tenant, version }) => tenant === key.tenant && version === key.version);
        if (existing !== undefined) return existing;
        const row: DataKeyRecord = { ...key, createdAt: tables.now };
        rows.set(key.id, row);
        return row;
      }),
    newest: (tenants) =>
      tables.step(() =>
        tenants.flatMap((tenant) => {
          const own = byId().filter((row) => row.tenant === tenant);
          return own.length === 0 ? [] : [own.reduce((best, row) => (row.version > best.version ? row : best))];
        }),
      ),
    get: (ids) => tables.step(() => ids.flatMap((id) => rows.get(id) ?? [])),
    masterKeys: () =>
      tables.step(() => {
        const counts = new Map<string, number>();
        for (const { master } of rows.values()) counts.set(master, (counts.get(master) ?? 0) + 1);
        return [...counts].map(([master, count]) => ({ master, count })).sort((a, b) => compareText(a.master, b.master));
      }),
    notBy: (master, { limit, after = "" }) =>
      tables.step(() =>
        byId()
          .filter((row) => row.master !== master && row.id > after)
          .slice(0, limit),
      ),
    rewrap: (id, from, to) =>
      tables.step(() => {
        const row = rows.get(id);
        if (row === undefined || row.master !== from) return false;
        rows.set(id, { ...row, ...to });
        return true;
      }),
  };
}

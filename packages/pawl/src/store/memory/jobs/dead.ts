import type { Fingerprint } from "../../../core/jobs/fingerprint.js";
import { compareText } from "../../../core/jobs/lane.js";
import type { DeadGroup, DeadStore } from "../../port/jobs/dead.js";
import type { MemoryJob, Tables } from "../state.js";
import { lastOf } from "./history.js";
import { causeOf, matches, recordOf } from "./view.js";

export function memoryDead(tables: Tables): DeadStore {
  return {
    groups: (scope, filter, limit) =>
      tables.step(() => {
        const byCause = new Map<Fingerprint, MemoryJob[]>();
        for (const row of tables.jobs.values()) {
          if (scope !== "everyone" && row.lane.tenant !== scope.tenant) continue;
          if (!matches(row, { ...filter, state: "dead" })) continue;
          const fingerprint = causeOf(row) as Fingerprint;
          const group = byCause.get(fingerprint);
          if (group === undefined) byCause.set(fingerprint, [row]);
          else group.push(row);
        }
        const groups = [...byCause].map(([fingerprint, rows]): DeadGroup => {
          const deaths = rows.map((row) => lastOf(row)?.finishedAt ?? row.dueAt);
          const newest = rows.reduce((a, b) => (a.id > b.id ? a : b));
          return { fingerprint, count: rows.length, firstAt: Math.min(...deaths), lastAt: Math.max(...deaths), sample: recordOf(tables, newest) };
        });
        return groups.sort((a, b) => b.count - a.count || b.lastAt - a.lastAt || compareText(a.fingerprint, b.fingerprint)).slice(0, limit);
      }),
  };
}

import { isFinished } from "../../core/job.js";
import { compareText } from "../../core/lane.js";
import { type GateKey, gateParts } from "../../core/limit.js";
import type { PurgeStore } from "../port-purges.js";
import { erase } from "./endings.js";
import { cancelNow } from "./enqueue.js";
import { leave } from "./places.js";
import type { Tables } from "./state.js";

const SEPARATOR = "\u0001";

export function memoryPurges(tables: Tables): PurgeStore {
  return {
    begin: (id, tenant) =>
      tables.step(() => {
        const standing = [...tables.purges.values()].find((purge) => purge.tenant === tenant);
        if (standing === undefined) tables.purges.set(id, { id, tenant, askedAt: tables.now });
        return standing?.id ?? id;
      }),
    get: (id) => tables.step(() => tables.purges.get(id)),
    list: () => tables.step(() => [...tables.purges.values()].sort((a, b) => a.askedAt - b.askedAt || compareText(a.id, b.id))),
    jobs: (tenant, { limit, after = "" }) =>
      tables.step(() => {
        const rows = [...tables.jobs.values()]
          .filter((row) => row.lane.tenant === tenant && row.id > after)
          .sort((a, b) => compareText(a.id, b.id))
          .slice(0, limit);
        let [gone, running] = [0, 0];
        for (const row of rows) {
          if (row.place.state === "running") {
            tables.intents.set(row.id, { intent: "cancel", reason: "purged" });
            tables.hints.intent = true;
            running++;
            continue;
          }
          if (!isFinished(row.place.state)) cancelNow(tables, row, "purged");
          leave(tables, row);
          erase(tables, row);
          gone++;
        }
        const last = rows.at(-1)?.id;
        return { gone, running, ...(rows.length < limit || last === undefined ? {} : { next: last }) };
      }),
    rest: (tenant, limit) =>
      tables.step(() => {
        const mine = (key: string) => key.startsWith(`${tenant}${SEPARATOR}`);
        const sum = (...counts: readonly number[]) => counts.reduce((all, count) => all + count, 0);
        const keys = take(tables.apiKeys, limit, (_, { facts }) => facts.tenant === tenant);
        tables.apiKeyMark += keys;
        const targets = take(tables.targets, limit, (_, { facts }) => facts.tenant === tenant);
        if (targets > 0) {
          tables.policyMark += 1;
          tables.hints.lanes = true;
        }
        return sum(
          keys,
          targets,
          take(tables.requests, limit, mine),
          take(tables.batches, limit, mine),
          take(tables.keys, limit, mine),
          take(tables.breakers, limit, mine),
          take(tables.replies, limit, (key) => JSON.parse(key)[0] === tenant),
          take(tables.gates, limit, (key) => gateParts(key as GateKey).tenant === tenant),
          take(tables.knocks, limit, (key) => gateParts(key as GateKey).tenant === tenant),
          take(tables.dataKeys, limit, (_, key) => key.tenant === tenant),
        );
      }),
    end: (id) => tables.step(() => void tables.purges.delete(id)),
  };
}

function take<K extends string, V>(rows: Map<K, V>, limit: number, isMeant: (key: string, row: V) => boolean): number {
  const meant = [...rows].filter(([key, row]) => isMeant(key, row)).slice(0, limit);
  for (const [key] of meant) rows.delete(key);
  return meant.length;
}

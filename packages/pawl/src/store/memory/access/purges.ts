import { isFinished } from "../../../core/jobs/job.js";
import { compareText } from "../../../core/jobs/lane.js";
import { type LimitKeyId, limitKeyParts } from "../../../core/limits/limit-rule.js";
import type { PurgeStore } from "../../port/access/purges.js";
import { cancelNow } from "../jobs/enqueue.js";
import { erase } from "../jobs/history.js";
import { leave } from "../jobs/move.js";
import type { Tables } from "../state.js";

const SEPARATOR = "\u0001";

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
    jobs: (tenant, { limit, after = "" }) =>
      tables.step(() => {
        const rows = [...tables.jobs.values()]
          .filter((row) => row.lane.tenant === tenant && row.id > after)
          .sort((a, b) => compareText(a.id, b.id))
          .slice(0, limit);
        let [deleted, running] = [0, 0];
        for (const row of rows) {
          if (row.status.state === "running") {
            tables.intents.set(row.id, { intent: "cancel", reason: "purged" });
            tables.wakeups.intent = true;
            running++;
            continue;
          }
          if (!isFinished(row.status.state)) cancelNow(tables, row, "purged");
          leave(tables, row);
          erase(tables, row);
          deleted++;
        }
        const last = rows.at(-1)?.id;
        return { deleted, running, ...(rows.length < limit || last === undefined ? {} : { next: last }) };
      }),
    rest: (tenant, limit) =>
      tables.step(() => {
        const mine = (key: string) => key.startsWith(`${tenant}${SEPARATOR}`);
        const sum = (...counts: readonly number[]) => counts.reduce((all, count) => all + count, 0);
        const keys = take(tables.apiKeys, limit, (_, { facts }) => facts.tenant === tenant);
        tables.apiKeyVersion += keys;
        const targets = take(tables.targets, limit, (_, { facts }) => facts.tenant === tenant);
        if (targets > 0) {
          tables.policyVersion += 1;
          tables.wakeups.lanes = true;
        }
        return sum(
          keys,
          targets,
          take(tables.requests, limit, mine),
          take(tables.batches, limit, mine),
          take(tables.keys, limit, mine),
          take(tables.breakers, limit, mine),
          take(tables.replies, limit, (key) => JSON.parse(key)[0] === tenant),
          take(tables.limitKeys, limit, (key) => limitKeyParts(key as LimitKeyId).tenant === tenant),
          take(tables.limitChecks, limit, (key) => limitKeyParts(key as LimitKeyId).tenant === tenant),
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

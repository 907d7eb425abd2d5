import { isFinished } from "../../../core/jobs/job.js";
import { compareText } from "../../../core/jobs/lane.js";
import { type LimitKeyId, limitKeyParts } from "../../../core/limits/limit-rule.js";
import type { TenantStore } from "../../port/access/tenants.js";
import { cancelNow } from "../jobs/enqueue.js";
import { erase } from "../jobs/history.js";
import { leave } from "../jobs/move.js";
import type { Tables } from "../state.js";
import { takeSome } from "./take-some.js";

const SEPARATOR = "\u0001";

export function memoryTenants(tables: Tables): TenantStore {
  return {
    purgeJobs: (tenant, { limit, after = "" }) =>
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
    purgeRest: (tenant, limit) =>
      tables.step(() => {
        const mine = (key: string) => key.startsWith(`${tenant}${SEPARATOR}`);
        const targets = takeSome(tables.targets, limit, (_, { facts }) => facts.tenant === tenant);
        if (targets > 0) {
          tables.policyVersion += 1;
          tables.wakeups.lanes = true;
        }
        return [
          targets,
          takeSome(tables.requests, limit, mine),
          takeSome(tables.batches, limit, mine),
          takeSome(tables.keys, limit, mine),
          takeSome(tables.breakers, limit, mine),
          takeSome(tables.limitKeys, limit, (key) => limitKeyParts(key as LimitKeyId).tenant === tenant),
          takeSome(tables.limitChecks, limit, (key) => limitKeyParts(key as LimitKeyId).tenant === tenant),
        ].reduce((all, count) => all + count, 0);
      }),
  };
}

import { compareText } from "../../../core/jobs/lane.js";
import { policyKey } from "../../../core/sharing/policy.js";
import { isEmpty } from "../../../core/sharing/policy-check.js";
import type { PolicyStore } from "../../port/sharing/policies.js";
import type { Tables } from "../state.js";

export function memoryPolicies(tables: Tables): PolicyStore {
  return {
    put: (ref, policy, version) =>
      tables.step(() => {
        const key = policyKey(ref);
        if ((tables.policies.get(key)?.version ?? 0) !== version) return "conflict" as const;
        tables.policyVersion += 1;
        if (isEmpty(policy)) tables.policies.delete(key);
        else tables.policies.set(key, { ...ref, policy, version: tables.policyVersion });
        if (!("ingest" in policy)) tables.ingest.delete(key);
        tables.wakeups.lanes = true;
        return "stored" as const;
      }),
    get: (ref) => tables.step(() => tables.policies.get(policyKey(ref))),
    list: (kind) =>
      tables.step(() => ({
        policies: [...tables.policies.values()]
          .filter((record) => kind === undefined || record.kind === kind)
          .sort((a, b) => compareText(a.kind, b.kind) || compareText(a.name, b.name)),
        version: String(tables.policyVersion),
      })),
  };
}

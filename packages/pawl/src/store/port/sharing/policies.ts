import type { Policy, PolicyKind, PolicyRecord, PolicyRef } from "../../../core/sharing/policy.js";

/**
 * What is set for queues, tasks and tenants at run time. Workers learn of a change by `lanes.live`, which answers with
 * the `version` of all policies, and read them again when it is another one.
 */
export interface PolicyStore {
  /**
   * Stores a policy in place of the one of that version (0: of none). An empty one is taken away. From the answer on its
   * limits hold for every claim that begins. Jobs that were claimed before the first limit was set are not counted.
   */
  put(ref: PolicyRef, policy: Policy, version: number): Promise<"stored" | "conflict">;
  get(ref: PolicyRef): Promise<PolicyRecord | undefined>;
  /** all of a kind, or all, by kind and name */
  list(kind?: PolicyKind): Promise<{ readonly policies: readonly PolicyRecord[]; readonly version: string }>;
}

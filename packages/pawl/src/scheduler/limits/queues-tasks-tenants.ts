import type { Policies, PolicyChanges, PolicyKind } from "../../core/sharing/policy.js";
import { changedPolicy } from "../../core/sharing/policy-check.js";
import { pawlError } from "../../core/values/error.js";
import { checkName } from "../../core/values/name.js";
import type { Store } from "../../store/port/index.js";
import type { CountRow } from "../../store/port/settle/records.js";
import { checkOptionalReason } from "../jobs/check-reason.js";
import { type StateCounts, sumCounts } from "../observe/counts.js";
import { type PagedList, wholeList } from "../page.js";
import type { PolicyOperator, QueueView } from "../scheduler.js";

/** What is known of a queue, task or tenant as such. */
interface PolicyFacts<K extends PolicyKind> {
  readonly name: string;
  readonly paused: boolean;
  readonly policy: Policies[K];
  /** none of a tenant: its jobs are not counted apart */
  readonly counts: StateCounts;
}

/** Others may change the same policy at the same moment, but not for ever. */
const MAX_POLICY_TRIES = 20;

/** Queues, tasks and tenants, by name: what is paused, limited or counted together. */
export class StoredPolicies<K extends PolicyKind, View> implements PolicyOperator<K, View> {
  constructor(
    readonly store: Store,
    readonly kind: K,
    /** names to list even while they have no jobs */
    readonly alwaysListed: readonly string[],
    readonly view: (facts: PolicyFacts<K>) => View,
  ) {}

  /** Reads, changes, and stores if nobody else has meanwhile: what makes no sense is refused before anything is stored. */
  async update(name: string, changes: PolicyChanges[K]): Promise<Policies[K]> {
    const ref = { kind: this.kind, name: checkName(this.kind, name) };
    for (let tries = 0; tries < MAX_POLICY_TRIES; tries++) {
      const before = await this.store.policies.get(ref);
      const policy = changedPolicy(this.kind, (before?.policy ?? {}) as Policies[K], changes);
      if ((await this.store.policies.put(ref, policy, before?.version ?? 0)) === "stored") return policy;
    }
    throw pawlError("policy_contended", { kind: this.kind, name });
  }

  async get(name: string): Promise<View> {
    checkName(this.kind, name);
    const [found] = await this.#views((one) => one === name, [name]);
    return found as View;
  }

  list(): PagedList<View> {
    return wholeList(() => this.#views(() => true, this.alwaysListed));
  }

  async pause(name: string, reason?: string): Promise<void> {
    await this.store.lanes.pause(this.kind, checkName(this.kind, name), checkOptionalReason(reason));
  }

  async resume(name: string, reason?: string): Promise<void> {
    await this.store.lanes.resume(this.kind, checkName(this.kind, name), checkOptionalReason(reason));
  }

  async #views(isIncluded: (name: string) => boolean, alwaysListed: readonly string[]): Promise<readonly View[]> {
    const { store, kind } = this;
    const [rows, allPaused, { policies: stored }] = await Promise.all([
      kind === "tenant" ? [] : store.records.counts(),
      store.lanes.paused(),
      store.policies.list(kind),
    ]);
    const paused = new Set(allPaused.filter((one) => one.kind === kind).map(({ name }) => name));
    const policies = new Map(stored.map(({ name, policy }) => [name, policy as Policies[K]]));
    const groups = new Map<string, CountRow[]>();
    for (const name of [...alwaysListed, ...paused, ...policies.keys()]) groups.set(name, []);
    for (const row of rows) {
      const name = row[kind as "queue" | "task"];
      const group = groups.get(name);
      if (group === undefined) groups.set(name, [row]);
      else group.push(row);
    }
    const viewByName = (name: string) => {
      const policy = policies.get(name) ?? ({} as Policies[K]);
      return this.view({ name, paused: paused.has(name), policy, counts: sumCounts(groups.get(name) as CountRow[]) });
    };
    return [...groups.keys()].filter(isIncluded).sort().map(viewByName);
  }
}

export function createQueues(store: Store, configured: readonly string[]): PolicyOperator<"queue", QueueView> {
  return new StoredPolicies(store, "queue", configured, ({ name: queue, paused, policy, counts }) => ({ queue, paused, policy, counts }));
}

import type { Lane } from "../../core/jobs/lane.js";
import { isLimited, type PolicyKind, type PolicyRecord, type PriorityRules, type QueuePolicy, type TenantPolicy } from "../../core/sharing/policy.js";
import type { PolicyStore } from "../../store/port/sharing/policies.js";

const NO_RULES: PriorityRules = {};

/** The policies as this worker last read them. They are read again when the poll sees that one has changed. */
export class PolicyCache {
  #version: string | undefined;
  #priorityWeights: ReadonlyMap<string, number> = new Map();
  #rules: ReadonlyMap<string, PriorityRules> = new Map();
  #limited: Readonly<Record<PolicyKind, ReadonlySet<string>>> = { queue: new Set(), task: new Set(), tenant: new Set() };
  #anyLimited = false;

  /** Whether there was anything to read that may change what is claimed. */
  async refresh(store: PolicyStore, version: string): Promise<boolean> {
    if (version === this.#version || (this.#version === undefined && version === "0")) return false;
    const { policies, version: read } = await store.list();
    this.#version = read;
    this.#take(policies);
    return true;
  }

  weightOf(tenant: string): number {
    return this.#priorityWeights.get(tenant) ?? 1;
  }

  hasRules(queue: string): boolean {
    return this.#rules.has(queue);
  }

  rulesOf(queue: string): PriorityRules {
    return this.#rules.get(queue) ?? NO_RULES;
  }

  isLimited({ queue, task, tenant }: Lane): boolean {
    return this.#anyLimited && (this.#limited.queue.has(queue) || this.#limited.task.has(task) || this.#limited.tenant.has(tenant));
  }

  #take(policies: readonly PolicyRecord[]): void {
    const of = (kind: PolicyKind) => policies.filter((record) => record.kind === kind);
    const limited = (kind: PolicyKind) => new Set(of(kind).flatMap(({ name, policy }) => (isLimited(policy) ? [name] : [])));
    this.#priorityWeights = new Map(of("tenant").flatMap(({ name, policy }) => weightIn(name, policy)));
    this.#rules = new Map(of("queue").flatMap(({ name, policy }) => rulesIn(name, policy)));
    this.#limited = { queue: limited("queue"), task: limited("task"), tenant: limited("tenant") };
    this.#anyLimited = Object.values(this.#limited).some(({ size }) => size > 0);
  }
}

function weightIn(name: string, { weight }: TenantPolicy): [string, number][] {
  return weight === undefined ? [] : [[name, weight]];
}

function rulesIn(name: string, { priorityWeights, priorityMinimum, strictPriority, aging }: QueuePolicy): [string, PriorityRules][] {
  const rules = { priorityWeights, priorityMinimum, strictPriority, aging };
  const present = Object.fromEntries(Object.entries(rules).filter(([, value]) => value !== undefined)) as PriorityRules;
  return Object.keys(present).length === 0 ? [] : [[name, present]];
}

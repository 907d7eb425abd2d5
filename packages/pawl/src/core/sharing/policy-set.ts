import type { Lane } from "../jobs/lane.js";
import { isLimited, type PolicyKind, type PolicyRecord, type PriorityRules, type QueuePolicy, type TenantPolicy } from "./policy.js";

const NO_RULES: PriorityRules = {};

/** Policies as a worker needs them: by queue, task and tenant. It never changes; other policies are another set. */
export class PolicySet {
  readonly #weights: ReadonlyMap<string, number>;
  readonly #rules: ReadonlyMap<string, PriorityRules>;
  readonly #limited: Readonly<Record<PolicyKind, ReadonlySet<string>>>;
  readonly #anyLimited: boolean;

  constructor(policies: readonly PolicyRecord[]) {
    const of = (kind: PolicyKind) => policies.filter((record) => record.kind === kind);
    const limited = (kind: PolicyKind) => new Set(of(kind).flatMap(({ name, policy }) => (isLimited(policy) ? [name] : [])));
    this.#weights = new Map(of("tenant").flatMap(({ name, policy }) => weightIn(name, policy)));
    this.#rules = new Map(of("queue").flatMap(({ name, policy }) => rulesIn(name, policy)));
    this.#limited = { queue: limited("queue"), task: limited("task"), tenant: limited("tenant") };
    this.#anyLimited = Object.values(this.#limited).some(({ size }) => size > 0);
  }

  /** A tenant's weight beside the other tenants of its priority. */
  weightOf(tenant: string): number {
    return this.#weights.get(tenant) ?? 1;
  }

  /** Whether the queue shares its priorities by rules of its own. */
  hasRules(queue: string): boolean {
    return this.#rules.has(queue);
  }

  rulesOf(queue: string): PriorityRules {
    return this.#rules.get(queue) ?? NO_RULES;
  }

  /** Whether a claim of the lane must count slots and tokens of its queue, task or tenant. */
  isLimited({ queue, task, tenant }: Lane): boolean {
    return this.#anyLimited && (this.#limited.queue.has(queue) || this.#limited.task.has(task) || this.#limited.tenant.has(tenant));
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

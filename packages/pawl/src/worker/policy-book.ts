import type { Lane } from "../core/lane.js";
import { type BandRules, isLimited, type PolicyKind, type PolicyRecord, type QueuePolicy, type TenantPolicy } from "../core/policy.js";
import type { PolicyStore } from "../store/port-policies.js";

const NO_RULES: BandRules = {};

/** The policies as this worker last read them. They are read again when the poll sees that one has changed. */
export class PolicyBook {
  #mark: string | undefined;
  #weights: ReadonlyMap<string, number> = new Map();
  #rules: ReadonlyMap<string, BandRules> = new Map();
  #limited: Readonly<Record<PolicyKind, ReadonlySet<string>>> = { queue: new Set(), task: new Set(), tenant: new Set() };
  #anyLimited = false;

  /** Whether there was anything to read that may change what is offered. */
  async follow(store: PolicyStore, mark: string): Promise<boolean> {
    if (mark === this.#mark || (this.#mark === undefined && mark === "0")) return false;
    const { policies, mark: read } = await store.list();
    this.#mark = read;
    this.#take(policies);
    return true;
  }

  weightOf(tenant: string): number {
    return this.#weights.get(tenant) ?? 1;
  }

  hasRules(queue: string): boolean {
    return this.#rules.has(queue);
  }

  rulesOf(queue: string): BandRules {
    return this.#rules.get(queue) ?? NO_RULES;
  }

  isLimited({ queue, task, tenant }: Lane): boolean {
    return this.#anyLimited && (this.#limited.queue.has(queue) || this.#limited.task.has(task) || this.#limited.tenant.has(tenant));
  }

  #take(policies: readonly PolicyRecord[]): void {
    const of = (kind: PolicyKind) => policies.filter((record) => record.kind === kind);
    const limited = (kind: PolicyKind) => new Set(of(kind).flatMap(({ name, policy }) => (isLimited(policy) ? [name] : [])));
    this.#weights = new Map(of("tenant").flatMap(({ name, policy }) => weightIn(name, policy)));
    this.#rules = new Map(of("queue").flatMap(({ name, policy }) => rulesIn(name, policy)));
    this.#limited = { queue: limited("queue"), task: limited("task"), tenant: limited("tenant") };
    this.#anyLimited = Object.values(this.#limited).some(({ size }) => size > 0);
  }
}

function weightIn(name: string, { weight }: TenantPolicy): [string, number][] {
  return weight === undefined ? [] : [[name, weight]];
}

function rulesIn(name: string, { weights, minimum, strict, aging }: QueuePolicy): [string, BandRules][] {
  const rules = { weights, minimum, strict, aging };
  const given = Object.fromEntries(Object.entries(rules).filter(([, value]) => value !== undefined)) as BandRules;
  return Object.keys(given).length === 0 ? [] : [[name, given]];
}

import { pawlError } from "../core/error.js";
import { checkName } from "../core/name.js";
import type { Policies, PolicyChanges, PolicyKind } from "../core/policy.js";
import { changedPolicy } from "../core/policy-check.js";
import type { Store } from "../store/port.js";
import type { CountRow } from "../store/port-records.js";
import { type StateCounts, sum } from "./counts.js";
import type { Named, QueueView } from "./scheduler.js";

/** What is known of a queue, task or tenant as such. */
interface Known<K extends PolicyKind> {
  readonly name: string;
  readonly paused: boolean;
  readonly policy: Policies[K];
  /** none of a tenant: its jobs are not counted apart */
  readonly counts: StateCounts;
}

/** Others may change the same policy at the same moment, but not for ever. */
const MOST_TRIES = 20;

/** Queues, tasks and tenants, by name: what is paused, limited or counted together. */
export class NamedLanes<K extends PolicyKind, View> implements Named<K, View> {
  constructor(
    readonly store: Store,
    readonly kind: K,
    /** names to list even while they have no jobs */
    readonly known: readonly string[],
    readonly view: (known: Known<K>) => View,
  ) {}

  /** Reads, changes, and stores if nobody else has meanwhile: what makes no sense is refused before anything is stored. */
  async set(name: string, changes: PolicyChanges[K]): Promise<Policies[K]> {
    const ref = { kind: this.kind, name: checkName(this.kind, name) };
    for (let tries = 0; tries < MOST_TRIES; tries++) {
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

  list(): Promise<readonly View[]> {
    return this.#views(() => true, this.known);
  }

  async pause(name: string): Promise<void> {
    await this.store.lanes.pause(this.kind, checkName(this.kind, name));
  }

  async resume(name: string): Promise<void> {
    await this.store.lanes.resume(this.kind, checkName(this.kind, name));
  }

  async #views(isAsked: (name: string) => boolean, known: readonly string[]): Promise<readonly View[]> {
    const { store, kind } = this;
    const [rows, allPaused, { policies: stored }] = await Promise.all([
      kind === "tenant" ? [] : store.records.counts(),
      store.lanes.paused(),
      store.policies.list(kind),
    ]);
    const paused = new Set(allPaused.filter((one) => one.kind === kind).map(({ name }) => name));
    const policies = new Map(stored.map(({ name, policy }) => [name, policy as Policies[K]]));
    const groups = new Map<string, CountRow[]>();
    for (const name of [...known, ...paused, ...policies.keys()]) groups.set(name, []);
    for (const row of rows) {
      const name = row[kind as "queue" | "task"];
      const group = groups.get(name);
      if (group === undefined) groups.set(name, [row]);
      else group.push(row);
    }
    const viewed = (name: string) => {
      const policy = policies.get(name) ?? ({} as Policies[K]);
      return this.view({ name, paused: paused.has(name), policy, counts: sum(groups.get(name) as CountRow[]) });
    };
    return [...groups.keys()].filter(isAsked).sort().map(viewed);
  }
}

export function queuesOf(store: Store, configured: readonly string[]): Named<"queue", QueueView> {
  return new NamedLanes(store, "queue", configured, ({ name: queue, paused, policy, counts }) => ({ queue, paused, policy, counts }));
}

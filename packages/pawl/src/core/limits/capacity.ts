import type { TargetRef } from "../access/push-target.js";
import type { Priority } from "../jobs/job.js";
import type { Lane } from "../jobs/lane.js";
import type { SlotUse } from "./slot-use.js";

/** Needs of a task: its worker must have every capability, and a handler uses so much of each resource while it runs. */
export interface Needs {
  readonly capabilities?: readonly string[];
  readonly resources?: Readonly<Record<string, number>>;
}

/** ms that a job of the tenant takes lately */
export type Took = readonly [tenant: string, ms: number];

/** Capabilities and resources of a worker, shaped as `Needs`. */
export interface Provides {
  /** properties that not every worker has, such as "gpu" */
  readonly capabilities?: readonly string[];
  /** the amount of each resource in all: cpu, memory, connections, any name that tasks need */
  readonly resources?: Readonly<Record<string, number>>;
}

/** Handlers at a time: of all together, and fewer of some queues and tasks. */
export interface WorkerConcurrency {
  readonly total: number;
  readonly queues?: Readonly<Record<string, number>>;
  readonly tasks?: Readonly<Record<string, number>>;
}

/** The jobs that a worker serves, as it reports them to the others. A list that is left out means all. */
export interface Serves {
  readonly tasks: readonly string[];
  readonly queues?: readonly string[];
  readonly priorities?: readonly Priority[];
  readonly tenants?: readonly string[];
  /** of these tasks, those of these tenants alone: what it pushes */
  readonly only?: readonly TargetRef[];
  readonly provides: Required<Provides>;
  readonly concurrency: WorkerConcurrency;
  /** ms that jobs take lately by tenant, where several share it: some of them, to tell from when others will start */
  readonly took?: readonly Took[];
  /** how full it is; absent: one from before workers said so */
  readonly slots?: SlotUse;
  /** of Pawl; absent: one from before workers said so */
  readonly version?: string;
}

/** Why no worker runs the jobs of a lane. The first thing that none of those left has. */
export type Lack =
  | { readonly kind: "worker" }
  | { readonly kind: "task"; readonly task: string }
  | { readonly kind: "queue"; readonly queue: string }
  | { readonly kind: "priority"; readonly priority: Priority }
  | { readonly kind: "tenant"; readonly tenant: string }
  | { readonly kind: "capability"; readonly capability: string }
  /** `most`: what the best of them has in all */
  | { readonly kind: "resource"; readonly resource: string; readonly needs: number; readonly most: number }
  /** each of it is there, and no one worker has all */
  | { readonly kind: "together"; readonly capabilities: readonly string[]; readonly resources: readonly string[] };

/** The lacks of the jobs of a lane, if none of these workers can run them; empty if one can. */
export function lacksOf(lane: Lane, needs: Needs, workers: readonly Serves[]): readonly Lack[] {
  if (workers.length === 0) return [{ kind: "worker" }];
  const narrowing: readonly (readonly [Lack, (serves: Serves) => boolean])[] = [
    [{ kind: "task", task: lane.task }, ({ tasks, only }) => tasks.includes(lane.task) && (only?.some((ref) => isOf(lane, ref)) ?? true)],
    [{ kind: "queue", queue: lane.queue }, ({ queues }) => queues?.includes(lane.queue) ?? true],
    [{ kind: "priority", priority: lane.priority }, ({ priorities }) => priorities?.includes(lane.priority) ?? true],
    [{ kind: "tenant", tenant: lane.tenant }, ({ tenants }) => tenants?.includes(lane.tenant) ?? true],
  ];
  let left = workers;
  for (const [lack, serves] of narrowing) {
    left = left.filter(serves);
    if (left.length === 0) return [lack];
  }
  return left.some(({ provides }) => meets(provides, needs)) ? [] : unmet(needs, left);
}

function isOf(lane: TargetRef, { tenant, task }: TargetRef): boolean {
  return lane.tenant === tenant && lane.task === task;
}

/** Whether a worker with nothing else to do could run a task that needs this. */
export function meets({ capabilities, resources }: Required<Provides>, needs: Needs): boolean {
  return (
    (needs.capabilities ?? []).every((tag) => capabilities.includes(tag)) &&
    Object.entries(needs.resources ?? {}).every(([name, amount]) => amountOf(resources, name) >= amount)
  );
}

function unmet(needs: Needs, workers: readonly Serves[]): readonly Lack[] {
  const capabilities = (needs.capabilities ?? []).filter((tag) => !workers.some(({ provides }) => provides.capabilities.includes(tag)));
  const resources = Object.entries(needs.resources ?? {}).flatMap(([amount, needed]): Lack[] => {
    const most = workers.reduce((best, { provides }) => Math.max(best, amountOf(provides.resources, amount)), 0);
    return most >= needed ? [] : [{ kind: "resource", resource: amount, needs: needed, most }];
  });
  const lacks: Lack[] = [...capabilities.map((tag): Lack => ({ kind: "capability", capability: tag })), ...resources];
  return lacks.length > 0 ? lacks : [{ kind: "together", capabilities: needs.capabilities ?? [], resources: Object.keys(needs.resources ?? {}) }];
}

/** An amount that a worker does not declare is one it has nothing of. */
function amountOf(resources: Required<Provides>["resources"], name: string): number {
  return Object.hasOwn(resources, name) ? (resources[name] as number) : 0;
}

/** A lack in words, as the end of "it waits because …". */
export function lackInWords(lack: Lack): string {
  switch (lack.kind) {
    case "worker":
      return "no worker is live";
    case "task":
      return `no live worker has the task ${lack.task}`;
    case "queue":
      return `no live worker that has its task serves the queue ${lack.queue}`;
    case "priority":
      return `no live worker that has its task serves the priority ${lack.priority}`;
    case "tenant":
      return `no live worker that has its task serves the tenant ${lack.tenant}`;
    case "capability":
      return `no live worker that has its task has the capability ${lack.capability}`;
    case "resource":
      return `it needs ${lack.needs} of ${lack.resource}, and the live workers that have its task have ${lack.most} at most`;
    case "together":
      return `no one live worker has all of ${[...lack.capabilities, ...lack.resources].join(", ")}`;
  }
}

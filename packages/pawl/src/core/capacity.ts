import type { Priority } from "./job.js";
import type { Lane } from "./lane.js";
import type { SlotUse } from "./slots.js";
import type { TargetRef } from "./target.js";

/** What a task asks of the worker that runs it: every tag, and so much of each amount while a handler runs. */
export interface Needs {
  readonly tags?: readonly string[];
  readonly amounts?: Readonly<Record<string, number>>;
}

/** ms that a job of the tenant takes lately */
export type Took = readonly [tenant: string, ms: number];

/** What a worker serves, as it tells the others. Left out: all of them. */
export interface Serves {
  readonly tasks: readonly string[];
  readonly queues?: readonly string[];
  readonly bands?: readonly Priority[];
  readonly tenants?: readonly string[];
  /** of these tasks, those of these tenants alone: what it pushes */
  readonly only?: readonly TargetRef[];
  readonly tags: readonly string[];
  readonly amounts: Readonly<Record<string, number>>;
  /** handlers at a time */
  readonly concurrency: number;
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
  | { readonly kind: "band"; readonly band: Priority }
  | { readonly kind: "tenant"; readonly tenant: string }
  | { readonly kind: "tag"; readonly tag: string }
  /** `most`: what the best of them has in all */
  | { readonly kind: "amount"; readonly amount: string; readonly needs: number; readonly most: number }
  /** each of it is there, and no one worker has all */
  | { readonly kind: "together"; readonly tags: readonly string[]; readonly amounts: readonly string[] };

/** What the jobs of a lane lack, if none of these workers can run them; empty if one can. */
export function lacksOf(lane: Lane, needs: Needs, workers: readonly Serves[]): readonly Lack[] {
  if (workers.length === 0) return [{ kind: "worker" }];
  const narrowing: readonly (readonly [Lack, (serves: Serves) => boolean])[] = [
    [{ kind: "task", task: lane.task }, ({ tasks, only }) => tasks.includes(lane.task) && (only?.some((ref) => isOf(lane, ref)) ?? true)],
    [{ kind: "queue", queue: lane.queue }, ({ queues }) => queues?.includes(lane.queue) ?? true],
    [{ kind: "band", band: lane.band }, ({ bands }) => bands?.includes(lane.band) ?? true],
    [{ kind: "tenant", tenant: lane.tenant }, ({ tenants }) => tenants?.includes(lane.tenant) ?? true],
  ];
  let left = workers;
  for (const [lack, serves] of narrowing) {
    left = left.filter(serves);
    if (left.length === 0) return [lack];
  }
  return left.some((serves) => meets(serves, needs)) ? [] : unmet(needs, left);
}

function isOf(lane: TargetRef, { tenant, task }: TargetRef): boolean {
  return lane.tenant === tenant && lane.task === task;
}

/** Whether a worker with nothing else to do could run a task that needs this. */
export function meets({ tags, amounts }: Pick<Serves, "tags" | "amounts">, needs: Needs): boolean {
  return (
    (needs.tags ?? []).every((tag) => tags.includes(tag)) &&
    Object.entries(needs.amounts ?? {}).every(([name, amount]) => amountOf(amounts, name) >= amount)
  );
}

function unmet(needs: Needs, workers: readonly Serves[]): readonly Lack[] {
  const tags = (needs.tags ?? []).filter((tag) => !workers.some((worker) => worker.tags.includes(tag)));
  const amounts = Object.entries(needs.amounts ?? {}).flatMap(([amount, asked]): Lack[] => {
    const most = workers.reduce((best, worker) => Math.max(best, amountOf(worker.amounts, amount)), 0);
    return most >= asked ? [] : [{ kind: "amount", amount, needs: asked, most }];
  });
  const lacks: Lack[] = [...tags.map((tag): Lack => ({ kind: "tag", tag })), ...amounts];
  return lacks.length > 0 ? lacks : [{ kind: "together", tags: needs.tags ?? [], amounts: Object.keys(needs.amounts ?? {}) }];
}

/** An amount that a worker does not declare is one it has nothing of. */
function amountOf(amounts: Serves["amounts"], name: string): number {
  return Object.hasOwn(amounts, name) ? (amounts[name] as number) : 0;
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
    case "band":
      return `no live worker that has its task serves the band ${lack.band}`;
    case "tenant":
      return `no live worker that has its task serves the tenant ${lack.tenant}`;
    case "tag":
      return `no live worker that has its task has the tag ${lack.tag}`;
    case "amount":
      return `it needs ${lack.needs} of ${lack.amount}, and the live workers that have its task have ${lack.most} at most`;
    case "together":
      return `no one live worker has all of ${[...lack.tags, ...lack.amounts].join(", ")}`;
  }
}

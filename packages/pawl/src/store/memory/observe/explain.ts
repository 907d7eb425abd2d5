import type { JobRecord, ParkReason } from "../../../core/jobs/job.js";
import { compareLanes, type Lane, laneKey } from "../../../core/jobs/lane.js";
import { isSuspect } from "../../../core/jobs/outcome.js";
import { limitKeyId } from "../../../core/limits/limit-rule.js";
import type { Parent, SlotHolder } from "../../../core/observe/explain.js";
import type { ExplainStore, JobLook, LongestWait } from "../../port/observe/explain.js";
import { MAX_AHEAD, MAX_COUNTED, MAX_HOLDERS, MAX_PARENTS, MAX_RIVALS } from "../../port/observe/explain.js";
import { recordOf, visible } from "../jobs/view.js";
import { depthOf } from "../limits/ingest.js";
import { limitsOf } from "../limits/lane-limits.js";
import type { MemoryJob, Tables } from "../state.js";

export function memoryExplain(tables: Tables): ExplainStore {
  return {
    look: (scope, id) =>
      tables.step(() => {
        const row = visible(tables, scope, id);
        return row === undefined ? undefined : look(tables, row);
      }),
    waits: (lanes) => tables.step(() => waits(tables, lanes)),
    parked: () => tables.step(() => parked(tables)),
    depths: (tenants) => tables.step(() => tenants.map((tenant) => ({ tenant, depth: depthOf(tables, { kind: "tenant", name: tenant }) }))),
  };
}

function look(tables: Tables, row: MemoryJob): JobLook {
  const { lane, status } = row;
  const job = recordOf(tables, row);
  const lease = status.state === "running" ? tables.leases.get(status.lease) : undefined;
  const startRate = tables.startRates.get(startRateKey(lane));
  return {
    now: tables.now,
    job,
    ...(lease === undefined ? {} : { holder: { worker: lease.worker.name, since: lease.claimedAt, until: lease.until } }),
    parents: (job.waitsFor ?? []).slice(0, MAX_PARENTS).map((id): Parent => ({ job: id, state: tables.jobs.get(id)?.status.state ?? "deleted" })),
    slotHolders: keyHolders(tables, job),
    suspect: status.state === "ready" && isSuspect(row.crashes),
    ...ahead(tables, row),
    rivals: rivals(tables, lane),
    ...(startRate === undefined ? {} : { startRate }),
    limits: limitsOf(tables, lane),
  };
}

function keyHolders(tables: Tables, { lane, limitKey }: JobRecord): readonly SlotHolder[] {
  if (limitKey === undefined) return [];
  const key = limitKeyId(lane.tenant, limitKey);
  return [...tables.slots.holders("key", key), ...tables.slots.holders("serial", key)]
    .sort()
    .slice(0, MAX_HOLDERS)
    .map((job) => ({ job, state: (tables.jobs.get(job) as MemoryJob).status.state }));
}

/** Paces are kept as counts are: by queue and task. */
export function startRateKey({ queue, task }: Lane): string {
  return `${queue}\u0001${task}`;
}

function ahead(tables: Tables, row: MemoryJob): Pick<JobLook, "ahead" | "more"> {
  const isQueued = row.status.state === "ready" && !isSuspect(row.crashes);
  let count = 0;
  const { admitted = [], rest = [] } = tables.lanes.get(laneKey(row.lane)) ?? {};
  for (const id of [...admitted, ...rest]) {
    if (isQueued && id === row.id) break;
    if (count === MAX_AHEAD) return { ahead: count, more: true };
    count++;
  }
  return { ahead: count, more: false };
}

function rivals(tables: Tables, { queue, task, priority, tenant }: Lane): readonly Lane[] {
  return [...tables.lanes.values()]
    .map(({ lane }) => lane)
    .filter((lane) => lane.queue === queue && lane.task === task && (lane.priority !== priority || lane.tenant !== tenant))
    .sort(compareLanes)
    .slice(0, MAX_RIVALS);
}

function parked(tables: Tables): readonly { readonly reason: ParkReason; readonly count: number }[] {
  const counts = new Map<ParkReason, number>();
  let seen = 0;
  for (const { status } of tables.jobs.values()) {
    if (status.state !== "parked") continue;
    if (seen++ === MAX_COUNTED) break;
    const reason = status.limitWait?.reason ?? "paused";
    counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  return [...counts].map(([reason, count]) => ({ reason, count }));
}

function waits(tables: Tables, most: number): readonly LongestWait[] {
  const longest = new Map<string, LongestWait>();
  const lanes = [...tables.lanes.values()].sort((a, b) => compareLanes(a.lane, b.lane)).slice(0, most);
  for (const { lane, admitted, rest } of lanes) {
    const [head] = admitted.size > 0 ? admitted : rest;
    const row = head === undefined ? undefined : tables.jobs.get(head);
    if (row === undefined) continue;
    const { queue, priority } = lane;
    const wait = Math.max(0, tables.now - row.dueAt);
    const key = `${queue}\u0001${priority}`;
    if (wait >= (longest.get(key)?.longest ?? 0)) longest.set(key, { queue, priority, longest: wait });
  }
  return [...longest.values()];
}

import type { KeyHolder, Parent } from "../../core/explain.js";
import type { JobRecord, ParkReason } from "../../core/job.js";
import { compareLanes, type Lane, laneKey } from "../../core/lane.js";
import { gateKey } from "../../core/limit.js";
import { isSuspect } from "../../core/outcome.js";
import type { ExplainStore, Look, Wait } from "../port-explain.js";
import { MOST_AHEAD, MOST_COUNTED, MOST_HOLDERS, MOST_PARENTS, MOST_RIVALS } from "../port-explain.js";
import { depthOf } from "./ingest.js";
import { limitsOf } from "./lane-limits.js";
import type { JobRow, Tables } from "./state.js";
import { recordOf, visible } from "./view.js";

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

function look(tables: Tables, row: JobRow): Look {
  const { lane, place } = row;
  const job = recordOf(tables, row);
  const lease = place.state === "running" ? tables.leases.get(place.lease) : undefined;
  const pace = tables.paces.get(paceKey(lane));
  return {
    now: tables.now,
    job,
    ...(lease === undefined ? {} : { holder: { worker: lease.worker.name, since: lease.claimedAt, until: lease.until } }),
    parents: (job.waitsFor ?? []).slice(0, MOST_PARENTS).map((id): Parent => ({ job: id, state: tables.jobs.get(id)?.place.state ?? "gone" })),
    keyHolders: keyHolders(tables, job),
    suspect: place.state === "ready" && isSuspect(row.crashes),
    ...ahead(tables, row),
    rivals: rivals(tables, lane),
    ...(pace === undefined ? {} : { pace }),
    limits: limitsOf(tables, lane),
  };
}

function keyHolders(tables: Tables, { lane, parkedAt }: JobRecord): readonly KeyHolder[] {
  if (parkedAt === undefined) return [];
  const key = gateKey(lane.tenant, parkedAt);
  return [...tables.slots.holders("key", key), ...tables.slots.holders("serial", key)]
    .sort()
    .slice(0, MOST_HOLDERS)
    .map((job) => ({ job, state: (tables.jobs.get(job) as JobRow).place.state }));
}

/** Paces are kept as counts are: by queue and task. */
export function paceKey({ queue, task }: Lane): string {
  return `${queue}\u0001${task}`;
}

function ahead(tables: Tables, row: JobRow): Pick<Look, "ahead" | "more"> {
  const inLine = row.place.state === "ready" && !isSuspect(row.crashes);
  let count = 0;
  const { front = [], line = [] } = tables.lanes.get(laneKey(row.lane)) ?? {};
  for (const id of [...front, ...line]) {
    if (inLine && id === row.id) break;
    if (count === MOST_AHEAD) return { ahead: count, more: true };
    count++;
  }
  return { ahead: count, more: false };
}

function rivals(tables: Tables, { queue, task, band, tenant }: Lane): readonly Lane[] {
  return [...tables.lanes.values()]
    .map(({ lane }) => lane)
    .filter((lane) => lane.queue === queue && lane.task === task && (lane.band !== band || lane.tenant !== tenant))
    .sort(compareLanes)
    .slice(0, MOST_RIVALS);
}

function parked(tables: Tables): readonly { readonly reason: ParkReason; readonly count: number }[] {
  const counts = new Map<ParkReason, number>();
  let seen = 0;
  for (const { place } of tables.jobs.values()) {
    if (place.state !== "parked") continue;
    if (seen++ === MOST_COUNTED) break;
    const reason = place.standing?.reason ?? "paused";
    counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  return [...counts].map(([reason, count]) => ({ reason, count }));
}

function waits(tables: Tables, most: number): readonly Wait[] {
  const longest = new Map<string, Wait>();
  const lanes = [...tables.lanes.values()].sort((a, b) => compareLanes(a.lane, b.lane)).slice(0, most);
  for (const { lane, front, line } of lanes) {
    const [head] = front.size > 0 ? front : line;
    const row = head === undefined ? undefined : tables.jobs.get(head);
    if (row === undefined) continue;
    const { queue, band } = lane;
    const wait = Math.max(0, tables.now - row.dueAt);
    const key = `${queue}\u0001${band}`;
    if (wait >= (longest.get(key)?.longest ?? 0)) longest.set(key, { queue, band, longest: wait });
  }
  return [...longest.values()];
}

import { pawlError } from "../../core/error.js";
import type { JobId, LeaseId } from "../../core/id.js";
import type { Intent } from "../../core/job.js";
import { type Lane, type LaneKey, laneKey } from "../../core/lane.js";
import { roomOf, withinLimits } from "../../core/lane-limit.js";
import type { WorkerRef } from "../../core/lease.js";
import type { Quota } from "../../core/offer.js";
import { decide, standingOf, withIntent } from "../../core/outcome.js";
import type { Claimed, ClaimedJob, ClaimRequest, LeaseStore, Settled, Settlement, SuspectRequest } from "../port-leases.js";
import { apply, releaseDependents } from "./endings.js";
import { limitsOf, limitsOver, takeLimits } from "./lane-limits.js";
import { isPaused } from "./lanes.js";
import { move } from "./places.js";
import type { JobRow, LeaseRow, Tables } from "./state.js";

export function memoryLeases(tables: Tables): LeaseStore {
  return {
    claim: (request) =>
      tables.step(() => {
        const quotas = request.quotas.filter(({ lane }) => limitsOf(tables, lane).length === 0);
        const { rows, more } = next(tables, { ...request, quotas });
        return withMore(open(tables, request.worker, request.duration, rows, false), more);
      }),

    claimLimited: (request) =>
      tables.step(() => {
        const limits = limitsOver(tables, request.quotas);
        const { quotas, reached } = withinLimits(request.quotas, limits, tables.now);
        const { rows, more } = next(tables, { ...request, quotas });
        const claimed = open(tables, request.worker, request.duration, rows, false);
        takeLimits(tables, rows);
        return { claimed: withMore(claimed, more), reached };
      }),

    claimSuspect: (request) =>
      tables.step(() => {
        const suspect = [...tables.suspects].map((id) => jobOf(tables, id)).find(({ lane }) => mayBeSuspect(tables, request, lane));
        const rows = suspect === undefined ? [] : [suspect];
        const claimed = open(tables, request.worker, request.duration, rows, true);
        takeLimits(tables, rows);
        return claimed;
      }),

    renew: (worker, leases, duration) =>
      tables.step(() => {
        const held = leases.flatMap((id) => heldBy(tables, worker, id) ?? []);
        // Never shorter: of two renewals under way the later one may come first.
        for (const lease of held) lease.until = Math.max(lease.until, tables.now + duration);
        return { held: held.map(({ id }) => id) };
      }),

    async settle(worker, settlements, tx) {
      if (tx !== undefined) throw pawlError("transaction_unsupported", { engine: "memory" });
      return tables.step(() => {
        const touched: JobRow[] = [];
        const answers = settlements.map((settlement) => settleOne(tables, worker, settlement, touched));
        releaseDependents(tables, touched);
        return answers;
      });
    },

    reap: (limit) =>
      tables.step(() => {
        const expired = [...tables.leases.values()]
          .filter(({ until }) => until <= tables.now)
          .sort((a, b) => a.until - b.until || Number(a.id) - Number(b.id))
          .slice(0, limit);
        const touched = expired.flatMap((lease) => reapOne(tables, lease));
        releaseDependents(tables, touched);
        return { leases: expired.length, jobs: touched.length };
      }),

    intents: (worker, leases) =>
      tables.step(() =>
        leases
          .flatMap((id) => [...(heldBy(tables, worker, id)?.open ?? [])])
          .flatMap((job) => {
            const intent = tables.intents.get(job)?.intent;
            return intent === undefined ? [] : [{ job, intent }];
          }),
      ),

    async transaction() {
      throw pawlError("transaction_unsupported", { engine: "memory" });
    },
  };
}

/** The lease, if it is that boot's. Whether it has expired is for the reaper to say, not for the clock. */
export function heldBy(tables: Tables, worker: WorkerRef, id: LeaseId): LeaseRow | undefined {
  const lease = tables.leases.get(id);
  return lease?.worker.boot === worker.boot ? lease : undefined;
}

/**
 * Claims of a lane take in turns from its front and from the rest, so that neither keeps the other waiting: from the front
 * with the rest behind it, then from the rest alone, unless there is none. Of a front that was passed over there may be more.
 */
function next(tables: Tables, { quotas }: ClaimRequest): { readonly rows: readonly JobRow[]; readonly more: readonly Lane[] } {
  const taken = quotas.map((): JobId[] => []);
  let count = 0;
  const take = (from: "front" | "line", quota: Quota, own: JobId[]): void => {
    if (isPaused(tables, quota.lane)) return;
    for (const id of tables.lanes.get(laneKey(quota.lane))?.[from] ?? []) {
      if (own.length >= quota.quota) return;
      own.push(id);
      count++;
    }
  };
  const each = (work: (quota: Quota, own: JobId[], key: LaneKey) => void): void => {
    quotas.forEach((quota, index) => {
      work(quota, taken[index] as JobId[], laneKey(quota.lane));
    });
  };
  for (let looks = 0; looks < 2 && count === 0; looks++) {
    each((quota, own, key) => {
      if (!tables.othersTurn.has(key)) take("front", quota, own);
    });
    each((_, own, key) => {
      if (own.length > 0) tables.othersTurn.add(key);
      else tables.othersTurn.delete(key);
    });
    each((quota, own) => take("line", quota, own));
  }
  const hasMore = ({ lane, quota }: Quota, index: number) => {
    const own = taken[index] as JobId[];
    const front = tables.lanes.get(laneKey(lane))?.front ?? [];
    return own.length < quota && !isPaused(tables, lane) && [...front].some((id) => !own.includes(id));
  };
  return { rows: taken.flat().map((id) => jobOf(tables, id)), more: quotas.filter(hasMore).map(({ lane }) => lane) };
}

function withMore(claimed: Claimed | undefined, more: readonly Lane[]): Claimed | undefined {
  return claimed === undefined || more.length === 0 ? claimed : { ...claimed, more };
}

function mayBeSuspect(tables: Tables, { queues, tasks, bands, tenants }: SuspectRequest, lane: Lane): boolean {
  const asked =
    tasks.includes(lane.task) &&
    (queues === undefined || queues.includes(lane.queue)) &&
    (bands === undefined || bands.includes(lane.band)) &&
    (tenants === undefined || tenants.includes(lane.tenant));
  return asked && !isPaused(tables, lane) && limitsOf(tables, lane).every((limit) => roomOf(limit, tables.now) > 0);
}

function open(tables: Tables, worker: WorkerRef, duration: number, rows: readonly JobRow[], suspect: boolean): Claimed | undefined {
  if (rows.length === 0) return undefined;
  const id = tables.nextLease();
  tables.leases.set(id, {
    id,
    worker,
    claimedAt: tables.now,
    until: tables.now + duration,
    suspect,
    open: new Set(rows.map((row) => row.id)),
    settled: new Set(),
  });
  for (const row of rows) move(tables, row, "claim", { state: "running", lease: id });
  return { lease: id, now: tables.now, jobs: rows.map((row) => claimedJob(row, tables.intents.get(row.id)?.intent)) };
}

function claimedJob(row: JobRow, intent: Intent | undefined): ClaimedJob {
  const { id, lane, input, options, dueAt, spent, crashes } = row;
  return { id, lane, input, options, dueAt, spent, crashes, ...(intent === undefined ? {} : { intent }) };
}

function settleOne(tables: Tables, worker: WorkerRef, { lease: id, job, patch, startedAt, finishedAt }: Settlement, touched: JobRow[]): Settled {
  const lease = heldBy(tables, worker, id);
  if (lease === undefined || !lease.open.has(job)) return wasSettled(tables, worker, id, job) ? "settled" : "stale";
  const row = jobOf(tables, job);
  close(tables, lease, job);
  apply(tables, row, "settle", withIntent(patch, tables.intents.get(job)), { lease: id, worker, startedAt, finishedAt });
  touched.push(row);
  return "settled";
}

/** Answers for a settle whose answer was lost. A job that was reaped under the lease is somebody else's now. */
function wasSettled(tables: Tables, worker: WorkerRef, lease: LeaseId, job: JobId): boolean {
  if (heldBy(tables, worker, lease)?.settled.has(job)) return true;
  const line = tables.jobs.get(job)?.history.find((entry) => entry.lease === lease);
  return line?.boot === worker.boot && line.outcome !== "crashed";
}

function reapOne(tables: Tables, lease: LeaseRow): readonly JobRow[] {
  const rows = [...lease.open].map((job) => jobOf(tables, job));
  for (const row of rows) {
    close(tables, lease, row.id);
    const crash = decide(standingOf(row, row.options, tables.now), { kind: "crashed", alone: lease.suspect }, 0, () => 0);
    apply(tables, row, "reap", withIntent(crash, tables.intents.get(row.id)), {
      lease: lease.id,
      worker: lease.worker,
      startedAt: lease.claimedAt,
      finishedAt: tables.now,
    });
  }
  return rows;
}

function close(tables: Tables, lease: LeaseRow, job: JobId): void {
  lease.open.delete(job);
  lease.settled.add(job);
  if (lease.open.size === 0) tables.leases.delete(lease.id);
}

function jobOf(tables: Tables, id: JobId): JobRow {
  return tables.jobs.get(id) as JobRow;
}

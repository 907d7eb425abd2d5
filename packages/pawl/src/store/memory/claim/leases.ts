import type { JobId, LeaseId } from "../../../core/jobs/id.js";
import type { Intent } from "../../../core/jobs/job.js";
import { type Lane, type LaneKey, laneKey } from "../../../core/jobs/lane.js";
import type { WorkerRef } from "../../../core/jobs/lease.js";
import { attemptsSoFar, decide, withIntent } from "../../../core/jobs/outcome.js";
import { roomOf, withinLimits } from "../../../core/limits/lane-limit.js";
import type { Quota } from "../../../core/sharing/claim-plan.js";
import type { Claimed, ClaimedJob, ClaimRequest, LeaseStore, Settled, Settlement, SuspectRequest } from "../../port/settle/leases.js";
import { apply, releaseDependents } from "../jobs/history.js";
import { move } from "../jobs/move.js";
import { limitsOf, limitsOver, takeLimits } from "../limits/lane-limits.js";
import type { MemoryJob, MemoryLease, Tables } from "../state.js";
import { isPaused } from "./lanes.js";

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

    settle: (worker, settlements) =>
      tables.step(() => {
        const touched: MemoryJob[] = [];
        const answers = settlements.map((settlement) => settleOne(tables, worker, settlement, touched));
        releaseDependents(tables, touched);
        return answers;
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
  };
}

/** Expired leases: their unsettled jobs are `crashed`, decided by the same `decide` as what workers report. */
export function reap(tables: Tables, limit: number): { readonly leases: number; readonly jobs: number } {
  const expired = [...tables.leases.values()]
    .filter(({ until }) => until <= tables.now)
    .sort((a, b) => a.until - b.until || Number(a.id) - Number(b.id))
    .slice(0, limit);
  const touched = expired.flatMap((lease) => reapOne(tables, lease));
  releaseDependents(tables, touched);
  return { leases: expired.length, jobs: touched.length };
}

/** The lease, if it is that instance's. Whether it has expired is for the reaper to say, not for the clock. */
export function heldBy(tables: Tables, worker: WorkerRef, id: LeaseId): MemoryLease | undefined {
  const lease = tables.leases.get(id);
  return lease?.worker.instance === worker.instance ? lease : undefined;
}

/**
 * Claims of a lane take in turns from its admitted section and from the rest, so that neither keeps the other waiting: from the admitted section
 * with the rest behind it, then from the rest alone, unless there is none. Of an admitted section that was passed over there may be more.
 */
function next(tables: Tables, { quotas }: ClaimRequest): { readonly rows: readonly MemoryJob[]; readonly more: readonly Lane[] } {
  const taken = quotas.map((): JobId[] => []);
  let count = 0;
  const take = (from: "admitted" | "rest", quota: Quota, own: JobId[]): void => {
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
      if (!tables.restIsNext.has(key)) take("admitted", quota, own);
    });
    each((_, own, key) => {
      if (own.length > 0) tables.restIsNext.add(key);
      else tables.restIsNext.delete(key);
    });
    each((quota, own) => take("rest", quota, own));
  }
  const hasMore = ({ lane, quota }: Quota, index: number) => {
    const own = taken[index] as JobId[];
    const admitted = tables.lanes.get(laneKey(lane))?.admitted ?? [];
    return own.length < quota && !isPaused(tables, lane) && [...admitted].some((id) => !own.includes(id));
  };
  return { rows: taken.flat().map((id) => jobOf(tables, id)), more: quotas.filter(hasMore).map(({ lane }) => lane) };
}

function withMore(claimed: Claimed | undefined, more: readonly Lane[]): Claimed | undefined {
  return claimed === undefined || more.length === 0 ? claimed : { ...claimed, more };
}

function mayBeSuspect(tables: Tables, { queues, tasks, priorities, tenants }: SuspectRequest, lane: Lane): boolean {
  const matches =
    tasks.includes(lane.task) &&
    (queues === undefined || queues.includes(lane.queue)) &&
    (priorities === undefined || priorities.includes(lane.priority)) &&
    (tenants === undefined || tenants.includes(lane.tenant));
  return matches && !isPaused(tables, lane) && limitsOf(tables, lane).every((limit) => roomOf(limit, tables.now) > 0);
}

function open(tables: Tables, worker: WorkerRef, duration: number, rows: readonly MemoryJob[], suspect: boolean): Claimed | undefined {
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

function claimedJob(row: MemoryJob, intent: Intent | undefined): ClaimedJob {
  const { id, lane, input, options, dueAt, attempts, crashes } = row;
  return { id, lane, input, options, dueAt, attempts, crashes, ...(intent === undefined ? {} : { intent }) };
}

function settleOne(tables: Tables, worker: WorkerRef, { lease: id, job, patch, startedAt, finishedAt }: Settlement, touched: MemoryJob[]): Settled {
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
  return line?.instance === worker.instance && line.outcome !== "crashed";
}

function reapOne(tables: Tables, lease: MemoryLease): readonly MemoryJob[] {
  const rows = [...lease.open].map((job) => jobOf(tables, job));
  for (const row of rows) {
    close(tables, lease, row.id);
    const crash = decide(attemptsSoFar(row, row.options, tables.now), { kind: "crashed", alone: lease.suspect }, 0, () => 0);
    apply(tables, row, "reap", withIntent(crash, tables.intents.get(row.id)), {
      lease: lease.id,
      worker: lease.worker,
      startedAt: lease.claimedAt,
      finishedAt: tables.now,
    });
  }
  return rows;
}

function close(tables: Tables, lease: MemoryLease, job: JobId): void {
  lease.open.delete(job);
  lease.settled.add(job);
  if (lease.open.size === 0) tables.leases.delete(lease.id);
}

function jobOf(tables: Tables, id: JobId): MemoryJob {
  return tables.jobs.get(id) as MemoryJob;
}

import type { JobId } from "../../core/jobs/id.js";
import { pawlError } from "../../core/values/error.js";
import { keepAliveFor } from "../../runtime/process/keep-alive.js";
import type { Clock } from "../../runtime/time/clock.js";
import type { Store } from "../../store/port/index.js";

export interface PurgeProgress {
  /** jobs that are gone */
  readonly jobs: number;
  /** jobs that workers hold, each told to stop */
  readonly running: number;
  /** rows of everything else that are gone */
  readonly rest: number;
}

export interface PurgeOptions {
  readonly onProgress?: (progress: PurgeProgress) => void;
  /** stops it between two steps; what is gone stays gone, and asked for again it goes on with what is left */
  readonly signal?: AbortSignal;
}

/** A purge that was asked for and is not done. */
export interface PurgeView {
  readonly id: string;
  readonly tenant: string;
  readonly askedAt: Date;
}

/** jobs per step */
const JOBS_PER_STEP = 500;
/** ms between two looks at jobs that are told to stop */
const RUNNING_CHECK_MS = 500;
/** at most, since each look goes through every job there is */
const MAX_RUNNING_CHECK_MS = 10_000;
const MAX_POLICY_TRIES = 20;

/**
 * Carries out a purge that was asked for. Its keys go first, so that from the first moment nothing encrypted can be read and
 * nobody of the tenant is let in; then its schedules, then its jobs, over and over until a look at everything finds nothing.
 */
export async function carryOutPurge(store: Store, clock: Clock, id: string, { onProgress, signal }: PurgeOptions): Promise<PurgeProgress> {
  const purge = await store.purges.get(id);
  if (purge === undefined) throw pawlError("purge_unknown", { purge: id });
  const { tenant } = purge;
  const progress = { jobs: 0, running: 0, rest: 0 };
  const reportProgress = () => {
    signal?.throwIfAborted();
    onProgress?.({ ...progress });
  };
  await store.lanes.pause("tenant", tenant);
  let checkInterval = RUNNING_CHECK_MS;
  for (;;) {
    const rest = await purgeRest(store, tenant);
    progress.rest += rest;
    reportProgress();
    const { gone, running } = await purgeJobs(store, tenant, (step) => {
      progress.jobs += step;
      reportProgress();
    });
    progress.running = running;
    reportProgress();
    if (rest + gone + running === 0) break;
    // Somebody else carried it out to its end: what came since is not meant by it.
    if ((await store.purges.get(id)) === undefined) return progress;
    if (running > 0) await keepAliveFor(clock, checkInterval);
    checkInterval = Math.min(2 * checkInterval, MAX_RUNNING_CHECK_MS);
  }
  await forgetPolicy(store, tenant);
  await store.lanes.resume("tenant", tenant);
  await store.purges.end(id);
  return progress;
}

async function purgeRest(store: Store, tenant: string): Promise<number> {
  let sum = 0;
  for (;;) {
    const gone = (await store.purges.rest(tenant, JOBS_PER_STEP)) + (await store.tenants.purgeRest(tenant, JOBS_PER_STEP));
    const { schedules } = await store.schedules.list({ tenant }, {}, { limit: JOBS_PER_STEP });
    for (const schedule of schedules) await store.schedules.delete(schedule);
    sum += gone + schedules.length;
    if (gone + schedules.length === 0) return sum;
  }
}

async function purgeJobs(store: Store, tenant: string, onStep: (gone: number) => void): Promise<{ readonly gone: number; readonly running: number }> {
  let [gone, running] = [0, 0];
  let after: JobId | undefined;
  do {
    const step = await store.tenants.purgeJobs(tenant, { limit: JOBS_PER_STEP, ...(after === undefined ? {} : { after }) });
    gone += step.deleted;
    running += step.running;
    after = step.next;
    onStep(step.deleted);
  } while (after !== undefined);
  return { gone, running };
}

async function forgetPolicy(store: Store, tenant: string): Promise<void> {
  const ref = { kind: "tenant", name: tenant } as const;
  for (let tries = 0; tries < MAX_POLICY_TRIES; tries++) {
    const policy = await store.policies.get(ref);
    if (policy === undefined || (await store.policies.put(ref, {}, policy.version)) === "stored") return;
  }
  throw pawlError("policy_contended", ref);
}

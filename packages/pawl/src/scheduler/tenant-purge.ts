import { pawlError } from "../core/error.js";
import type { JobId } from "../core/id.js";
import { restFor } from "../runtime/alive.js";
import type { Clock } from "../runtime/clock.js";
import type { Store } from "../store/port.js";

export interface PurgeProgress {
  /** jobs that are gone */
  readonly jobs: number;
  /** jobs that workers hold, each told to stop */
  readonly running: number;
  /** rows of everything else that are gone */
  readonly rest: number;
}

export interface PurgeOptions {
  readonly onProgress?: (so: PurgeProgress) => void;
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
const STEP = 500;
/** ms between two looks at jobs that are told to stop */
const PATIENCE = 500;
/** at most, since each look goes through every job there is */
const MOST_PATIENCE = 10_000;
const MOST_TRIES = 20;

/**
 * Carries out a purge that was asked for. Its keys go first, so that from the first moment nothing sealed can be read and
 * nobody of the tenant is let in; then its schedules, then its jobs, over and over until a look at everything finds nothing.
 */
export async function carryOutPurge(store: Store, clock: Clock, id: string, { onProgress, signal }: PurgeOptions): Promise<PurgeProgress> {
  const asked = await store.purges.get(id);
  if (asked === undefined) throw pawlError("purge_unknown", { purge: id });
  const { tenant } = asked;
  const so = { jobs: 0, running: 0, rest: 0 };
  const tell = () => {
    signal?.throwIfAborted();
    onProgress?.({ ...so });
  };
  await store.lanes.pause("tenant", tenant);
  let patience = PATIENCE;
  for (;;) {
    const rest = await purgeRest(store, tenant);
    so.rest += rest;
    tell();
    const { gone, running } = await purgeJobs(store, tenant, (step) => {
      so.jobs += step;
      tell();
    });
    so.running = running;
    tell();
    if (rest + gone + running === 0) break;
    // Somebody else carried it out to its end: what came since is not meant by it.
    if ((await store.purges.get(id)) === undefined) return so;
    if (running > 0) await restFor(clock, patience);
    patience = Math.min(2 * patience, MOST_PATIENCE);
  }
  await forgetPolicy(store, tenant);
  await store.lanes.resume("tenant", tenant);
  await store.purges.end(id);
  return so;
}

async function purgeRest(store: Store, tenant: string): Promise<number> {
  let sum = 0;
  for (;;) {
    const gone = await store.purges.rest(tenant, STEP);
    const { schedules } = await store.schedules.list({ tenant }, {}, { limit: STEP });
    for (const schedule of schedules) await store.schedules.remove(schedule);
    sum += gone + schedules.length;
    if (gone + schedules.length === 0) return sum;
  }
}

async function purgeJobs(store: Store, tenant: string, onStep: (gone: number) => void): Promise<{ readonly gone: number; readonly running: number }> {
  let [gone, running] = [0, 0];
  let after: JobId | undefined;
  do {
    const step = await store.purges.jobs(tenant, { limit: STEP, ...(after === undefined ? {} : { after }) });
    gone += step.gone;
    running += step.running;
    after = step.next;
    onStep(step.gone);
  } while (after !== undefined);
  return { gone, running };
}

async function forgetPolicy(store: Store, tenant: string): Promise<void> {
  const ref = { kind: "tenant", name: tenant } as const;
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const policy = await store.policies.get(ref);
    if (policy === undefined || (await store.policies.put(ref, {}, policy.version)) === "stored") return;
  }
  throw pawlError("policy_contended", ref);
}

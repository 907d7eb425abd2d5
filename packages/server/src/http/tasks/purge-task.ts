import { type AnyTask, type Context, type EnqueueOptions, isPawlError, type Job, NonRetryable, type Pawl, task } from "pawl";
import { OWN_TENANT, type PurgeProgress, serviceOf } from "pawl/service";
import { BULK_QUEUE } from "./bulk-task.js";

export const PURGE_TASK = "pawl.purge";

const TASK_TIMEOUT = "24h";
/** How long a purge may take to be noted after it has its job. */
const RECORD_GRACE = "1m";

/**
 * The job of a tenant's purge. It is there before the purge is noted, and due a little later: killed between the two, the
 * job finds nothing to do, and killed after them it runs by itself. So there is no purge without one.
 */
export async function enqueuePurge(pawl: Pawl, tenant: string): Promise<Job> {
  const own = pawl.forTenant(OWN_TENANT);
  const jobOf = (purge: string, options: EnqueueOptions = {}) => own.enqueue(PURGE_TASK, { purge }, { ...options, unique: purge });
  const made = new Map<string, Job>();
  const purge = await serviceOf(pawl).purges.request(tenant, async (id) => made.set(id, await jobOf(id, { delay: RECORD_GRACE })));
  // By its key: one that was asked for before has its job, or gets another if that one died.
  const job = made.get(purge) ?? (await jobOf(purge));
  try {
    await own.jobs.promote(job);
    return job;
  } catch (error) {
    if (!isPawlError(error, "job_state_conflict")) throw error;
    // It runs already; or it was over before the purge was noted, and then its key is free for one that finds it.
    return jobOf(purge);
  }
}

/**
 * The task that lets everything of a tenant go. Its input is the id of a purge that was asked for, and not the tenant's name:
 * that would outlive it. Killed, it begins anew and finds what is left.
 */
export class PurgeTask {
  #pawl: Pawl | undefined;
  readonly task: AnyTask = task(PURGE_TASK, { queue: BULK_QUEUE, timeout: TASK_TIMEOUT, retry: 20 }, (input: unknown, ctx) => this.#run(input, ctx));

  attach(pawl: Pawl): void {
    this.#pawl = pawl;
  }

  async #run(input: unknown, ctx: Context): Promise<PurgeProgress> {
    if (this.#pawl === undefined) throw new Error("the purge task has not been attached to a store");
    const purge = (input as { readonly purge?: unknown } | null)?.purge;
    if (typeof purge !== "string" || !/^[0-9a-f-]{36}$/.test(purge)) throw new NonRetryable("the input is no purge");
    try {
      return await serviceOf(this.#pawl).purges.carryOut(purge, { signal: ctx.signal, onProgress: (so) => ctx.progress(so) });
    } catch (error) {
      // Killed between the end of the purge and its own: what is no longer known is done.
      if (isPawlError(error, "purge_unknown")) return { jobs: 0, running: 0, rest: 0 };
      throw error;
    }
  }
}

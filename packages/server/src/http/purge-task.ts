import { type AnyTask, type Context, isPawlError, NonRetryable, type Pawl, type PurgeProgress, task } from "pawl";
import { BULK_QUEUE } from "./bulk-task.js";

export const PURGE_TASK = "pawl.purge";

const LONGEST = "24h";

/**
 * The task that lets everything of a tenant go. Its input is the id of a purge that was asked for, and not the tenant's name:
 * that would outlive it. Killed, it begins anew and finds what is left.
 */
export class PurgeTask {
  #pawl: Pawl | undefined;
  readonly task: AnyTask = task(PURGE_TASK, { queue: BULK_QUEUE, timeout: LONGEST, retry: 20 }, (input: unknown, ctx) => this.#run(input, ctx));

  attach(pawl: Pawl): void {
    this.#pawl = pawl;
  }

  async #run(given: unknown, ctx: Context): Promise<PurgeProgress> {
    if (this.#pawl === undefined) throw new Error("the purge task has not been attached to a store");
    const purge = (given as { readonly purge?: unknown } | null)?.purge;
    if (typeof purge !== "string" || !/^[0-9a-f-]{36}$/.test(purge)) throw new NonRetryable("the input is no purge");
    try {
      return await this.#pawl.tenants.carryOutPurge(purge, { signal: ctx.signal, onProgress: (so) => ctx.progress(so) });
    } catch (error) {
      // Killed between the end of the purge and its own: what is no longer known is done.
      if (isPawlError(error, "purge_unknown")) return { jobs: 0, running: 0, rest: 0 };
      throw error;
    }
  }
}

import { type AnyTask, type Context, type JobView, NonRetryable, type Pawl, type Scheduler, task } from "pawl";
import { type BulkVerb, bulkOutcomeOf, checkBulkFilter, checkBulkOptions, checkJobsFilter, type Jobs } from "pawl/service";
import { ANONYMOUS, type AuditLog } from "../access/audit-request.js";
import { startBulk } from "../contract/jobs/bulk.js";
import type { BodyOf } from "../contract/route.js";
import { reader } from "../request/validate.js";

export const BULK_TASK = "pawl.bulk";
export const BULK_QUEUE = "pawl";

/** What a bulk operation came to, and, as progress, how far it is. */
export interface BulkResult {
  readonly changed: number;
  /** somebody changed them first, or the verb does not apply to them */
  readonly skipped: number;
  readonly failed: number;
}

type BulkInput = BodyOf<typeof startBulk>;

const PAGE_SIZE = 200;
const MAX_CONCURRENT = 16;
const TASK_TIMEOUT = "24h";

/**
 * The task that carries out operations on many jobs. It acts as the tenant of its own job and nobody else: an input that
 * names a tenant was not written by the API, and is refused. Give `task` to `open`, and `attach` what was opened.
 */
export class BulkTask {
  #pawl: Pawl | undefined;
  #audit: AuditLog | undefined;
  readonly task: AnyTask = task(BULK_TASK, { queue: BULK_QUEUE, timeout: TASK_TIMEOUT, retry: 5 }, (input: unknown, ctx) => this.#run(input, ctx));

  attach(pawl: Pawl, audit?: AuditLog): void {
    this.#pawl = pawl;
    this.#audit = audit;
  }

  async #run(raw: unknown, ctx: Context): Promise<BulkResult> {
    if (this.#pawl === undefined) throw new Error("the bulk task has not been attached to a store");
    const input = await this.#checkedInput(raw, ctx);
    return carryOut(this.#pawl.forTenant(ctx.tenant), input, ctx);
  }

  async #checkedInput(raw: unknown, { tenant, job }: Context): Promise<BulkInput> {
    const input = readInput(raw);
    if (input.filter.tenant === undefined) return input;
    const details = { job, tenant: input.filter.tenant, reason: "tenant_mismatch" };
    await this.#audit?.record({ actor: ANONYMOUS, tenant, action: BULK_TASK, outcome: "denied", subject: `job:${job}`, request: job, details });
    throw new NonRetryable("tenant_mismatch: the input names a tenant; a bulk operation acts for the tenant of its own job");
  }
}

const read = reader({ ...startBulk, params: undefined, query: undefined });

/** What the shape of a request does not say. Of whoever asks for it, who hears of it; and of a job, which anybody may have made. */
export function checkBulk({ verb, filter, ...how }: BulkInput): void {
  checkJobsFilter(checkBulkFilter(verb, filter));
  checkBulkOptions(verb, how);
}

function readInput(raw: unknown): BulkInput {
  try {
    const input = read({ params: {}, query: {}, body: raw }).body as BulkInput;
    checkBulk(input);
    return input;
  } catch (error) {
    throw new NonRetryable("the input is no bulk operation", { cause: error });
  }
}

/** Page by page, newest first. What is done stays done: a second attempt finds it so, and goes on with the rest. */
async function carryOut(scheduler: Scheduler, { verb, filter, ...how }: BulkInput, ctx: Context): Promise<BulkResult> {
  const counts = { changed: 0, skipped: 0, failed: 0 };
  const { maxJobs, pace, reason = "a bulk operation" } = checkBulkOptions(verb, how);
  const wanted = checkBulkFilter(verb, filter);
  const act = actor(scheduler.jobs, verb, pace, reason);
  let cursor: string | undefined;
  do {
    const page = await scheduler.jobs.list(wanted, { limit: PAGE_SIZE, ...(cursor === undefined ? {} : { cursor }) });
    const left = Math.max(0, maxJobs - counts.changed);
    const jobs = page.items.filter((job) => !job.task.startsWith("pawl.")).slice(0, left);
    for (let at = 0; at < jobs.length; at += MAX_CONCURRENT) {
      ctx.signal.throwIfAborted();
      await Promise.all(jobs.slice(at, at + MAX_CONCURRENT).map((job) => count(counts, () => act(job))));
    }
    ctx.progress({ ...counts });
    cursor = page.next;
  } while (cursor !== undefined && counts.changed < maxJobs);
  return counts;
}

async function count(counts: { changed: number; skipped: number; failed: number }, act: () => Promise<unknown>): Promise<void> {
  try {
    await act();
    counts.changed++;
  } catch (error) {
    const fate = bulkOutcomeOf(error);
    if (fate === "fatal") throw error;
    counts[fate]++;
  }
}

function actor(jobs: Jobs, verb: BulkVerb, pace: number, reason: string): (job: JobView) => Promise<unknown> {
  let index = 0;
  if (verb === "redrive") return (job) => jobs.redrive(job, { reason, ...(pace === 0 ? {} : { delay: Math.round(index++ * pace) }) });
  return (job) => jobs[verb](job, reason);
}

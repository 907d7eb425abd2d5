import { type Duration, type EnqueueOptions, isPawlError, type Job, type JobView } from "pawl";
import { milliseconds, pawlError } from "pawl/service";
import type { EnqueuedAnswer } from "../contract/jobs/job-answer.js";
import {
  cancelJob,
  deleteJob,
  enqueueJob,
  explainJob,
  getJob,
  jobHistory,
  jobLogs,
  listJobs,
  pauseJob,
  promoteJob,
  redriveJob,
  rerunJob,
  resumeJob,
  waitForJob,
} from "../contract/jobs/jobs.js";
import { isStillAllowed, on, type RouteCall } from "../handler.js";

export function enqueuedAnswer({ id, task, enqueued, replaced }: Job): EnqueuedAnswer {
  return { id, task, enqueued, ...(replaced === undefined ? {} : { replaced }) };
}

/** ms */
const DEFAULT_WAIT_MS = 30_000;
const MAX_WAIT_MS = 60_000;

/** What is no duration is for the library to refuse, by its name. */
function boundedWait(timeout: Duration): Duration {
  try {
    return Math.min(MAX_WAIT_MS, milliseconds(timeout));
  } catch {
    return timeout;
  }
}

async function waitedJob({
  params,
  query: { timeout = DEFAULT_WAIT_MS },
  scheduler,
  signal,
  principal,
  deps,
}: RouteCall<typeof waitForJob>): Promise<JobView> {
  try {
    return await deps.waits.keepOpen(principal, signal, (ended) => scheduler.jobs.wait(params.job, { timeout: boundedWait(timeout), signal: ended }));
  } catch (error) {
    if (isPawlError(error, "wait_timeout")) return scheduler.jobs.get(params.job);
    throw error;
  }
}

export const jobs = [
  on(enqueueJob, async ({ body: { task, input, ...options }, scheduler, idempotencyKey }) => {
    const keyed = idempotencyKey === undefined ? {} : { idempotencyKey };
    return enqueuedAnswer(await scheduler.enqueue(task, input, { ...keyed, ...(options as EnqueueOptions) }));
  }),
  on(getJob, ({ params, scheduler }) => scheduler.jobs.get(params.job)),
  on(listJobs, ({ query: { limit, after, ...filter }, scheduler }) =>
    scheduler.jobs.list(filter, { ...(limit === undefined ? {} : { limit }), ...(after === undefined ? {} : { after }) }),
  ),
  on(jobHistory, ({ params, query, scheduler }) => scheduler.jobs.historyPage(params.job, query)),
  on(jobLogs, ({ params, query, scheduler }) => scheduler.jobs.logPage(params.job, query)),
  on(explainJob, ({ params, scheduler }) => scheduler.jobs.explain(params.job)),
  on(waitForJob, async (call) => {
    const arrivedAt = performance.now();
    const job = await waitedJob(call);
    if (!(await isStillAllowed(arrivedAt, call))) throw pawlError("unauthenticated");
    return job;
  }),
  on(cancelJob, ({ params, body, scheduler }) => scheduler.jobs.cancel(params.job, body.reason)),
  on(pauseJob, ({ params, scheduler }) => scheduler.jobs.pause(params.job)),
  on(resumeJob, ({ params, scheduler }) => scheduler.jobs.resume(params.job)),
  on(promoteJob, ({ params, scheduler }) => scheduler.jobs.promote(params.job)),
  on(redriveJob, ({ params, body, scheduler }) => scheduler.jobs.redrive(params.job, body)),
  on(rerunJob, async ({ params, scheduler }) => enqueuedAnswer(await scheduler.jobs.rerun(params.job))),
  on(deleteJob, ({ params, scheduler }) => scheduler.jobs.delete(params.job)),
];

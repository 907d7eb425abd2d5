import { type Duration, type EnqueueOptions, isPawlError, type Job, type JobView, milliseconds, pawlError } from "pawl";
import {
  cancelJob,
  dropJob,
  enqueueJob,
  explainJob,
  getJob,
  jobHistory,
  jobLogs,
  listJobs,
  pauseJob,
  redriveJob,
  replayJob,
  resumeJob,
  retryJob,
  waitForJob,
} from "../contract/jobs.js";
import type { EnqueuedAnswer } from "../contract/jobs-answer.js";
import { type Call, isAllowedStill, on } from "../handler.js";

export function enqueuedAnswer({ id, task, enqueued, replaced }: Job): EnqueuedAnswer {
  return { id, task, enqueued, ...(replaced === undefined ? {} : { replaced }) };
}

/** ms */
const WAIT = 30_000;
const LONGEST_WAIT = 60_000;

/** What is no duration is for the library to refuse, by its name. */
function shortened(timeout: Duration): Duration {
  try {
    return Math.min(LONGEST_WAIT, milliseconds(timeout));
  } catch {
    return timeout;
  }
}

async function waited({ params, query: { timeout = WAIT }, scheduler, signal, principal, parts }: Call<typeof waitForJob>): Promise<JobView> {
  try {
    return await parts.waits.hold(principal, signal, (ended) => scheduler.jobs.wait(params.job, { timeout: shortened(timeout), signal: ended }));
  } catch (error) {
    if (isPawlError(error, "wait_timeout")) return scheduler.jobs.get(params.job);
    throw error;
  }
}

export const jobs = [
  on(enqueueJob, async ({ body: { task, input, ...options }, scheduler, requestId }) => {
    const request = requestId === undefined ? {} : { request: requestId };
    return enqueuedAnswer(await scheduler.enqueue(task, input, { ...request, ...(options as EnqueueOptions) }));
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
    const job = await waited(call);
    if (!(await isAllowedStill(arrivedAt, call))) throw pawlError("unauthenticated");
    return job;
  }),
  on(cancelJob, ({ params, body, scheduler }) => scheduler.jobs.cancel(params.job, body.reason)),
  on(pauseJob, ({ params, scheduler }) => scheduler.jobs.pause(params.job)),
  on(resumeJob, ({ params, scheduler }) => scheduler.jobs.resume(params.job)),
  on(retryJob, ({ params, scheduler }) => scheduler.jobs.retry(params.job)),
  on(redriveJob, ({ params, body, scheduler }) => scheduler.jobs.redrive(params.job, body)),
  on(replayJob, async ({ params, scheduler }) => enqueuedAnswer(await scheduler.jobs.replay(params.job))),
  on(dropJob, ({ params, scheduler }) => scheduler.jobs.drop(params.job)),
];

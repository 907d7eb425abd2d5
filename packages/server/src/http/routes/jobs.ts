import { type Duration, type EnqueueOptions, isPawlError, type Job, type JobView } from "pawl";
import { type JobChange, milliseconds, pawlError } from "pawl/service";
import type { EnqueuedAnswer } from "../contract/jobs/job-answer.js";
import {
  cancelJob,
  countJobs,
  deleteJob,
  enqueueJob,
  explainJob,
  getJob,
  jobHistory,
  jobLogs,
  listJobs,
  MAX_WAIT_MS,
  pauseJob,
  promoteJob,
  redriveJob,
  rerunJob,
  resumeJob,
} from "../contract/jobs/jobs.js";
import { filterAndPage, isStillAllowed, on, type RouteCall, StatusAnswer } from "../handler.js";

export function enqueuedAnswer({ id, task, enqueued, replaced }: Job): EnqueuedAnswer {
  return { id, task, enqueued, ...(replaced === undefined ? {} : { replaced }) };
}

/** ms that a request waits */
function waitOf(wait: Duration): number {
  try {
    return Math.min(MAX_WAIT_MS, milliseconds(wait));
  } catch (error) {
    throw isPawlError(error, "duration_invalid")
      ? pawlError("duration_invalid", { ...error.details, what: "wait", option: "wait", pointer: "query/wait" })
      : error;
  }
}

async function waitedJob({ params, query: { wait }, scheduler, signal, principal, deps }: RouteCall<typeof getJob>): Promise<JobView> {
  if (wait === undefined) return scheduler.jobs.get(params.job);
  const longest = waitOf(wait);
  try {
    return await deps.waits.keepOpen(principal, signal, (ended) => scheduler.jobs.wait(params.job, { wait: longest, signal: ended }));
  } catch (error) {
    if (isPawlError(error, "wait_timeout")) return scheduler.jobs.get(params.job);
    throw error;
  }
}

/** Room for the wait is taken before anything is stored. What ends the wait later is no reason to say that nothing was stored. */
async function enqueuedAndWaited(call: RouteCall<typeof enqueueJob>, wait: Duration): Promise<StatusAnswer<EnqueuedAnswer>> {
  const longest = waitOf(wait);
  const { deps, principal, signal, scheduler } = call;
  const arrivedAt = performance.now();
  return deps.waits.keepOpen(principal, signal, async (ended) => {
    const enqueued = enqueuedAnswer(await storedJob(call));
    try {
      const job = await scheduler.jobs.wait(enqueued.id, { wait: longest, signal: ended });
      if (await isStillAllowed(arrivedAt, call)) return new StatusAnswer(200, { ...enqueued, job });
    } catch {
      // Its time is over, or the service has no room for it any more: the job is stored all the same.
    }
    return new StatusAnswer(202, enqueued);
  });
}

function storedJob({ body: { task, input, ...options }, scheduler, idempotencyKey }: RouteCall<typeof enqueueJob>): Promise<Job> {
  const keyed = idempotencyKey === undefined ? {} : { idempotencyKey };
  return scheduler.enqueue(task, input, { ...keyed, ...(options as EnqueueOptions) });
}

/** From and to are equal where a worker holds the job: it was asked, and it is not done. */
function changeAnswer(change: JobChange): JobChange | StatusAnswer<JobChange> {
  return change.from === change.to ? new StatusAnswer(202, change) : change;
}

export const jobs = [
  on(enqueueJob, async (call) => {
    const { wait } = call.query;
    if (wait !== undefined) return enqueuedAndWaited(call, wait);
    const enqueued = enqueuedAnswer(await storedJob(call));
    return enqueued.enqueued === "existing" ? new StatusAnswer(200, enqueued) : enqueued;
  }),
  on(getJob, async (call) => {
    const arrivedAt = performance.now();
    const job = await waitedJob(call);
    if (!(await isStillAllowed(arrivedAt, call))) throw pawlError("unauthenticated");
    return job;
  }),
  on(listJobs, ({ query, scheduler }) => scheduler.jobs.list(...filterAndPage(query))),
  on(countJobs, async ({ query, scheduler }) => ({ count: await scheduler.jobs.count(query) })),
  on(jobHistory, ({ params, query, scheduler }) => scheduler.jobs.history(params.job, query)),
  on(jobLogs, ({ params, query, scheduler }) => scheduler.jobs.logs(params.job, query)),
  on(explainJob, ({ params, scheduler }) => scheduler.jobs.explain(params.job)),
  on(cancelJob, async ({ params, body, scheduler }) => changeAnswer(await scheduler.jobs.cancel(params.job, body.reason))),
  on(pauseJob, async ({ params, body, scheduler }) => changeAnswer(await scheduler.jobs.pause(params.job, body.reason))),
  on(resumeJob, async ({ params, body, scheduler }) => changeAnswer(await scheduler.jobs.resume(params.job, body.reason))),
  on(promoteJob, async ({ params, body, scheduler }) => changeAnswer(await scheduler.jobs.promote(params.job, body.reason))),
  on(redriveJob, async ({ params, body, scheduler }) => changeAnswer(await scheduler.jobs.redrive(params.job, body))),
  on(rerunJob, async ({ params, scheduler }) => enqueuedAnswer(await scheduler.jobs.rerun(params.job))),
  on(deleteJob, async ({ params, query, scheduler }) => {
    await scheduler.jobs.delete(params.job, query.reason);
  }),
];

import Type from "typebox";
import type { Policy } from "../policy.js";
import { type ProblemDetails, ProblemShape } from "../problem.js";
import { route } from "../route.js";
import { Anything, as, closedObject, Duration, JobId, list, openObject, optional, PAGE, REASON, TaskName, text } from "../schemas.js";
import { Change, Enqueued, EnqueuedAndWaited, type EnqueuedAnswer, Explained, History, Job, JobsPage, Logs } from "./job-answer.js";
import { ENQUEUE_OPTIONS, NewJob, type OptionsInJson } from "./job-body.js";
import { JOBS_FILTER } from "./job-filter.js";

const READ: Policy = { action: "jobs.read", scope: "tenant" };
const ENQUEUE: Policy = { action: "jobs.write", scope: "tenant" };
const CONTROL: Policy = { action: "jobs.control", scope: "tenant" };

export const MAX_JOBS_IN_BATCH = 1_000;
const MAX_BATCH_BYTES = 5 * 1_048_576;

export const oneJob = closedObject({ job: JobId });

/** ms, of a request that waits */
export const MAX_WAIT_MS = 60_000;
const Wait = as<number | string>({ ...Duration, description: "how long to wait until the job is finished: ms, or a text such as 10s; 60 s at most" });

export const enqueueJob = route({
  id: "jobs.enqueue",
  method: "POST",
  path: "/v1/jobs",
  summary: "Store one job",
  description:
    "With `wait` it answers once the job is finished, with the job, or when that time is over. Repeated with its Idempotency-Key or its " +
    "`idempotencyKey`, it waits for the same job.",
  policy: ENQUEUE,
  query: closedObject({ wait: optional(Wait) }),
  body: NewJob,
  once: "wait",
  status: 201,
  otherStatuses: {
    200: "Its unique key or idempotency key was known, and this is its job; or it was waited for, and `job` is finished: look at its `state`.",
    202: "It is stored and was waited for, and is not finished.",
  },
  answer: { means: "It is stored, and survives what the store survives.", body: EnqueuedAndWaited },
  example: { task: "email", input: { to: "ann@example.com" }, delay: "5m" },
});

/** In order: each a job, or what was wrong with it. */
export type BatchItem = EnqueuedAnswer | { readonly error: ProblemDetails };

export const enqueueBatch = route({
  id: "jobs.enqueueMany",
  method: "POST",
  path: "/v1/jobs/many",
  summary: "Store many jobs, with an answer for each",
  description:
    "`jobs` for jobs of any tasks, each with options of its own; or `task` and `inputs` for many of one task, which is the fastest, with options they " +
    "share. With `atomic` all are stored or none, and what is wrong with one is the error of the request; otherwise those that can be stored are. Only a " +
    "parent that does not exist is found too late for that: then the error is `dependency_unknown`, and its `stored` says how many were stored. It is " +
    "stored in one step, with its Idempotency-Key or its `idempotencyKey`: repeated, it is answered alike, also if the first answer was lost.",
  policy: ENQUEUE,
  body: closedObject({
    jobs: optional(Type.Array(NewJob, { minItems: 1, maxItems: MAX_JOBS_IN_BATCH })),
    task: optional(TaskName),
    inputs: optional(Type.Array(Anything, { minItems: 1, maxItems: MAX_JOBS_IN_BATCH })),
    options: optional(as<OptionsInJson>(closedObject(ENQUEUE_OPTIONS))),
    atomic: optional(Type.Boolean()),
    idempotencyKey: optional(text(256, "of the whole batch: repeating it, for a day, answers with its first jobs; in place of an Idempotency-Key")),
  }),
  once: "handler",
  status: 200,
  answer: {
    means: "An answer for each, in order.",
    body: openObject<{ repeated: boolean; results: readonly BatchItem[] }>({
      repeated: Type.Boolean({ description: "whether this is the answer of an earlier call with the same idempotency key" }),
      results: list(Type.Union([Enqueued, Type.Object({ error: ProblemShape })])),
    }),
  },
  limits: { body: MAX_BATCH_BYTES },
  example: { task: "email", inputs: [{ to: "ann@example.com" }, { to: "bob@example.com" }] },
});

export const getJob = route({
  id: "jobs.get",
  method: "GET",
  path: "/v1/jobs/{job}",
  summary: "A job as it stands",
  description:
    "With `wait` it answers as soon as the job is finished, however it ends, or as it then stands when that time is over. Look at `state`.",
  policy: READ,
  params: oneJob,
  query: closedObject({ wait: optional(Wait) }),
  status: 200,
  answer: { means: "The job.", body: Job },
});

export const listJobs = route({
  id: "jobs.list",
  method: "GET",
  path: "/v1/jobs",
  summary: "Jobs by filter, newest due time first",
  policy: READ,
  query: closedObject({ ...JOBS_FILTER, ...PAGE }),
  status: 200,
  answer: { means: "A page of jobs.", body: JobsPage },
});

export const countJobs = route({
  id: "jobs.count",
  method: "GET",
  path: "/v1/jobs/count",
  summary: "How many jobs there are of a filter",
  description:
    "By `state`, `queue` and `task` of all tenants they are counted all the time; anything finer is found by listing, which takes its time.",
  policy: READ,
  query: closedObject(JOBS_FILTER),
  status: 200,
  answer: { means: "Their number.", body: openObject<{ count: number }>({ count: Type.Integer() }) },
});

export const jobHistory = route({
  id: "jobs.history",
  method: "GET",
  path: "/v1/jobs/{job}/history",
  summary: "Its attempts, and what people did to it, oldest first",
  policy: READ,
  params: oneJob,
  query: closedObject(PAGE),
  status: 200,
  answer: { means: "The history.", body: History },
});

export const jobLogs = route({
  id: "jobs.logs",
  method: "GET",
  path: "/v1/jobs/{job}/logs",
  summary: "The lines its handler logged",
  policy: READ,
  params: oneJob,
  query: closedObject(PAGE),
  status: 200,
  answer: { means: "The lines, oldest first.", body: Logs },
});

export const explainJob = route({
  id: "jobs.explain",
  method: "GET",
  path: "/v1/jobs/{job}/explain",
  summary: "Why it is not running, and when it will",
  policy: READ,
  params: oneJob,
  status: 200,
  answer: { means: "What stands in its way, as data and in words.", body: Explained },
});

const verb = (name: string, summary: string) =>
  route({
    id: `jobs.${name}`,
    method: "POST",
    path: `/v1/jobs/{job}/${name}`,
    summary,
    policy: CONTROL,
    params: oneJob,
    status: 200,
    otherStatuses: { 202: "Its worker was asked to." },
    answer: { means: "It is done.", body: Change },
    body: closedObject(REASON),
    bodyOptional: true,
  });

export const cancelJob = verb("cancel", "Cancel it: at once if it waits, through its worker if it runs");
export const pauseJob = verb("pause", "Hold it back until it is resumed");
export const resumeJob = verb("resume", "Let a paused job go on");
export const promoteJob = verb("promote", "Run a delayed job now");
export const deleteJob = route({
  id: "jobs.delete",
  method: "DELETE",
  path: "/v1/jobs/{job}",
  summary: "Remove a finished job and its history",
  policy: CONTROL,
  params: oneJob,
  query: closedObject(REASON),
  status: 204,
  answer: { means: "It is gone." },
});
export const redriveJob = route({
  ...verb("redrive", "Bring a dead job back, with fresh counts"),
  body: closedObject({ input: optional(Anything), delay: optional(Duration), ...REASON }),
});
export const rerunJob = route({
  id: "jobs.rerun",
  method: "POST",
  path: "/v1/jobs/{job}/rerun",
  summary: "Enqueue a copy of a finished job",
  policy: CONTROL,
  params: oneJob,
  status: 201,
  answer: { means: "The new job.", body: Enqueued },
});

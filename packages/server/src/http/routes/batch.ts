import { type Batch, type BatchJob, type EnqueueOptions, pawlError } from "pawl";
import { type BatchItem, enqueueBatch } from "../contract/jobs.js";
import type { BodyOf } from "../contract/route.js";
import { on, Repeated } from "../handler.js";
import { problemOf } from "../problem.js";
import { enqueuedAnswer } from "./jobs.js";

export const batch = [
  on(enqueueBatch, async ({ body, scheduler, requestId }) => {
    const { atomic = false, request = requestId } = body;
    const { repeated, answers } = await scheduler.enqueueBatch(jobsOf(body), { atomic, ...(request === undefined ? {} : { request }) });
    const answer = { answers: answers.map(answerOf) };
    return repeated ? new Repeated(answer) : answer;
  }),
];

/** What they share is one object for all of them: the library resolves it once. */
function jobsOf({ jobs, task, inputs, options: shared }: BodyOf<typeof enqueueBatch>): readonly BatchJob[] {
  if ((jobs === undefined) === (inputs === undefined || task === undefined))
    throw pawlError("field_invalid", { field: "the body", reason: "must have either jobs, or task and inputs", pointer: "" });
  if (jobs === undefined) return (inputs as readonly unknown[]).map((input) => jobOf(task as string, input, shared));
  return jobs.map(({ task: own, input, ...given }) => jobOf(own, input, isEmpty(given) ? shared : { ...shared, ...given }));
}

function jobOf(task: string, input: unknown, options: object | undefined): BatchJob {
  return options === undefined || isEmpty(options) ? { task, input } : { task, input, options: options as EnqueueOptions };
}

function isEmpty(given: object): boolean {
  for (const _ in given) return false;
  return true;
}

function answerOf(answer: Batch["answers"][number]): BatchItem {
  return "error" in answer ? { error: problemOf(answer.error) } : enqueuedAnswer(answer);
}

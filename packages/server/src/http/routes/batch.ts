import { type Batch, type BatchJob, type EnqueueOptions, isPawlError, pawlError } from "pawl";
import { type BatchItem, enqueueBatch } from "../contract/jobs.js";
import type { BodyOf } from "../contract/route.js";
import { on, Repeated } from "../handler.js";
import { pointerOf } from "../pointer.js";
import { problemOf } from "../problem.js";
import { enqueuedAnswer } from "./jobs.js";

export const batch = [
  on(enqueueBatch, async ({ body, scheduler, requestId }) => {
    const { atomic = false, request = requestId } = body;
    const given = { atomic, ...(request === undefined ? {} : { request }) };
    const { repeated, answers } = await scheduler.enqueueBatch(jobsOf(body), given).catch((error: unknown) => {
      throw placed(error, body);
    });
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

/** One that is wrong where all or none are stored: by its place in the body. Answered by itself, it has the pointer it would have alone. */
function placed(error: unknown, { jobs }: BodyOf<typeof enqueueBatch>): unknown {
  if (!isPawlError(error) || typeof error.details.place !== "number") return error;
  const { code, details, cause } = error;
  const alone = pointerOf(error) ?? "";
  const inputs = code.startsWith("input_") ? `/inputs/${details.place}${details.path ?? ""}` : `/options${alone}`;
  return pawlError(code, { ...details, pointer: jobs === undefined ? inputs : `/jobs/${details.place}${alone}` }, cause);
}

function isEmpty(given: object): boolean {
  for (const _ in given) return false;
  return true;
}

function answerOf(answer: Batch["answers"][number]): BatchItem {
  return "error" in answer ? { error: problemOf(answer.error) } : enqueuedAnswer(answer);
}

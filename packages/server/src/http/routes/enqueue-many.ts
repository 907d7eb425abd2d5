import { type EnqueueAllResult, type EnqueueItem, isPawlError } from "pawl";
import { pawlError } from "pawl/service";
import { type BatchItem, enqueueBatch } from "../contract/jobs/jobs.js";
import type { BodyOf } from "../contract/route.js";
import { on, RepeatedAnswer } from "../handler.js";
import { problemOf } from "../problem.js";
import { pointerOf } from "../request/pointer.js";
import { enqueuedAnswer } from "./jobs.js";

export const batch = [
  on(enqueueBatch, async ({ body, scheduler, idempotencyKey: keyOfHeader }) => {
    const { atomic = false, idempotencyKey = keyOfHeader } = body;
    const enqueueOptions = { atomic, ...(idempotencyKey === undefined ? {} : { idempotencyKey }) };
    const { repeated, results } = await scheduler.enqueueAll(jobsOf(body), enqueueOptions).catch((error: unknown) => {
      throw withJobPointer(error, body);
    });
    const answer = { repeated, results: results.map(answerOf) };
    return repeated ? new RepeatedAnswer(answer) : answer;
  }),
];

function jobsOf({ jobs, task, inputs, options: shared }: BodyOf<typeof enqueueBatch>): readonly EnqueueItem[] {
  if ((jobs === undefined) === (inputs === undefined || task === undefined))
    throw pawlError("field_invalid", { field: "the body", reason: "must have either jobs, or task and inputs", pointer: "" });
  const items = jobs ?? (inputs as readonly unknown[]).map((input) => ({ task: task as string, input }));
  return (shared === undefined ? items : items.map((item) => ({ ...shared, ...item }))) as readonly EnqueueItem[];
}

/** One that is wrong where all or none are stored: by its place in the body. Answered by itself, it has the pointer it would have alone. */
function withJobPointer(error: unknown, { jobs }: BodyOf<typeof enqueueBatch>): unknown {
  if (!isPawlError(error) || typeof error.details.index !== "number") return error;
  const { code, details, cause } = error;
  const alone = pointerOf(error) ?? "";
  const inputs = code.startsWith("input_") ? `/inputs/${details.index}${details.path ?? ""}` : `/options${alone}`;
  return pawlError(code, { ...details, pointer: jobs === undefined ? inputs : `/jobs/${details.index}${alone}` }, cause);
}

function answerOf(answer: EnqueueAllResult["results"][number]): BatchItem {
  return "error" in answer ? { error: problemOf(answer.error) } : enqueuedAnswer(answer);
}

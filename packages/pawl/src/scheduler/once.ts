import { type PawlError, pawlError } from "../core/error.js";
import type { Enqueued, NewJob } from "../core/job.js";
import { checkName } from "../core/name.js";
import { sha256 } from "../runtime/digest.js";
import type { BatchRequest, EnqueuedBatch } from "../store/port-batches.js";

/** The request of a batch: the same id with other tasks or inputs is another one, and refused. */
export function batchRequest(tenant: string, id: string, jobs: readonly Pick<NewJob, "lane" | "input">[]): BatchRequest {
  return { tenant, id, digest: digestOf(jobs) };
}

export function checkRequest(id: string): string {
  return checkName("request id", id);
}

export function requestReused(request: string): PawlError {
  return pawlError("request_reused", { request });
}

/** Its answers as those of single jobs with a request id: what it created the first time exists. */
export function answersOf(batch: EnqueuedBatch, request: string): readonly Enqueued[] {
  if (batch.kind === "different") throw requestReused(request);
  if (batch.kind === "stored") return batch.answers;
  return batch.answers.map((answer) => (answer.kind === "created" ? { kind: "existing", id: answer.id } : answer));
}

/** Encoded JSON has no line breaks of its own. */
function digestOf(jobs: readonly Pick<NewJob, "lane" | "input">[]): string {
  const lines: string[] = [];
  let task: string | undefined;
  for (const { lane, input } of jobs) {
    if (lane.task !== task) {
      task = lane.task;
      lines.push("", task);
    }
    lines.push(input);
  }
  return sha256(lines.join("\n"));
}

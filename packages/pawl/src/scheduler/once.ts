import { DEFAULTS } from "../core/defaults.js";
import { isPawlError, type PawlError, pawlError } from "../core/error.js";
import type { Enqueued, JobRequest, NewJob } from "../core/job.js";
import { checkName } from "../core/name.js";
import { sha256 } from "../runtime/digest.js";
import type { BatchRequest, EnqueuedBatch } from "../store/port-batches.js";

/**
 * The request of one job: the same id with another task or input is refused. Its options do not count, so that a repeated
 * call may compute its delay anew. The tenant is not in the digest: request ids are a tenant's own.
 */
export function jobRequest(id: string, task: string, input: string): JobRequest {
  return { id, digest: sha256(`${task}\n${input}`) };
}

/** The request of a batch: the same id with other tasks or inputs is another one, and refused. */
export function batchRequest(tenant: string, id: string, jobs: readonly Pick<NewJob, "lane" | "input">[]): BatchRequest {
  return { tenant, id, digest: digestOf(tenant, jobs) };
}

export function checkRequest(id: string): string {
  return checkName("request id", id);
}

export function requestReused(request: string): PawlError {
  return pawlError("request_reused", { request });
}

/** The same inputs make the same chunks, so each chunk of a call has a request id of its own, by its number. */
export function chunkRequest(request: string, chunk: number): string {
  return `${request}/${chunk}`;
}

/** Of a chunk: what was reused is the request id of the whole call. */
export function ofWholeCall(error: unknown, request: string | undefined): unknown {
  return request !== undefined && isPawlError(error, "request_reused") && isChunkOf(error.details.request, request) ? requestReused(request) : error;
}

function isChunkOf(chunk: unknown, request: string): boolean {
  return typeof chunk === "string" && chunk.startsWith(`${request}/`);
}

/** Its answers as those of single jobs with a request id: what it created the first time exists. */
export function answersOf(batch: EnqueuedBatch, request: string): readonly Enqueued[] {
  if (batch.kind === "different") throw requestReused(request);
  if (batch.kind === "stored") return batch.answers;
  return batch.answers.map((answer) => (answer.kind === "created" ? { kind: "existing", id: answer.id } : answer));
}

/**
 * Encoded JSON has no line breaks of its own, and names have none at all. A job's tenant is written down only where it is not
 * the one that the request belongs to, so that the digests of most batches are the same as in older versions.
 */
function digestOf(owner: string, jobs: readonly Pick<NewJob, "lane" | "input">[]): string {
  const lines: string[] = [];
  let task: string | undefined;
  let tenant = owner === "" ? DEFAULTS.job.tenant : owner;
  for (const { lane, input } of jobs) {
    if (lane.tenant !== tenant) {
      tenant = lane.tenant;
      lines.push("", "", tenant);
    }
    if (lane.task !== task) {
      task = lane.task;
      lines.push("", task);
    }
    lines.push(input);
  }
  return sha256(lines.join("\n"));
}

import type { Enqueued, JobRequest, NewJob } from "../../core/jobs/job.js";
import { DEFAULTS } from "../../core/values/defaults.js";
import { isPawlError, type PawlError, pawlError } from "../../core/values/error.js";
import { checkName } from "../../core/values/name.js";
import { sha256 } from "../../runtime/io/digest.js";
import type { BatchRequest, EnqueuedBatch } from "../../store/port/enqueue/batches.js";

/**
 * The request of one job: the same id with another task or input is refused. Its options do not count, so that a repeated
 * call may compute its delay anew. The tenant is not in the digest: idempotency keys are a tenant's own.
 */
export function idempotencyKeyOfJob(id: string, task: string, input: string): JobRequest {
  return { id, digest: sha256(`${task}\n${input}`) };
}

/** The request of a batch: the same id with other tasks or inputs is another one, and refused. */
export function idempotencyKeyOfBatch(tenant: string, id: string, jobs: readonly Pick<NewJob, "lane" | "input">[]): BatchRequest {
  return { tenant, id, digest: digestOf(tenant, jobs) };
}

export function checkIdempotencyKey(id: string): string {
  return checkName("idempotency key", id);
}

export function idempotencyKeyReusedError(idempotencyKey: string): PawlError {
  return pawlError("idempotency_key_reused", { idempotencyKey });
}

/** The same inputs make the same chunks, so each chunk of a call has an idempotency key of its own, by its number. */
export function idempotencyKeyOfChunk(idempotencyKey: string, chunk: number): string {
  return `${idempotencyKey}/${chunk}`;
}

/** Of a chunk: what was reused is the idempotency key of the whole call. */
export function withKeyOfWholeCall(error: unknown, idempotencyKey: string | undefined): unknown {
  return idempotencyKey !== undefined && isPawlError(error, "idempotency_key_reused") && isChunkOf(error.details.idempotencyKey, idempotencyKey)
    ? idempotencyKeyReusedError(idempotencyKey)
    : error;
}

function isChunkOf(chunk: unknown, idempotencyKey: string): boolean {
  return typeof chunk === "string" && chunk.startsWith(`${idempotencyKey}/`);
}

/** Its answers as those of single jobs with an idempotency key: what it created the first time exists. */
export function answersOfBatch(batch: EnqueuedBatch, idempotencyKey: string): readonly Enqueued[] {
  if (batch.kind === "different") throw idempotencyKeyReusedError(idempotencyKey);
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

import type { AttemptRecord, JobRecord, LogLine } from "../../../core/jobs/job.js";
import type { WholeJob } from "../../port/jobs/jobs.js";
import { type PartRequest, withinBytes } from "../../port/jobs/pages.js";

/** What a page counts of a job: the texts that people put there. */
export function recordBytes({ input, output, failure, progress }: JobRecord): number {
  return bytes(input) + bytes(output) + failureBytes(failure) + bytes(progress);
}

export function attemptBytes({ output, failure, replacedInput }: AttemptRecord): number {
  return bytes(output ?? replacedInput) + failureBytes(failure);
}

export function lineBytes({ message, data }: LogLine): number {
  return bytes(message) + bytes(data);
}

/** Of a job, its input, and of each attempt and line. What the last attempt left is not counted twice. */
export function wholeBytes({ job, history, logs }: WholeJob): number {
  const sum = (sizes: readonly number[]) => sizes.reduce((all, size) => all + size, 0);
  return bytes(job.input) + bytes(job.progress) + sum(history.map(attemptBytes)) + sum(logs.map(lineBytes));
}

export function partOf<T>(items: readonly T[], part: PartRequest | undefined, bytesOf: (item: T) => number): readonly T[] {
  return part === undefined ? items : withinBytes(items.slice(part.after, part.after + part.limit), part.bytes, bytesOf);
}

function failureBytes(failure: JobRecord["failure"]): number {
  return failure === undefined ? 0 : bytes(JSON.stringify(failure));
}

function bytes(text: string | undefined): number {
  return text === undefined ? 0 : Buffer.byteLength(text);
}

import type { AttemptRecord, JobRecord, LogLine } from "../../core/job.js";
import { type PartRequest, withinBytes } from "../port-pages.js";

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

export function partOf<T>(items: readonly T[], part: PartRequest | undefined, bytesOf: (item: T) => number): readonly T[] {
  return part === undefined ? items : withinBytes(items.slice(part.after, part.after + part.limit), part.bytes, bytesOf);
}

function failureBytes(failure: JobRecord["failure"]): number {
  return failure === undefined ? 0 : bytes(JSON.stringify(failure));
}

function bytes(text: string | undefined): number {
  return text === undefined ? 0 : Buffer.byteLength(text);
}

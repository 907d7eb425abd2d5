import type { JobId } from "../../core/jobs/id.js";
import { BOUNDS } from "../../core/values/bounds.js";
import { pawlError } from "../../core/values/error.js";
import { encode } from "../../core/values/json.js";
import { cut, cutJson } from "../../core/values/truncate.js";

/** What one attempt has said so far; made with its first word. */
export class AttemptLog {
  /** not stored: there were too many, or too much in all */
  dropped = 0;
  /** not stored: the store did not take them */
  lost = 0;
  progress: { readonly text: string } | undefined;
  /** the last progress, for live views in this process */
  latest: unknown;
  progressAt = Number.NEGATIVE_INFINITY;
  /** its settlement was answered: from then on the store takes no line of it */
  settled = false;
  #lines = 0;
  #bytes = 0;

  /** Whether an attempt that has said this much may have another line stored. */
  admits({ message, data = "" }: StoredLogLine): boolean {
    const bytes = Buffer.byteLength(message) + Buffer.byteLength(data);
    if (this.#lines >= BOUNDS.logLines || this.#bytes + bytes > BOUNDS.logBytes) {
      this.dropped++;
      return false;
    }
    this.#lines++;
    this.#bytes += bytes;
    return true;
  }

  /** A last line that says what is missing, once. */
  missing(): string | undefined {
    const { dropped, lost } = this;
    this.dropped = 0;
    this.lost = 0;
    const reasons = [
      ...(dropped === 0 ? [] : [`${dropped} more lines were dropped`]),
      ...(lost === 0 ? [] : [`${lost} lines were lost: the store did not take them`]),
    ];
    return reasons.length === 0 ? undefined : `… ${reasons.join("; ")}`;
  }
}

/** A log line as it is stored. */
export interface StoredLogLine {
  readonly message: string;
  /** encoded JSON */
  readonly data?: string;
}

/** Whatever was logged, as what can be stored and is not too long. */
export function lineOf(message: unknown, data: unknown): StoredLogLine {
  const text = cut(textOf(message), BOUNDS.logMessage);
  return data === undefined ? { message: text } : { message: text, data: cutJson(jsonOf(data), BOUNDS.logData) };
}

/** A progress in stored form. It is for programs to read, which a shortened one would mislead: one that is too large is refused. */
export function encodeProgress(job: JobId, value: unknown): string {
  const text = jsonOf(value ?? null);
  const limit = BOUNDS.progress;
  // A character takes at most three bytes of UTF-8, so short texts need no counting.
  if (text.length * 3 <= limit) return text;
  const size = Buffer.byteLength(text);
  if (size > limit) throw pawlError("progress_too_large", { job, size, limit });
  return text;
}

function jsonOf(value: unknown): string {
  const encoded = encode(value);
  return encoded.ok ? encoded.text : JSON.stringify(`(not JSON: ${encoded.reason})`);
}

function textOf(message: unknown): string {
  try {
    return String(message);
  } catch {
    return "(unprintable)";
  }
}

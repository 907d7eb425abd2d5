import { BOUNDS } from "../values/bounds.js";
import { cut } from "../values/truncate.js";
import type { Fingerprint } from "./fingerprint.js";

/**
 * What went wrong inside an attempt, as recorded data: it is stored, listed, grouped and sent to other languages.
 * (What went wrong for a caller is a PawlError: see `error.ts`.)
 */
export interface Failure {
  /** Why in one word, for filters and rules: the kinds Pawl knows, or "error" for what user code threw. */
  readonly kind: FailureKind;
  /** the class of what was thrown */
  readonly name: string;
  readonly message: string;
  readonly stack?: string;
  readonly code?: string;
  readonly causes?: readonly { readonly name: string; readonly message: string; readonly stack?: string }[];
  /** told beside a message that is encrypted: without it deaths of one cause could not be known by that */
  readonly fingerprint?: Fingerprint;
}

export type FailureKind =
  | "error"
  | "timeout"
  | "deadline"
  | "expired"
  | "interrupted"
  | "poison"
  | "undecodable"
  | "payload_undecryptable"
  | "task_unknown"
  | "output_unencodable"
  | "dependency"
  | "crashed";

/** Thrown by handlers to say more than "it failed". */
export class NonRetryable extends Error {
  override readonly name: string = "NonRetryable";
}

/**
 * A job under limits takes its key with it: none of its key is let in before that time. Its first limit is meant, unless
 * `limit` names another one, or is false.
 */
export class RetryAfter extends Error {
  override readonly name: string = "RetryAfter";
  readonly limit: string | false | undefined;
  constructor(
    readonly delay: number | string,
    message = "asked to be retried later",
    options?: ErrorOptions & { readonly limit?: string | false },
  ) {
    super(message, options);
    this.limit = options?.limit;
  }
}

/** Not a failure: "not now". Spends no attempt. */
export class Snooze extends Error {
  override readonly name: string = "Snooze";
  constructor(
    readonly delay: number | string,
    message = "asked to be run later",
  ) {
    super(message);
  }
}

/**
 * Turns anything that can be thrown into a record, whatever it does when looked at and however long it is: nothing about it may
 * keep the failure itself from being recorded.
 */
export function failureOf(thrown: unknown, kind: FailureKind = "error"): Failure {
  const seen = describe(thrown);
  const causes: { name: string; message: string; stack?: string }[] = [];
  let cause = read(() => (thrown as { cause?: unknown }).cause);
  while (cause !== undefined && cause !== null && causes.length < BOUNDS.failureCauses) {
    causes.push(describe(cause));
    const current = cause;
    cause = read(() => (current as { cause?: unknown }).cause);
  }
  const code = read(() => (thrown as { code?: unknown }).code);
  return {
    kind,
    ...seen,
    ...(typeof code === "string" || typeof code === "number" ? { code: cut(String(code), BOUNDS.failureCode) } : {}),
    ...(causes.length > 0 ? { causes } : {}),
  };
}

export function failure(kind: FailureKind, message: string): Failure {
  return { kind, name: kind, message };
}

function describe(thrown: unknown): { name: string; message: string; stack?: string } {
  if (thrown === null || (typeof thrown !== "object" && typeof thrown !== "function")) {
    return { name: thrown === null ? "null" : typeof thrown, message: cut(text(thrown), BOUNDS.failureMessage) };
  }
  const name = read(() => (thrown as Error).name) ?? read(() => thrown.constructor.name);
  const message = read(() => (thrown as Error).message);
  const stack = read(() => (thrown as Error).stack);
  return {
    name: cut(typeof name === "string" && name !== "" ? name : "Error", BOUNDS.failureName),
    message: cut(typeof message === "string" ? message : text(thrown), BOUNDS.failureMessage),
    ...(typeof stack === "string" ? { stack: cut(stack, BOUNDS.failureStack) } : {}),
  };
}

function text(value: unknown): string {
  return read(() => String(value)) ?? "(unprintable)";
}

function read<T>(get: () => T): T | undefined {
  try {
    return get();
  } catch {
    return undefined;
  }
}

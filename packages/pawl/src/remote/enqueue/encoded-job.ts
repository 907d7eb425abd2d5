import { type ErrorDetails, isPawlError, pawlError } from "../../core/values/error.js";

/** A job on its way: JSON already, since inputs were read to be checked. */
export interface EncodedJob {
  readonly text: string;
  /** whether it is of its task and nothing else: such ones share what is said of them */
  readonly plain: boolean;
}

export function jobText(task: string, input: string, options: Readonly<Record<string, unknown>>): string {
  return `${JSON.stringify({ task, ...options }).slice(0, -1)},"input":${input}}`;
}

/** Many alike say what they share once; as soon as one differs, each says its own. */
export function bodyOf(
  task: string,
  shared: Readonly<Record<string, unknown>>,
  chunk: readonly EncodedJob[],
  idempotencyKey: string | undefined,
): string {
  const head = `"atomic":true${idempotencyKey === undefined ? "" : `,"idempotencyKey":${JSON.stringify(idempotencyKey)}`}`;
  if (chunk.every(({ plain }) => plain))
    return `{${head},"task":${JSON.stringify(task)},"options":${JSON.stringify(shared)},"inputs":[${chunk.map(({ text }) => text).join(",")}]}`;
  return `{${head},"jobs":[${chunk.map(({ plain, text }) => (plain ? jobText(task, text, shared) : text)).join(",")}]}`;
}

/** Whether jobs were stored that nothing was heard of is not known; to repeat them with the same idempotency key or unique key is safe. */
export function unknownIf(error: unknown, details: ErrorDetails): unknown {
  return isPawlError(error) && error.details.uncertain === true ? pawlError("enqueue_uncertain", details, error) : error;
}

import { type ErrorCode, isPawlError } from "../../core/values/error.js";

/** What a service says of contents that it does not take. Who may speak, and how often, is not among it: that can change. */
const REFUSAL_CODES: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "field_invalid",
  "field_unknown",
  "json_invalid",
  "body_too_large",
  "progress_too_large",
  "duration_invalid",
  "option_invalid",
  "name_invalid",
]);

/** Whether it is what was sent that is at fault, and not the moment: the same will be refused however often it is sent. */
export function isRefused(error: unknown): boolean {
  if (!isPawlError(error)) return false;
  return error.code === "store_failed" ? error.details.lasting === true : REFUSAL_CODES.has(error.code);
}

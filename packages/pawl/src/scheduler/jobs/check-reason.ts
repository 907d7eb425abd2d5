import { BOUNDS } from "../../core/values/bounds.js";
import { checkText, invalid, show } from "../../core/values/option.js";
import { cut } from "../../core/values/truncate.js";

/** Why somebody changed something, cut to a length that events and histories can hold. */
export function checkReason(reason: unknown): string {
  if (typeof reason !== "string" || reason.trim() === "") throw invalid("reason", `${show(reason)} says nothing`);
  return cut(checkText("reason", reason), BOUNDS.reason);
}

export function checkOptionalReason(reason: unknown): string | undefined {
  return reason === undefined ? undefined : checkReason(reason);
}

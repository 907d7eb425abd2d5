import { expect, test } from "vitest";
import { type ErrorCode, pawlError } from "../values/error.js";
import { bulkOutcomeOf } from "./bulk-outcome.js";

test.each([
  ["job_state_conflict", "skipped"],
  ["job_unknown", "skipped"],
  ["input_invalid", "failed"],
  ["forbidden", "failed"],
  ["internal", "failed"],
  ["store_unreachable", "fatal"],
  ["store_read_only", "fatal"],
  ["service_stopping", "fatal"],
  ["unauthenticated", "fatal"],
  ["too_many_requests", "fatal"],
  ["closed", "fatal"],
] satisfies readonly (readonly [ErrorCode, string])[])("%s of one job is %s for an operation on many", (code, fate) => {
  expect(bulkOutcomeOf(pawlError(code))).toBe(fate);
});

test("what is thrown by an edit of the caller's is the failure of its job", () => {
  expect(bulkOutcomeOf(new TypeError("no such field"))).toBe("failed");
});

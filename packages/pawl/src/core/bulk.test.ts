import { expect, test } from "vitest";
import { fateOf } from "./bulk.js";
import { type ErrorCode, pawlError } from "./error.js";

test.each([
  ["job_state", "skipped"],
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
  expect(fateOf(pawlError(code))).toBe(fate);
});

test("what is thrown by an edit of the caller's is the failure of its job", () => {
  expect(fateOf(new TypeError("no such field"))).toBe("failed");
});

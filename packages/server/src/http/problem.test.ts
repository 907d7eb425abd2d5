import { errorTable, pawlError } from "pawl/service";
import { expect, test } from "vitest";
import { problemOf } from "./problem.js";

test.each([pawlError("pepper_missing"), pawlError("encryption_missing"), pawlError("master_key_missing", { masterKeys: "a1b2c3" })])(
  "$code is a fault of the service: its caller hears what to do, and no details",
  (error) => {
    const problem = problemOf(error);
    expect(problem).toMatchObject({ status: 500, code: error.code, detail: expect.stringContaining(errorTable[error.code][1]) });
    expect(JSON.stringify(problem)).not.toContain("a1b2c3");
  },
);

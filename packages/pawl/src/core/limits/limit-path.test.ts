import { describe, expect, test } from "vitest";
import { checkLimitPaths, lostPaths } from "./limit-path.js";

const text = { type: "string" };
const user = { type: "object", properties: { id: text, name: text } };
const closedUser = { ...user, additionalProperties: false };
const limit = (key: string) => [{ key, concurrency: 1 }];
const lost = (key: string, schema: object) => lostPaths(limit(key), schema as never).map(({ reason, certain }) => [certain, reason]);

describe("the path of a limit", () => {
  test("is refused where the schema takes no such field, and the one that was meant is named", () => {
    const schema = { type: "object", properties: { user: closedUser } };
    expect(() => checkLimitPaths("mail", limit("user.idd"), schema)).toThrow(
      expect.objectContaining({
        code: "option_invalid",
        message: expect.stringContaining(
          'mail.limits[0].key is invalid: "user.idd" leads nowhere: the input\'s schema has no "idd" (did you mean id?) there',
        ),
      }),
    );
    expect(() => checkLimitPaths("mail", limit("user.id"), schema)).not.toThrow();
    expect(() => checkLimitPaths("mail", limit("x"), { additionalProperties: false, properties: {} })).toThrow(/"x" leads nowhere/);
  });

  test("of a cost is looked at like that of a key", () => {
    const limits = [{ key: "id", rate: { limit: 1, per: "1s" }, cost: "calls" }];
    expect(() => checkLimitPaths("mail", limits, closedUser)).toThrow(/mail\.limits\[0\]\.cost/);
  });

  test("is doubted, and not refused, where the schema has other fields and takes any", () => {
    expect(lost("idd", user)).toEqual([[false, '"idd" leads nowhere: the input\'s schema has no "idd" (did you mean id?) there']]);
    expect(lost("idd", { ...user, additionalProperties: true })).toHaveLength(1);
    expect(() => checkLimitPaths("mail", limit("idd"), user)).not.toThrow();
  });

  test.each([
    ["there is no schema of that level", "user.id", { properties: { user: {} } }],
    ["the schema names no fields", "id", { type: "object", properties: {} }],
    ["others have a schema too", "id", { properties: {}, additionalProperties: text }],
    ["fields are named by a pattern", "id", { properties: {}, additionalProperties: false, patternProperties: { "^i": text } }],
    ["it is one of several schemas", "id", { ...closedUser, anyOf: [user, {}] }],
    ["it is said elsewhere", "user.id", { properties: { user: { $ref: "#/$defs/user" } } }],
    ["it is an element of a list", "users.0.id", { properties: { users: { type: "array", items: closedUser } }, additionalProperties: false }],
  ])("is believed where %s", (_, key, schema) => {
    expect(lost(key, schema)).toEqual([]);
  });

  test("is nothing to a key that only code can compute", () => {
    expect(lostPaths([{ key: () => "a", concurrency: 1 }], closedUser)).toEqual([]);
    expect(lost("", closedUser)).toEqual([]);
    expect(lostPaths(limit("idd"), undefined)).toEqual([]);
  });
});

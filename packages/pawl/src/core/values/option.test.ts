import { describe, expect, test } from "vitest";
import { checkKeys, checkOneOf, nearest } from "./option.js";

const OPTIONS = ["queue", "priority", "retry", "timeout", "finishWithin", "startWithin", "maxCrashes", "atMostOnce", "dependsOn", "key"];

describe("the nearest option", () => {
  test.each([
    ["retires", "retry"],
    ["retries", "retry"],
    ["prioritty", "priority"],
    ["PRIORITY", "priority"],
    ["timout", "timeout"],
    ["dependson", "dependsOn"],
    ["depends_on", "dependsOn"],
    ["maxcrash", "maxCrashes"],
    ["kye", undefined],
    ["keys", "key"],
    ["colour", undefined],
    ["", undefined],
  ])("to %s is %s", (given, meant) => {
    expect(nearest(given, OPTIONS)).toBe(meant);
  });

  test("is looked for in a few steps, however long the name is", () => {
    expect(nearest("x".repeat(1_000_000), OPTIONS)).toBeUndefined();
  });

  test("is looked for among the first hundred, of which none is much longer than a word", () => {
    const names = Array.from({ length: 99 }, (_, at) => `n${at}`);
    expect(nearest("timout", [...names, "timeout"])).toBe("timeout");
    expect(nearest("timout", [...names, "n99", "timeout"])).toBeUndefined();
    expect(nearest("x".repeat(64), ["x".repeat(129)])).toBeUndefined();
  });
});

describe("an error about an option", () => {
  test("names the option, the one that was meant, and all there are", () => {
    expect(() => checkKeys({ timout: 1 }, new Set(OPTIONS), "queues.mail.")).toThrow(
      /option queues\.mail\.timout is invalid: there is no such option \(did you mean timeout\?\); there are queue, priority/,
    );
  });

  test("names no option where none is near", () => {
    expect(() => checkKeys({ colour: 1 }, new Set(["key"]))).toThrow("there is no such option; there are key.");
  });

  test("names the choice that was meant", () => {
    expect(() => checkOneOf("onDependencyDeath", "dye", ["die", "run", "wait"])).toThrow('"dye" (did you mean die?) is none of die, run, wait');
  });
});

import { describe, expect, test } from "vitest";
import { z } from "zod";
import { retryRules } from "../../core/jobs/retry.js";
import { type AnyTask, task } from "../../core/jobs/task.js";
import type { ErrorCode } from "../../core/values/error.js";
import { bareScheduler } from "../../testing/scheduler.js";
import type { EnqueueOptions } from "../options.js";

const plain = task("plain", (_: unknown) => {});
const strict = task("strict", { input: z.object({ cart: z.object({ id: z.string() }) }) }, () => {});
const later = task("later", { input: z.string().refine(async (text) => text !== "no", "no is not an answer") }, () => {});

const circular: { self?: unknown } = {};
circular.self = circular;

/** what is enqueued → the code of the error, and what its text must say */
const cases: readonly [string, AnyTask | string, unknown, unknown, ErrorCode, RegExp][] = [
  ["an unknown task", "nobody", {}, {}, "task_unknown", /nobody.*open\(url, \{ tasks/],
  ["something that is no task", {} as AnyTask, {}, {}, "option_invalid", /task/],
  ["an input its schema refuses", strict, { cart: { id: 7 } }, {}, "input_invalid", /cart\.id: Invalid input: expected string/],
  ["an input an asynchronous schema refuses", later, "no", {}, "input_invalid", /no is not an answer/],
  ["no input where one is needed", strict, undefined, {}, "input_invalid", /expected object/],
  ["a circular input", plain, circular, {}, "input_unencodable", /circular/],
  ["a BigInt deep inside", plain, { a: [1n] }, {}, "input_unencodable", /BigInt/],
  ["a function", plain, () => {}, {}, "input_unencodable", /function/],
  ["a number that is none", plain, { a: Number.NaN }, {}, "input_unencodable", /NaN/],
  ["a NUL in a text", plain, { a: "x\u0000y" }, {}, "input_unencodable", /NUL/],
  ["half of a surrogate pair", plain, { a: "x\ud800y" }, {}, "input_unencodable", /surrogate/],
  ["an input over the limit", plain, "x".repeat(1_048_577), {}, "input_too_large", /1048579 bytes, over the limit of 1048576/],
  ["an input over the limit in bytes, not in characters", plain, "ß".repeat(600_000), {}, "input_too_large", /1200002 bytes/],
  ["an empty queue", plain, {}, { queue: "" }, "name_invalid", /queue/],
  ["a queue with a NUL", plain, {}, { queue: "a\u0000" }, "name_invalid", /queue/],
  ["a queue that is too long", plain, {}, { queue: "q".repeat(129) }, "name_invalid", /128/],
  ["an empty tenant", plain, {}, { tenant: " " }, "name_invalid", /tenant/],
  ["an empty key", plain, {}, { unique: "" }, "name_invalid", /key/],
  ["a key that is too long", plain, {}, { unique: "k".repeat(513) }, "name_invalid", /512/],
  ["a key with half of a surrogate pair", plain, {}, { unique: "\udc00" }, "name_invalid", /key/],
  ["a unique key that is no text", plain, {}, { unique: 7 }, "option_invalid", /7 is neither a key nor an object/],
  ["unique options whose key is no text", plain, {}, { unique: { key: 7 } }, "name_invalid", /key/],
  ["unique options without a key", plain, {}, { unique: { for: "1h" } }, "name_invalid", /key/],
  ["the key option of earlier versions", plain, {}, { key: "k" }, "option_invalid", /key.*write unique: "text"/],
  ["the throttle option of earlier versions", plain, {}, { throttle: { key: "k", per: 1 } }, "option_invalid", /write unique: { key, for: "1h" }/],
  ["an idempotency key that is empty", plain, {}, { idempotencyKey: "" }, "name_invalid", /idempotency/],
  ["a tag that is empty", plain, {}, { tags: [""] }, "name_invalid", /tag/],
  ["tags that are no array", plain, {}, { tags: "a" }, "option_invalid", /tags/],
  ["too many tags", plain, {}, { tags: Array.from({ length: 21 }, (_, i) => `t${i}`) }, "option_invalid", /21 are more than 20/],
  ["priority 11", plain, {}, { priority: 11 }, "option_invalid", /priority.*11/],
  ["priority -1", plain, {}, { priority: -1 }, "option_invalid", /priority/],
  ["priority 4.5", plain, {}, { priority: 4.5 }, "option_invalid", /priority/],
  ["a priority nobody knows", plain, {}, { priority: "toString" }, "option_invalid", /priority/],
  ["a negative delay", plain, {}, { delay: -1 }, "duration_invalid", /delay -1/],
  ["a delay of no known unit", plain, {}, { delay: "5 fortnights" }, "duration_invalid", /delay "5 fortnights"/],
  ["a delay that is NaN", plain, {}, { delay: Number.NaN }, "duration_invalid", /delay NaN/],
  ["a delay over a century", plain, {}, { delay: "36600d" }, "duration_invalid", /delay/],
  ["a delay that is null", plain, {}, { delay: null }, "duration_invalid", /delay "null"/],
  ["a timeout of nothing", plain, {}, { timeout: 0 }, "option_invalid", /timeout/],
  ["a deadline that is negative", plain, {}, { finishWithin: "-1s" }, "duration_invalid", /finishWithin/],
  ["an expiry of nothing", plain, {}, { startWithin: 0 }, "option_invalid", /startWithin/],
  ["a crash limit of 0", plain, {}, { maxCrashes: 0 }, "option_invalid", /maxCrashes/],
  ["a spread of three durations", plain, {}, { spread: [1, 2, 3] }, "option_invalid", /3 durations are not a pair/],
  ["a spread that ends before it begins", plain, {}, { spread: ["5m", "1m"] }, "option_invalid", /spread.*its end is before its beginning/],
  ["a spread whose end is no duration", plain, {}, { spread: [1, "soon"] }, "duration_invalid", /spread\[1\] "soon"/],
  ["a spread whose end is longer than a day", plain, {}, { spread: [1, "25h"] }, "option_invalid", /longer than a day/],
  ["an invalid date", plain, {}, { runAt: new Date(Number.NaN) }, "option_invalid", /runAt.*Date/],
  ["a text that is no date", plain, {}, { runAt: "tomorrow" }, "option_invalid", /runAt.*tomorrow/],
  ["a date far away", plain, {}, { runAt: new Date("2999-01-01") }, "option_invalid", /runAt.*after the year 2125/],
  ["a date that is an object", plain, {}, { runAt: {} }, "option_invalid", /runAt/],
  ["a delay and an instant", plain, {}, { delay: 1, runAt: 1 }, "option_invalid", /delay.*runAt/],
  ["a key and a unique rule", plain, {}, { key: "k", unique: { key: "k" } }, "option_invalid", /key.*unique/],
  ["a unique rule without a key", plain, {}, { unique: {} }, "name_invalid", /key/],
  ["a unique rule that is misspelt", plain, {}, { unique: { key: "k", onconflict: "replace" } }, "option_invalid", /unique\.onconflict/],
  ["a conflict policy nobody knows", plain, {}, { unique: { key: "k", onConflict: "fight" } }, "option_invalid", /onConflict/],
  ["a key held for a negative time", plain, {}, { unique: { key: "k", for: -5 } }, "duration_invalid", /unique\.for/],
  ["a negative number of retries", plain, {}, { retry: -1 }, "option_invalid", /retry/],
  ["a retry list with a wrong delay", plain, {}, { retry: ["1s", "soon"] }, "duration_invalid", /soon/],
  ["a retry function for one job", plain, {}, { retry: () => 1 }, "option_invalid", /retry.*task/],
  ["retry rules for one job", plain, {}, { retry: retryRules({}) }, "option_invalid", /retry/],
  ["a retry policy that is none", plain, {}, { retry: { kind: "hope" } }, "option_invalid", /retry/],
  ["a parent that is no id", plain, {}, { dependsOn: ["42"] }, "option_invalid", /dependsOn.*42/],
  ["too many parents", plain, {}, { dependsOn: manyIds(1_001) }, "option_invalid", /1001 jobs are more than 1000/],
  ["a parent that does not exist", plain, {}, { dependsOn: manyIds(1) }, "dependency_unknown", /of plain depends on/],
  ["a death policy without a parent", plain, {}, { onDependencyDeath: "run" }, "option_invalid", /onDependencyDeath.*dependsOn/],
  ["a death policy nobody knows", plain, {}, { dependsOn: manyIds(1), onDependencyDeath: "mourn" }, "option_invalid", /onDependencyDeath.*mourn/],
  ["a transaction that is none", plain, {}, { tx: {} }, "option_invalid", /tx.*query/],
  ["a misspelt option", plain, {}, { prioritty: 3 }, "option_invalid", /prioritty.*there are.*priority/],
  ["an option called like a property of objects", plain, {}, { constructor: 3 }, "option_invalid", /constructor/],
  ["options that are none", plain, {}, "fast", "option_invalid", /options/],
];

function manyIds(count: number): readonly string[] {
  return Array.from({ length: count }, (_, i) => `01890000-0000-7000-8000-${i.toString(16).padStart(12, "0")}`);
}

const tasks = [plain, strict, later];

describe("enqueue answers with a coded error, and stores nothing, for", () => {
  test.each(cases)("%s", async (_, given, input, options, code, says) => {
    const { scheduler, records } = bareScheduler({ tasks });
    const enqueued = scheduler.enqueue(given, input, options as EnqueueOptions);
    await expect(enqueued).rejects.toMatchObject({ name: "PawlError", code, message: expect.stringMatching(says) });
    expect(await records()).toEqual([]);
  });
});

describe("enqueueMany stores nothing of a batch in which one is bad:", () => {
  test("an input its schema refuses", async () => {
    const { scheduler, records } = bareScheduler({ tasks });
    const inputs = [{ cart: { id: "1" } }, { cart: { id: 2 } }];
    await expect(scheduler.enqueueMany(strict, inputs)).rejects.toMatchObject({ code: "input_invalid", details: { stored: 0 } });
    expect(await records()).toEqual([]);
  });

  test("a negative delay of its own", async () => {
    const { scheduler, records } = bareScheduler({ tasks });
    const enqueued = scheduler.enqueueMany(plain, [1, 2], { each: (input) => (input === 2 ? { delay: -1 } : undefined) });
    await expect(enqueued).rejects.toMatchObject({ code: "duration_invalid" });
    expect(await records()).toEqual([]);
  });

  test.each([{ unique: "k" }, { unique: { key: "k" } }, { debounce: { key: "k", wait: 1 } }])("%o, which all would share", async (options) => {
    const { scheduler } = bareScheduler({ tasks });
    await expect(scheduler.enqueueMany(plain, [1], options as object)).rejects.toMatchObject({
      code: "option_invalid",
      message: expect.stringMatching(/each/),
    });
  });

  test.each([
    ["what is no array", new Set([1])],
    ["a text", "abc"],
    ["nothing", undefined],
  ])("%s", async (_, inputs) => {
    const { scheduler } = bareScheduler({ tasks });
    await expect(scheduler.enqueueMany(plain, inputs as unknown as unknown[])).rejects.toMatchObject({ code: "option_invalid" });
  });

  test.each([
    ["a text", "abc"],
    ["a number", 7],
    ["nothing", undefined],
  ])("enqueueStream refuses %s", async (_, inputs) => {
    const { scheduler } = bareScheduler({ tasks });
    await expect(scheduler.enqueueStream(plain, inputs as unknown as unknown[])).rejects.toMatchObject({ code: "option_invalid" });
  });
});

describe("a process that registers", () => {
  test("no tasks may enqueue any by name", async () => {
    const { scheduler } = bareScheduler();
    expect(await scheduler.enqueue("anything", 1)).toMatchObject({ task: "anything", enqueued: "created" });
    await expect(scheduler.enqueue("", 1)).rejects.toMatchObject({ code: "name_invalid" });
  });

  test("an empty list of tasks knows none", async () => {
    await expect(bareScheduler({ tasks: [] }).scheduler.enqueue("anything", 1)).rejects.toMatchObject({ code: "task_unknown" });
  });

  test("tasks, and asks for any, may enqueue what others have", async () => {
    const { scheduler } = bareScheduler({ tasks, allowUnknownTasks: true });
    expect(await scheduler.enqueue("anything", 1)).toMatchObject({ task: "anything", enqueued: "created" });
    await expect(bareScheduler({ allowUnknownTasks: false }).scheduler.enqueue("anything", 1)).rejects.toMatchObject({ code: "task_unknown" });
  });

  test("two tasks of one name is refused", () => {
    expect(() => bareScheduler({ tasks: [plain, task("plain", () => {})] })).toThrow(expect.objectContaining({ code: "task_duplicate" }));
  });

  test.each([
    [{ retry: -1 }, "option_invalid"],
    [{ timeout: "soon" }, "duration_invalid"],
    [{ priority: 11 }, "option_invalid"],
    [{ maxCrashes: 0 }, "option_invalid"],
    [{ timout: 1 }, "option_invalid"],
  ])("a task with %o is refused at once", (options, code) => {
    expect(() => bareScheduler({ tasks: [task("t", options as object, () => {})] })).toThrow(expect.objectContaining({ code }));
  });

  test.each([
    [{ "": {} }, "name_invalid"],
    [{ mail: { retry: -1 } }, "option_invalid"],
    [{ mail: { queue: "other" } }, "option_invalid"],
    [{ mail: null }, "option_invalid"],
  ])("queues of %o are refused at once", (queues, code) => {
    expect(() => bareScheduler({ queueDefaults: queues as never })).toThrow(expect.objectContaining({ code }));
  });
});

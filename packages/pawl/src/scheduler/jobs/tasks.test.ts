import type { StandardSchemaV1 } from "@standard-schema/spec";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { task } from "../../core/jobs/task.js";
import type { JsonSchema } from "../../core/values/json-schema.js";
import { openTest } from "../../testing.js";

/** Knows one word: `{ "const": x }`. */
const compileSchema = (schema: JsonSchema): StandardSchemaV1 => {
  if (!("const" in schema)) throw new Error("no schema this test knows");
  return {
    "~standard": {
      version: 1,
      vendor: "test",
      validate: (value) => (value === schema.const ? { value } : { issues: [{ message: "is another", path: [] }] }),
    },
  };
};

const opened = () => openTest({ work: false, maintenance: false, compileSchema });

describe("tasks known by what was said of them", () => {
  test("their defaults hold for jobs that are enqueued by name, at once in this process", async () => {
    await using world = await opened();
    const { pawl } = world;
    expect((await pawl.jobs.get((await pawl.enqueue("letter")).id)).queue).toBe("default");
    await pawl.tasks.put("letter", { queue: "post", priority: "high", retry: 5 });
    expect(await pawl.jobs.get((await pawl.enqueue("letter")).id)).toMatchObject({ queue: "post", priority: 7 });
    expect(await pawl.tasks.get("letter")).toMatchObject({ task: "letter", registered: false, defaults: { queue: "post", retry: 5 } });
  });

  test("inputs are checked against their schema, enqueued, scheduled and redriven", async () => {
    await using world = await opened();
    const { pawl } = world;
    await pawl.tasks.put("letter", { inputSchema: { const: "right" } });
    const wrong = expect.objectContaining({ code: "input_invalid" });
    await expect(pawl.enqueue("letter", "wrong")).rejects.toThrow(wrong);
    await expect(pawl.enqueueMany("letter", ["right", "wrong"])).rejects.toThrow(wrong);
    await expect(pawl.schedules.put("s", "letter", { every: "1h", input: "wrong" })).rejects.toThrow(wrong);
    const job = await pawl.enqueue("letter", "right");
    await expect(job.redrive({ input: "wrong" })).rejects.toThrow(wrong);
    expect((await pawl.tasks.get("letter")).inputSchema).toEqual({ const: "right" });
  });

  test("code publishes the schema of its input where that can be written as JSON Schema", async () => {
    const tasks = [
      task("plain", { input: z.object({ n: z.number() }) }, () => {}),
      task("strange", { input: z.object({ at: z.date() }) }, () => {}),
      task("open", () => {}),
    ];
    await using world = await openTest({ tasks, work: false, maintenance: false });
    expect((await world.pawl.tasks.get("plain")).inputSchema).toMatchObject({ type: "object", required: ["n"] });
    expect((await world.pawl.tasks.get("strange")).inputSchema).toBeUndefined();
    expect((await world.pawl.tasks.get("open")).inputSchema).toBeUndefined();
  });

  test.each([
    ["a misspelt option", { retries: 3 }, "retries"],
    ["a wrong default", { timeout: 0 }, "timeout"],
    ["what is no schema", { inputSchema: { type: "string" } }, "inputSchema"],
    ["a schema that is no object", { inputSchema: true }, "inputSchema"],
    ["a schema that is too large", { inputSchema: { const: "x".repeat(70_000) } }, "inputSchema"],
  ])("%s is refused by name", async (_, definition, option) => {
    await using world = await opened();
    await expect(world.pawl.tasks.put("letter", definition as never)).rejects.toThrow(
      expect.objectContaining({ code: "option_invalid", details: expect.objectContaining({ option: expect.stringContaining(option) }) }),
    );
    expect((await world.pawl.tasks.get("letter")).defaults).toBeUndefined();
  });
});

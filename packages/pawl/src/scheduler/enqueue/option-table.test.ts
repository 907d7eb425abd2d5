import { describe, expect, test } from "vitest";
import { bareScheduler } from "../../testing/scheduler.js";
import { FILTER_ROWS } from "../jobs/filter-table.js";
import { OPTION_ROWS } from "./option-table.js";
import { readOptions } from "./read-options.js";

describe("the table of job options", () => {
  test.each(OPTION_ROWS.filter(([, { example }]) => example !== undefined))("has an example of %s that is read", (name, { example }) => {
    const parent = name === "onDependencyDeath" ? { dependsOn: ["0197a0c0-7d1e-7000-8000-000000000000"] } : {};
    const { options, extras, ...rest } = readOptions({ ...parent, [name]: example });
    expect(
      [options, extras, rest].flatMap((part) => Object.keys(part)),
      "it is put somewhere",
    ).not.toEqual([]);
  });

  test("has a view for what is stored with the job", async () => {
    const { scheduler } = bareScheduler();
    for (const [name, { example, stored, shownAs }] of OPTION_ROWS) {
      if (stored !== "job" || shownAs === undefined) continue;
      const job = await scheduler.enqueue("t", undefined, { [name]: example });
      expect((await job.get())[shownAs], name).toBeDefined();
    }
  });

  test("has one sentence each, and no flag twice", () => {
    const flags = OPTION_ROWS.flatMap(([, { flag }]) => (flag === undefined ? [] : [flag.split(" ")[0]]));
    expect(new Set(flags).size).toBe(flags.length);
    const sentences = OPTION_ROWS.map(([, { does }]) => does);
    expect(new Set(sentences).size, "no two options are explained with the same words").toBe(sentences.length);
  });
});

test("a filter has one sentence each, and no flag twice", () => {
  expect(new Set(FILTER_ROWS.map(([, { finds }]) => finds)).size).toBe(FILTER_ROWS.length);
  expect(new Set(FILTER_ROWS.map(([, { flag }]) => flag)).size).toBe(FILTER_ROWS.length);
});

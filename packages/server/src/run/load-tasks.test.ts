import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ConfigError, problemLine } from "../config/problem.js";
import { filesOf, folderOf, loadTaskFiles } from "./load-tasks.js";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "pawl-tasks-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function write(name: string, text = ""): void {
  mkdirSync(dirname(join(folder, name)), { recursive: true });
  writeFileSync(join(folder, name), text);
}

const found = (path: string) => filesOf(join(folder, path)).map((file) => relative(folder, file));
const task = (name: string) => `({ name: "${name}", options: {}, schema: undefined, handler() {} })`;

async function complaints(path: string): Promise<readonly string[]> {
  try {
    await loadTaskFiles([join(folder, path)], "--tasks");
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map(problemLine);
    throw error;
  }
  return [];
}

describe("task files", () => {
  test("are all modules of a folder, those of a pattern, or one", () => {
    for (const name of ["a.mjs", "b.ts", "b.test.ts", "b.d.ts", "c.json", "mail/d.js", "mail/deep/e.mjs", "node_modules/x.js"]) write(name);
    expect(found(".")).toEqual(["a.mjs", "b.ts", "mail/d.js", "mail/deep/e.mjs"]);
    expect(found("*.mjs")).toEqual(["a.mjs"]);
    expect(found("**/*.mjs")).toEqual(["a.mjs", "mail/deep/e.mjs"]);
    expect(found("ma*/*.js")).toEqual(["mail/d.js"]);
    expect(found("b.ts")).toEqual(["b.ts"]);
    expect(found("nowhere")).toEqual([]);
  });

  test("are watched where they are", () => {
    write("mail/d.js");
    expect(folderOf(join(folder, "mail"))).toBe(join(folder, "mail"));
    expect(folderOf(join(folder, "mail/d.js"))).toBe(join(folder, "mail"));
    expect(folderOf(join(folder, "mail/*.js"))).toBe(join(folder, "mail/"));
  });

  test("give what they export, once, also from lists: tasks and schedules", async () => {
    write("a.mjs", `export const one = ${task("one")}; export const all = [one, ${task("two")}]; export const other = 3;`);
    write("b.mjs", 'import { one } from "./a.mjs"; export const nightly = { name: "nightly", task: one, options: { cron: "0 3 * * *" } };');
    const { tasks, schedules } = await loadTaskFiles([folder], "--tasks");
    expect(tasks.map(({ name }) => name)).toEqual(["one", "two"]);
    expect(schedules.map(({ name }) => name)).toEqual(["nightly"]);
  });

  test("are refused with what is wrong: no module, no task, a name twice, code that does not load", async () => {
    expect(await complaints("nowhere")).toEqual([expect.stringMatching(/^--tasks: there is no module at .*nowhere; /)]);
    write("none/a.mjs", "export const x = 1");
    expect(await complaints("none")).toEqual([expect.stringMatching(/^--tasks: no module there exports a task; /)]);
    write("twice/a.mjs", `export const x = ${task("x")}; export const y = ${task("x")};`);
    expect(await complaints("twice")).toEqual(["--tasks: two tasks are called x; give each task its own name"]);
    write("broken/a.mjs", 'throw new Error("no database here")');
    expect(await complaints("broken")).toEqual([expect.stringMatching(/broken\/a\.mjs: it cannot be loaded: no database here; /)]);
  });
});

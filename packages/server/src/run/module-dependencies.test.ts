import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { moduleDependencies } from "./module-dependencies.js";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "pawl-led-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function found(roots: readonly string[], files: Readonly<Record<string, string>>): readonly string[] {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  const path = (name: string) => join(folder, name);
  return [...moduleDependencies(roots.map(path), Object.keys(files).map(path))].map((file) => relative(folder, file)).sort();
}

describe("what tasks are made of", () => {
  test("is what they are loaded from, and what that imports, however it is written", () => {
    const files = {
      "a.ts": 'import { b } from "./b.js"; const c = await import("#tasks/c"); export * from `./parts`',
      "b.ts": 'require("./deep/d.cjs")',
      "c.ts": "",
      "deep/d.cjs": "",
      "parts/index.ts": "",
      "other.ts": 'import "./unused.js"',
      "unused.ts": "",
    };
    expect(found(["a.ts"], files)).toEqual(["a.ts", "b.ts", "c.ts", "deep/d.cjs", "parts/index.ts"]);
  });

  test("is files that they read, by name", () => {
    const files = {
      "a.ts": 'readFileSync(join(here, "welcome.html")); import data from "./data.json"',
      "welcome.html": "",
      "data.json": "",
      "README.md": "",
    };
    expect(found(["a.ts"], files)).toEqual(["a.ts", "data.json", "welcome.html"]);
  });

  test("is no test of them, unless it is imported", () => {
    const files = { "a.ts": "", "a.test.ts": 'import "./a.js"', "b.ts": 'import "./shared.test.js"', "shared.test.ts": "", "a.snap": "" };
    expect(found(["a.ts", "b.ts"], files)).toEqual(["a.ts", "b.ts", "shared.test.ts"]);
  });

  test("is what is still to come: a file that cannot be read leads nowhere", () => {
    expect([...moduleDependencies([join(folder, "disconnect.ts")], [])]).toEqual([join(folder, "disconnect.ts")]);
  });
});

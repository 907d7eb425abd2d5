import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readMigrations } from "./migrate.js";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "pawl-migrations-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

function write(...stems: readonly string[]): URL {
  for (const stem of stems) {
    writeFileSync(join(folder, `${stem}.sql`), "select 1;\n");
    writeFileSync(join(folder, `${stem}.down.sql`), "select 1;\n");
  }
  return pathToFileURL(`${folder}/`);
}

test("migrations are read in the order of their numbers", () => {
  expect(readMigrations(write("0002_b", "0001_a")).map(({ name }) => name)).toEqual(["a", "b"]);
});

test("two migrations of one number are refused, as a build leaves them that forgot to take away a renamed one", () => {
  expect(() => readMigrations(write("0001_a", "0002_b", "0002_b_and_c"))).toThrow("two migrations have the number 2");
});

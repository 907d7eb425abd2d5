import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
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

test("a folder is one migration, of its files in the order of their names", () => {
  mkdirSync(join(folder, "0001_first"));
  for (const name of ["02-b", "01-a", "down"]) writeFileSync(join(folder, "0001_first", `${name}.sql`), `-- ${name}\n`);
  const [first, second] = readMigrations(write("0002_b"));
  expect(first).toMatchObject({ number: 1, name: "first", up: "-- 01-a\n\n-- 02-b\n", down: "-- down\n", oldest: 0 });
  expect(second).toMatchObject({ number: 2, name: "b", oldest: 1 });
});

test("two migrations of one number are refused, as a build leaves them that forgot to take away a renamed one", () => {
  expect(() => readMigrations(write("0001_a", "0002_b", "0002_b_and_c"))).toThrow("two migrations have the number 2");
});

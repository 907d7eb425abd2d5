import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { PRINTED_FILES, printed } from "../../../../../scripts/print-docs.js";

test.each(PRINTED_FILES)("%s says what the code says; if not, run npm run docs:states", (file) => {
  expect(readFileSync(new URL(`../../../../../${file}`, import.meta.url), "utf8")).toBe(printed(file));
});

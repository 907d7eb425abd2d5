import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { sample } from "./sample.js";
import { reportsIn, saveReport } from "./write.js";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "pawl-report-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

test("keeping a report writes its JSON and chart, and the page of all that are there", () => {
  saveReport(folder, sample());
  saveReport(folder, sample({ scenario: "enqueue" }));
  expect(readdirSync(folder).sort()).toEqual(["README.md", "drain.json", "drain.svg", "enqueue.json", "enqueue.svg", "summary.svg"]);
  const page = readFileSync(join(folder, "README.md"), "utf8");
  expect(page).toContain("## drain");
  expect(page).toContain("## enqueue");
});

test("a kept report says when and on what machine it was made", () => {
  const before = Date.now();
  saveReport(folder, sample());
  const [report] = reportsIn(folder);
  expect(report?.machine.cores).toBeGreaterThan(0);
  expect(report?.machine.fsyncMs).toBeGreaterThan(0);
  expect(Date.parse(report?.date ?? "")).toBeGreaterThanOrEqual(before);
  expect(report?.results).toEqual(sample().results);
});

test("a scenario run again takes the place of its older report", () => {
  saveReport(folder, sample({ ratio: 1 }));
  saveReport(folder, sample({ ratio: 2 }));
  expect(reportsIn(folder).map(({ ratio }) => ratio)).toEqual([2]);
});

test("a folder that does not exist holds no reports", () => {
  expect(reportsIn(join(folder, "nowhere"))).toEqual([]);
});

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const run = promisify(execFile);

/** With nothing but Pawl asked for, nothing is installed and no network is needed. */
async function bench(...args: string[]) {
  const { stdout } = await run(process.execPath, ["--import", "tsx", "bench/main.ts", ...args, "--only", "pawl", "--runs", "1", "--json"]);
  return JSON.parse(stdout.trimEnd().split("\n").at(-1) ?? "") as {
    scenario: string;
    results: { system: string; perSecond: number }[];
    ratio: number | null;
    parts: Record<string, number>;
  };
}

test("the benchmark drains jobs through the built package and ends with one line of JSON", { timeout: 120_000 }, async () => {
  const { scenario, results, ratio, parts } = await bench("drain", "--jobs", "500");
  expect(scenario).toBe("drain");
  expect(results).toHaveLength(1);
  expect(results[0]?.system).toBe("pawl");
  expect(results[0]?.perSecond).toBeGreaterThan(100);
  // There is nobody to compare it with.
  expect(ratio).toBeNull();
  expect(parts).toEqual({});
});

test("the benchmark refuses what it does not know, by name", async () => {
  await expect(bench("drian")).rejects.toThrow(/unknown: drian\. There are enqueue, drain, /);
});

import { readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { postOversized } from "../support/oversized-body.js";
import { serve } from "./service.js";

const MEGABYTE = 1_048_576;
const BODIES = 50;
/** over what a batch may have, which is the most that any route takes */
const SIZE = 16 * MEGABYTE;

/** By the kernel: what the process has, and the most it ever had since that was last forgotten. */
function memoryOf(pid: number): { readonly now: number; readonly peak: number } {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const of = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(status)?.[1]) / 1_024;
  return { now: of("VmRSS"), peak: of("VmHWM") };
}

/** A process that has been at work: what it needs for its first requests is not what bodies cost. */
async function warmed(url: string): Promise<void> {
  const send = () => fetch(`${url}/v1/jobs/many`, { method: "POST", headers: { "content-type": "application/json" }, body: BATCH });
  for (let round = 0; round < 40; round++) expect((await send()).status).toBe(200);
}
const BATCH = JSON.stringify({ task: "later", inputs: new Array(100).fill("x".repeat(1_000)), options: { delay: "1h" } });

// Memory is read in /proc, which Linux alone has.
const where = process.platform === "linux" ? test : test.skip;
where("S20: 50 oversized bodies at once, of told and untold length, take less than 25 MB of the service", { timeout: 120_000 }, async () => {
  await using service = serve("memory:");
  const url = await service.up();
  await warmed(url);
  // Forgets the peak so far.
  writeFileSync(`/proc/${service.pid}/clear_refs`, "5");
  const { now } = memoryOf(service.pid);
  const statuses = await Promise.all(Array.from({ length: BODIES }, (_, n) => postOversized(url, { bytes: SIZE, withLength: n % 2 === 0 })));
  expect(statuses.filter((status) => status !== 413 && status !== 0)).toEqual([]);
  expect(memoryOf(service.pid).peak - now).toBeLessThan(25);
  expect((await fetch(`${url}/livez`)).status).toBe(200);
});

/**
 * Many schedules due at once: how late their ticks are, and what a step costs.
 *
 *   node --import tsx bench/schedules.ts 50000            all at one instant, in their own zones
 *   node --import tsx bench/schedules.ts 100000 60s       the same, spread over a minute
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { open, schedule, task } from "../packages/pawl/src/index.js";

const count = Number(process.argv[2] ?? 50_000);
const spread = process.argv[3];
const zones = Intl.supportedValuesOf("timeZone");
const folder = mkdtempSync(join(tmpdir(), "pawl-bench-"));
const midnight = task("midnight", () => undefined);

// As much time as it takes to store them, and then the next minute but one.
const tickAt = Math.ceil((Date.now() + 60_000 + count * 2) / 60_000) * 60_000;
const schedules = Array.from({ length: count }, (_, n) => {
  const zone = zones[n % zones.length] as string;
  return schedule("nightly", midnight, {
    // The same instant everywhere, said in every zone's own words.
    cron: `${minuteIn(zone)} * * * *`,
    zone,
    tenant: `tenant ${n}`,
    start: tickAt,
    ...(spread === undefined ? {} : { spread }),
  });
});

const began = performance.now();
const pawl = await open(folder, { tasks: [midnight], schedules, maintenance: { pulse: "1s" } });
console.log(`stored ${count} schedules in ${((performance.now() - began) / 1000).toFixed(1)} s, due at ${new Date(tickAt).toISOString()}`);
const steps: { readonly schedules: number; readonly latest: number; readonly at: number }[] = [];
const durations: number[] = [];
pawl.on("schedules.ticked", ({ schedules: seen, latest }) => steps.push({ schedules: seen, latest, at: performance.now() }));
pawl.on("store.operation", ({ operation, duration }) => operation === "schedules.tick" && durations.push(duration));

const client = new pg.Client((await pawl.info()).url);
await client.connect();
for (let made = 0; made < count; ) {
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  made = (await client.query<{ n: number }>("select count(*)::int as n from pawl.tick")).rows[0]?.n ?? 0;
}
// Each as late as the latest of its step, against the time it was planned for.
const late = steps.flatMap(({ schedules: seen, latest }) => Array.from({ length: seen }, () => latest)).sort((a, b) => a - b);
const at = (share: number) => Math.round(late[Math.min(late.length - 1, Math.floor(late.length * share))] ?? 0);
console.log(`late by, ms: p50 ${at(0.5)}, p99 ${at(0.99)}, most ${at(1)}`);
const full = durations.filter((_, n) => (steps[n]?.schedules ?? 0) > 0);
const part = (from: number, to: number) => {
  const some = full.slice(Math.floor(full.length * from), Math.ceil(full.length * to)).sort((a, b) => a - b);
  return some[Math.floor(some.length / 2)]?.toFixed(1);
};
console.log(`${steps.length} steps; median ms of a step, first and last tenth: ${part(0, 0.1)} and ${part(0.9, 1)}`);
console.log(`from the first step to the last: ${(((steps.at(-1)?.at ?? 0) - (steps[0]?.at ?? 0)) / 1000).toFixed(2)} s`);
await client.end();
await pawl.close();
rmSync(folder, { recursive: true, force: true });

/** The minute that the clocks of a zone show then. */
function minuteIn(zone: string): number {
  return Number(new Intl.DateTimeFormat("en-US", { timeZone: zone, minute: "numeric" }).format(new Date(tickAt)));
}

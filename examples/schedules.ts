/**
 * Schedules: in code and at run time, previewed, triggered and backfilled, with an account of every tick.
 *
 *   node --import tsx examples/schedules.ts
 */
import { open, schedule, task } from "pawl";

const report = task<{ region: string }, string>("report", ({ region }) => `report of ${region}`);

const pawl = await open(process.argv[2] ?? "./data", {
  tasks: [report],
  // Part of the code: a deploy that changes nothing changes nothing, one that no longer has it marks it.
  schedules: [schedule("nightly", report, { cron: "30 2 * * *", timeZone: "America/New_York", input: { region: "us" } })],
});

// Where the clocks skip half past two, it ticks when they go on; the preview says so.
for (const { at, note } of await pawl.schedules.preview("nightly", { count: 3, from: "2027-03-13T00:00Z" }))
  console.log(`${at.toISOString()}${note === undefined ? "" : ` (${note})`}`);

// At run time, for as long as it is wanted.
console.log(`heartbeat: ${await pawl.schedules.put("heartbeat", report, { every: "1s", input: { region: "all" } })}`);
console.log(`again: ${await pawl.schedules.put("heartbeat", report, { every: "1s", input: { region: "all" } })}`);

await pawl.work();
const ticked = new Promise<void>((resolve) => {
  pawl.on("schedules.ticked", () => resolve());
});
await ticked;
const [tick] = (await pawl.schedules.ticks("heartbeat")).items;
if (tick !== undefined && "job" in tick) console.log(`heartbeat ${tick.kind}: ${await pawl.jobs.result(tick.job)}`);
await pawl.schedules.delete("heartbeat");

const now = await pawl.schedules.trigger("nightly", { input: { region: "eu" } });
console.log(`triggered: ${await now.result()}`);

// What a week of nights would be, before it is made up for.
const week = { from: "2026-01-05T00:00Z", to: "2026-01-11T23:59Z" };
const dry = await pawl.schedules.backfill("nightly", { ...week, dryRun: true });
console.log(`of ${dry.ticks} ticks, ${dry.missing.length} have no job`);
const { jobs } = await pawl.schedules.backfill("nightly", { ...week, pace: "10ms" });
console.log(`backfilled: ${jobs}, and again: ${(await pawl.schedules.backfill("nightly", week)).jobs}`);

await pawl.close();

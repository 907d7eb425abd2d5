import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { open, schedule, task } from "../../index.js";
import type { Store } from "../../store/port/index.js";
import { faultyStore, openTest, type TestOptions, type TestPawl } from "../../testing.js";
import type { ScheduleOptions } from "./schedule.js";
import type { Schedules } from "./schedules.js";

const MINUTE = 60_000;
const START = Date.UTC(2026, 2, 6, 12);
const report = task("report", { input: z.object({ day: z.string() }) }, ({ day }, { job }) => `${day} ${job}`);
const sweep = task("sweep", () => "swept");
const input = { day: "today" };

const opened: TestPawl[] = [];
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close();
});
async function test(options: TestOptions = {}): Promise<TestPawl> {
  const made = await openTest({ tasks: [report, sweep], start: START, ...options });
  opened.push(made);
  return made;
}

async function succeeded({ pawl }: TestPawl): Promise<number> {
  return (await pawl.counts()).succeeded;
}

describe("schedules", () => {
  it("run their jobs at their times", async () => {
    const t = await test();
    expect(await t.pawl.schedules.put("hourly", report, { cron: "0 * * * *", input })).toBe("created");
    await t.advance("59m");
    expect(await succeeded(t)).toBe(0);
    await t.advance("1m");
    expect(await succeeded(t)).toBe(1);
    await t.advance("3h");
    expect(await succeeded(t)).toBe(4);
    const [last] = (await t.pawl.schedules.ticks("hourly")).items;
    expect(last).toMatchObject({ kind: "fired", at: new Date(START + 240 * MINUTE), firedAt: new Date(START + 240 * MINUTE), merged: 0 });
    const { items: jobs } = await t.pawl.jobs.list();
    expect(jobs[0]?.tick).toEqual({ schedule: "hourly", at: START + 240 * MINUTE, way: "fired" });
  });

  it("of the code are stored when it is opened, and flagged when it has them no more", async () => {
    const t = await test({ schedules: [schedule("nightly", report, { cron: "0 3 * * *", timeZone: "Europe/Berlin", input })] });
    expect(await t.pawl.schedules.get("nightly")).toMatchObject({
      name: "nightly",
      tenant: "default",
      task: "report",
      queue: "default",
      app: "default",
      cron: "0 3 * * *",
      timeZone: "Europe/Berlin",
      overlap: "skip",
      next: new Date("2026-03-07T02:00:00Z"),
      revision: 1,
    });
    expect((await t.pawl.schedules.list({ undeclared: true })).items).toEqual([]);
  });

  it("take typed input, and refuse another", async () => {
    const { pawl } = await test();
    // @ts-expect-error a day is a text
    await expect(pawl.schedules.put("s", report, { every: "1h", input: { day: 1 } })).rejects.toMatchObject({ code: "input_invalid" });
    // @ts-expect-error it takes an input
    await expect(pawl.schedules.put("s", report, { every: "1h" })).rejects.toMatchObject({ code: "input_invalid" });
    await expect(pawl.schedules.get("s")).rejects.toMatchObject({ code: "schedule_unknown" });
  });

  it("that tick every second make up for what they missed, all of it, and are on time again", async () => {
    const t = await test();
    for (const [name, times] of Object.entries({ every: { every: "1s" }, cron: { cron: "* * * * * *" } } as const))
      await t.pawl.schedules.put(name, sweep, { ...times, missed: { policy: "all", window: "1h" }, overlap: "allow" });
    await t.advance("10s");
    for (const name of ["every", "cron"]) await t.pawl.schedules.pause(name);
    await t.advance("20s");
    for (const name of ["every", "cron"]) await t.pawl.schedules.resume(name);
    await t.advance("1m");
    for (const name of ["every", "cron"]) {
      const ticks = (await t.pawl.schedules.ticks(name, { limit: 200 })).items;
      expect(
        ticks.map(({ kind }) => kind).filter((kind) => kind !== "fired" && kind !== "late"),
        name,
      ).toEqual([]);
      expect(ticks).toHaveLength(90);
      expect(ticks[0], name).toMatchObject({ kind: "fired" });
    }
  });

  it("that tick more often than a tick may be late miss ticks too, and the newest stands for them", async () => {
    const t = await test();
    await t.pawl.schedules.put("latest", sweep, { every: "5s" });
    await t.pawl.schedules.put("skip", sweep, { every: "5s", missed: "skip" });
    await t.advance("5s");
    for (const name of ["latest", "skip"]) await t.pawl.schedules.pause(name);
    await t.advance("32s");
    for (const name of ["latest", "skip"]) await t.pawl.schedules.resume(name);
    await t.advance("1s");
    const latest = (await t.pawl.schedules.ticks("latest")).items;
    expect(latest[0]).toMatchObject({ kind: "fired", at: new Date(START + 35_000), merged: 5 });
    expect(latest[1]).toMatchObject({ kind: "merged", count: 5, into: new Date(START + 35_000) });
    const skip = (await t.pawl.schedules.ticks("skip")).items;
    expect(skip[0]).toMatchObject({ kind: "fired", at: new Date(START + 35_000) });
    expect(skip[1]).toMatchObject({ kind: "skipped", reason: "missed", count: 5 });
  });

  it("are changed in part, and keep the rest", async () => {
    const { pawl } = await test();
    await pawl.schedules.put("s", report, { cron: "0 9 * * *", timeZone: "Asia/Tokyo", overlap: "wait", input });
    expect(await pawl.schedules.update("s", { overlap: "allow" })).toBe("changed");
    expect(await pawl.schedules.update("s", { overlap: "allow" })).toBe("unchanged");
    expect(await pawl.schedules.get("s")).toMatchObject({ cron: "0 9 * * *", timeZone: "Asia/Tokyo", overlap: "allow", revision: 2 });
    await pawl.schedules.update("s", { every: "2h", input: { day: "monday" } });
    const { cron, every } = await pawl.schedules.get("s");
    expect([cron, every]).toEqual([undefined, 7_200_000]);
    expect((await (await pawl.schedules.trigger("s")).get()).input).toEqual({ day: "monday" });
    await expect(pawl.schedules.update("s", { input: 5 })).rejects.toMatchObject({ code: "input_invalid" });
  });

  it("can be paused, resumed, triggered and removed", async () => {
    const t = await test();
    await t.pawl.schedules.put("s", sweep, { every: "1m" });
    await t.pawl.schedules.pause("s");
    expect((await t.pawl.schedules.get("s")).pausedSince).toEqual(new Date(START));
    await t.advance("10m");
    expect(await succeeded(t)).toBe(0);
    expect(await (await t.pawl.schedules.trigger("s")).result()).toBe("swept");
    await t.pawl.schedules.resume("s");
    await t.advance("1s");
    expect(await succeeded(t), "the latest of those missed").toBe(2);
    await t.pawl.schedules.delete("s");
    await t.advance("10m");
    expect(await succeeded(t)).toBe(2);
    await expect(t.pawl.schedules.delete("s")).rejects.toMatchObject({ code: "schedule_unknown" });
  });

  it("are backfilled: dry, then paced, and never twice", async () => {
    const t = await test();
    await t.pawl.schedules.put("s", sweep, { every: "1m" });
    await t.advance("2m");
    const range = { from: new Date(START - 3 * MINUTE), to: new Date(START + 2 * MINUTE) };
    const missing = [-3, -2, -1, 0].map((n) => new Date(START + n * MINUTE));
    expect(await t.pawl.schedules.backfill("s", { ...range, dryRun: true })).toEqual({ ticks: 6, fired: 2, missing, jobs: 0 });
    expect(await t.pawl.schedules.backfill("s", { ...range, pace: "10s" })).toMatchObject({ jobs: 4 });
    await t.advance("5s");
    expect(await succeeded(t)).toBe(3);
    await t.advance("30s");
    expect(await succeeded(t)).toBe(6);
    expect(await t.pawl.schedules.backfill("s", range)).toEqual({ ticks: 6, fired: 6, missing: [], jobs: 0 });
    await expect(t.pawl.schedules.backfill("s", { from: 0, to: START })).rejects.toMatchObject({ code: "option_invalid" });
    await expect(t.pawl.schedules.backfill("s", { ...range, to: START + 100 * MINUTE })).rejects.toMatchObject({ code: "option_invalid" });
  });

  it("show their next ticks, with what the clocks do to them", async () => {
    const { pawl } = await test();
    await pawl.schedules.put("s", sweep, { cron: "30 2 * * *", timeZone: "America/New_York", stagger: "10m" });
    const [first, second, third] = await pawl.schedules.preview("s", { count: 3 });
    expect(first?.at).toEqual(new Date("2026-03-07T07:30:00Z"));
    expect(second).toMatchObject({ at: new Date("2026-03-08T07:00:00Z"), note: "moved out of a gap" });
    expect(third?.at).toEqual(new Date("2026-03-09T06:30:00Z"));
    const share = (first?.firesAt.getTime() ?? 0) - (first?.at.getTime() ?? 0);
    expect(share).toBeGreaterThan(0);
    expect((second?.firesAt.getTime() ?? 0) - (second?.at.getTime() ?? 0)).toBe(share);
    expect(await pawl.schedules.preview("s", { count: 1, from: "2026-11-01T00:00Z" })).toMatchObject([{ at: new Date("2026-11-01T07:30:00Z") }]);
  });

  it("belong to a tenant, and others neither see nor change them", async () => {
    const { pawl } = await test();
    const acme = pawl.forTenant("acme");
    await acme.schedules.put("s", sweep, { every: "1h" });
    await expect(pawl.schedules.get("s")).rejects.toMatchObject({ code: "schedule_unknown" });
    await expect(pawl.forTenant("umbrella").schedules.pause("s")).rejects.toMatchObject({ code: "schedule_unknown" });
    await expect(pawl.forTenant("umbrella").schedules.get({ name: "s", tenant: "acme" })).rejects.toMatchObject({ code: "option_invalid" });
    expect(await pawl.schedules.get({ name: "s", tenant: "acme" })).toMatchObject({ tenant: "acme" });
    const job = await acme.schedules.trigger("s");
    expect((await job.get()).tenant).toBe("acme");
    expect((await pawl.schedules.list({}, { limit: 1 })).items).toHaveLength(1);
    expect((await pawl.forTenant("umbrella").schedules.list()).items).toEqual([]);
  });

  it("fire though everything stood still over their time (D6)", async () => {
    const t = await test();
    await t.pawl.schedules.put("s", sweep, { cron: "1 12 * * *" });
    t.clock.leap(90_000);
    await t.idle();
    expect((await t.pawl.schedules.ticks("s")).items).toMatchObject([
      { kind: "fired", at: new Date(START + MINUTE), firedAt: new Date(START + 90_000) },
    ]);
    expect(await succeeded(t)).toBe(1);
  });

  it("tell their handlers which tick they are for", async () => {
    const ticks: unknown[] = [];
    const noting = task("noting", (_, ctx) => void ticks.push(ctx.tick));
    const t = await test({ tasks: [noting], schedules: [schedule("s", noting, { every: "1h" })] });
    await t.pawl.enqueue(noting);
    await t.advance("1h");
    expect(ticks).toEqual([undefined, { schedule: "s", at: START + 60 * MINUTE, way: "fired" }]);
  });

  it("make one job per tick though answers of the store are lost", async () => {
    let lost = 0;
    const around = (store: Store) =>
      faultyStore(store, (operation, earlier) => {
        if (operation !== "duties.tick" || earlier % 2 === 1) return undefined;
        lost += 1;
        return { kind: "lose" };
      });
    const t = await test({ wrapStore: around });
    await t.pawl.schedules.put("s", sweep, { every: "1m", overlap: "allow" });
    await t.advance("10m");
    await t.advance("30s");
    expect(lost).toBeGreaterThan(3);
    const ticks = (await t.pawl.schedules.ticks("s")).items;
    expect(ticks.map((tick) => ("at" in tick ? tick.at.getTime() - START : tick)).reverse()).toEqual(
      Array.from({ length: 10 }, (_, n) => (n + 1) * MINUTE),
    );
    expect(await succeeded(t)).toBe(10);
  });

  it("keep only the last of their jobs, by and by", async () => {
    const t = await test({ maintenance: { pruneInterval: "1h" } });
    await t.pawl.schedules.put("s", sweep, { every: "10m", keep: { succeeded: 2 } });
    await t.pawl.enqueue(sweep);
    await t.advance("3h");
    const { items: jobs } = await t.pawl.jobs.list({ state: "succeeded" }, { limit: 100 });
    const ticks = jobs.flatMap(({ tick }) => tick ?? []);
    expect(jobs.length - ticks.length, "others stay").toBe(1);
    expect(ticks.length).toBeGreaterThanOrEqual(2);
    expect(ticks.length, "those of an hour, and two").toBeLessThanOrEqual(8);
    expect((await t.pawl.schedules.ticks("s")).items, "what became of the ticks is still known").toHaveLength(18);
  });

  it("tell of what they did", async () => {
    const t = await test();
    const heard: unknown[] = [];
    t.pawl.on("schedules.ticked", (event) => heard.push(event));
    await t.pawl.schedules.put("s", sweep, { every: "1m" });
    await t.advance("1m");
    expect(heard).toEqual([{ schedules: 1, jobs: 1, lateness: 0 }]);
  });

  const BAD: readonly (readonly [what: string, options: ScheduleOptions, code: string])[] = [
    ["no rule", {}, "option_invalid"],
    ["two rules", { cron: "* * * * *", every: "1h" }, "option_invalid"],
    ["an impossible date", { cron: "0 0 30 2 *" }, "schedule_never_ticks"],
    ["a malformed expression", { cron: "every day" }, "cron_invalid"],
    ["an expression that is none", { cron: 5 as unknown as string }, "cron_invalid"],
    ["a hostile expression", { cron: `${"*,".repeat(10_000)}* * * * *` }, "cron_invalid"],
    ["a zone that does not exist", { cron: "0 0 * * *", timeZone: "Mars/Olympus" }, "time_zone_unknown"],
    ["a zone that is none", { every: "1h", timeZone: 5 as unknown as string }, "time_zone_unknown"],
    ["an end before the start", { every: "1h", start: "2027-01-01", end: "2026-01-01" }, "option_invalid"],
    ["no tick between start and end", { cron: "0 0 1 1 *", start: "2026-02-01", end: "2026-03-01" }, "schedule_never_ticks"],
    ["a single time after the end", { at: "2027-01-01", end: "2026-01-01" }, "schedule_never_ticks"],
    ["an interval of nothing", { every: 0 }, "option_invalid"],
    ["an interval too short", { every: "10ms" }, "option_invalid"],
    ["an interval that is none", { every: "often" }, "duration_invalid"],
    ["an unknown policy", { every: "1h", overlap: "perhaps" as "skip" }, "option_invalid"],
    ["all missed ticks without a window", { every: "1h", missed: "all" }, "option_invalid"],
    ["a cap of none", { every: "1h", missed: { policy: "all", window: "1h", max: 0 } }, "option_invalid"],
    ["an unknown option", { evry: "1h" } as ScheduleOptions, "option_invalid"],
    ["an option of jobs that ticks decide", { every: "1h", job: { delay: "1h" } as object }, "option_invalid"],
    ["a spread that is none", { every: "1h", stagger: -1 }, "duration_invalid"],
    ["keeping less than nothing", { every: "1h", keep: { dead: -1 } }, "option_invalid"],
    ["an unknown way through a gap", { cron: "0 0 * * *", dst: { gap: "jump" as "skip" } }, "option_invalid"],
  ];
  it.each(BAD)("%s is refused, and nothing is stored", async (_, options, code) => {
    const { pawl } = await test({ work: false });
    await expect(pawl.schedules.put("s", sweep, options)).rejects.toMatchObject({ code });
    await expect(
      open("memory:", { tasks: [sweep], schedules: [schedule("fine", sweep, { every: "1h" }), schedule("s", sweep, options)] }),
    ).rejects.toMatchObject({
      code,
    });
    expect((await pawl.schedules.list()).items).toEqual([]);
  });

  const BAD_CALLS: readonly (readonly [what: string, call: (schedules: Schedules) => Promise<unknown>, code: string])[] = [
    ["a backfill whose end is before its begin", (s) => s.backfill("s", { from: START, to: START - 1 }), "option_invalid"],
    ["a backfill from no time at all", (s) => s.backfill("s", { from: "then", to: START }), "option_invalid"],
    ["a backfill at a negative pace", (s) => s.backfill("s", { from: START, to: START, pace: -1 }), "duration_invalid"],
    ["a backfill with a misspelt option", (s) => s.backfill("s", { from: START, to: START, dryrun: true } as never), "option_invalid"],
    ["a preview of nothing", (s) => s.preview("s", { count: 0 }), "option_invalid"],
    ["a preview of too much", (s) => s.preview("s", { count: 1_001 }), "option_invalid"],
    ["a trigger with a misspelt option", (s) => s.trigger("s", { inptu: 1 } as never), "option_invalid"],
    ["a page that is too long", (s) => s.ticks("s", { limit: 1_001 }), "option_invalid"],
    ["a preview with a misspelt option", (s) => s.preview("s", { cuont: 1 } as never), "option_invalid"],
    ["ticks from a place that no page ended with", (s) => s.ticks("s", { cursor: "yesterday" }), "option_invalid"],
    ["a filter that is none", (s) => s.list({ paused: "yes" as never }), "option_invalid"],
    ["a change of its task", (s) => s.update("s", { task: "other" } as never), "option_invalid"],
    ["a change to a date that never comes", (s) => s.update("s", { cron: "0 0 30 2 *" }), "schedule_never_ticks"],
    ["a change to an end before its start", (s) => s.update("s", { start: "2027-01-01", end: "2026-01-01" }), "option_invalid"],
  ];
  it.each(BAD_CALLS)("%s is refused, and the schedule stays as it is", async (_, call, code) => {
    const { pawl } = await test({ work: false });
    await pawl.schedules.put("s", sweep, { every: "1h" });
    const before = await pawl.schedules.get("s");
    await expect(call(pawl.schedules)).rejects.toMatchObject({ code });
    expect(await pawl.schedules.get("s")).toEqual(before);
    expect((await pawl.schedules.ticks("s")).items).toEqual([]);
  });

  it("of an unknown task, or of two of one name, are refused", async () => {
    const { pawl } = await test({ work: false });
    await expect(pawl.schedules.put("s", "nothing", { every: "1h" })).rejects.toMatchObject({ code: "task_unknown" });
    const twice = [schedule("s", sweep, { every: "1h" }), schedule("s", sweep, { every: "2h" })];
    await expect(open("memory:", { tasks: [sweep], schedules: twice })).rejects.toMatchObject({ code: "option_invalid" });
    expect(() => schedule("", sweep, { every: "1h" })).toThrow(expect.objectContaining({ code: "name_invalid" }));
  });
});

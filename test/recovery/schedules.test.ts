import { describe, expect, it } from "vitest";
import { schedule } from "../../packages/pawl/src/index.js";
import { eventually } from "../support/eventually.js";
import { freshFixture } from "../support/fixtures/fresh-fixture.js";
import { type ProcessFixture, STEADY_LEASES } from "../support/fixtures/process-fixture.js";
import { fakeTime } from "../support/processes/faketime.js";
import { describeOn } from "../support/servers/servers.js";

/** Every tick of these is made up for, however long nobody was there to see it. */
const EVERY = { overlap: "allow", missed: { policy: "all", window: "1h", max: 1_000, pace: 0 } } as const;
const fake = fakeTime();
const NAMES = Array.from({ length: 20 }, (_, n) => `s${n}`);

interface Account {
  readonly name: string;
  readonly ticks: number;
  readonly jobs: number;
  readonly distinct: number;
  readonly seconds: number;
}

/** What each schedule has to show: its ticks, the jobs that say they are for one of them, and the time between the first and the last. */
function accounts(fixture: ProcessFixture): Promise<readonly Account[]> {
  return fixture.rows<Account>(`
    select s.name, count(*)::int as ticks, (extract(epoch from max(t.at) - min(t.at)) + 1)::int as seconds,
      (select count(*)::int from pawl.any_job j where j.options->'tick'->>'schedule' = s.name) as jobs,
      (select count(distinct j.options->'tick'->>'at')::int from pawl.any_job j where j.options->'tick'->>'schedule' = s.name) as distinct
    from pawl.schedule s join pawl.tick t on t.schedule = s.id group by s.id, s.name order by s.name`);
}

function expectOneJobPerTick(found: readonly Account[]): void {
  expect(found).toHaveLength(NAMES.length);
  for (const { name, ticks, jobs, distinct, seconds } of found)
    expect({ name, jobs, distinct, seconds }, "one job per tick, and none left out").toEqual({ name, jobs: ticks, distinct: ticks, seconds: ticks });
}

describeOn("embedded18", () => {
  describe("schedules", () => {
    it("make exactly one job per tick while the processes that see to them are killed with -9, one after the other, at any moment (D2)", async () => {
      await using fixture = await freshFixture();
      for (const name of NAMES) await fixture.pawl.schedules.put(name, "quick", { every: "1s", ...EVERY });
      const made = () => fixture.one<number>("select count(*)::int from pawl.tick");
      let holders = await Promise.all([fixture.worker(STEADY_LEASES.work, STEADY_LEASES.open), fixture.spawn(undefined, STEADY_LEASES.open).ready()]);
      for (let round = 0; round < 6; round++) {
        const before = await made();
        const [victim, heir] = holders;
        const next = fixture.spawn(round % 2 === 0 ? undefined : STEADY_LEASES.work, STEADY_LEASES.open);
        // Just when a tick is being seen to: some of its schedules have their job, the others not yet.
        await eventually("ticks go on", async () => (await made()) > before);
        await victim?.kill();
        holders = [heir as (typeof holders)[number], await next.ready()];
      }
      const before = await made();
      await eventually("they go on without the dead", async () => (await made()) >= before + 3 * NAMES.length);
      for (const name of NAMES) await fixture.pawl.schedules.pause(name);
      expectOneJobPerTick(await accounts(fixture));
    }, 120_000);

    it("make up for the time in which nobody was there, once, with many who begin at the same moment", async () => {
      await using fixture = await freshFixture();
      for (const name of NAMES) await fixture.pawl.schedules.put(name, "quick", { every: "1s", ...EVERY });
      const first = await fixture.spawn(undefined, STEADY_LEASES.open).ready();
      await eventually("the first ticks are there", async () => (await accounts(fixture)).length === NAMES.length);
      await first.kill();
      const started = await fixture.one<number>("select extract(epoch from now())::float8");
      await eventually("four seconds have passed", async () => (await fixture.one<number>("select extract(epoch from now())::float8")) > started + 4);
      const many = Array.from({ length: 3 }, () => fixture.spawn(undefined, STEADY_LEASES.open));
      await Promise.all(many.map((one) => one.ready()));
      await eventually(
        "all is made up for",
        async () => (await fixture.one<number>("select count(*)::int from pawl.schedule where due_at < now() - interval '1 second'")) === 0,
      );
      for (const name of NAMES) await fixture.pawl.schedules.pause(name);
      expectOneJobPerTick(await accounts(fixture));
    }, 120_000);

    it.skipIf(!fake.available)(
      `tick by the store's clock, with one process's clock a day ahead and another's a day behind (D9)${fake.available ? "" : `: ${fake.reason}`}`,
      async () => {
        if (!fake.available) throw new Error(fake.reason);
        await using fixture = await freshFixture();
        const tomorrow = Date.now() + 23 * 3_600_000;
        // To the process that is ahead this was due an hour ago. The others are declared by processes whose own time is wrong.
        await fixture.pawl.schedules.put("tomorrow", "quick", { at: tomorrow });
        const declared = (name: string) => ({ ...STEADY_LEASES.open, app: name, schedules: [schedule(name, "quick", { every: "1s", ...EVERY })] });
        await fixture.spawn(STEADY_LEASES.work, declared("ahead"), { env: fake.env("+1d") }).ready();
        await fixture.spawn(STEADY_LEASES.work, declared("behind"), { env: fake.env("-1d") }).ready();
        await eventually("both have ticked", async () => (await fixture.one<number>("select count(*)::int from pawl.tick")) >= 12);
        await eventually("and their jobs have run", async () => fixture.handlerLog.lines("start").length >= 6);
        for (const name of ["ahead", "behind"]) await fixture.pawl.schedules.pause(name);

        const skews = fixture.handlerLog.lines("start").map(({ at }) => Math.abs(Math.round((at - Date.now()) / 86_400_000)));
        expect(new Set(skews), "their clocks really were wrong").toEqual(new Set([1]));
        const ticks = await fixture.rows<{ name: string; ticks: number; seconds: number; early: number; strange: number }>(`
          select s.name, count(*)::int as ticks, (extract(epoch from max(t.at) - min(t.at)) + 1)::int as seconds,
            count(*) filter (where t.fired_at < t.at)::int as early, count(*) filter (where abs(extract(epoch from now() - t.at)) > 600)::int as strange
          from pawl.schedule s join pawl.tick t on t.schedule = s.id group by s.name order by s.name`);
        expect(ticks.map(({ name }) => name)).toEqual(["ahead", "behind"]);
        for (const { ticks: count, seconds, early, strange } of ticks)
          expect({ seconds, early, strange }, "each second once, none early, none of another day").toEqual({ seconds: count, early: 0, strange: 0 });
        expect(await fixture.one("select count(*)::int from pawl.tick_gap"), "and nobody took a day for missed").toBe(0);
        expect(await fixture.pawl.schedules.get("tomorrow")).toMatchObject({ next: new Date(tomorrow) });
      },
      120_000,
    );

    it("of one deploy started many times at once are stored once (A13, D3)", async () => {
      await using fixture = await freshFixture();
      const schedules = NAMES.map((name) => schedule(name, "quick", { cron: "0 0 * * *", timeZone: "Europe/Berlin" }));
      const many = Array.from({ length: 4 }, () => fixture.spawn(undefined, { ...STEADY_LEASES.open, schedules }));
      await Promise.all(many.map((one) => one.ready()));
      const stored = await fixture.rows("select distinct revision, undeclared_since, count(*)::int as n from pawl.schedule group by 1, 2");
      expect(stored).toEqual([{ revision: 1, undeclared_since: null, n: NAMES.length }]);

      const missing = async () => (await fixture.pawl.schedules.list({ undeclared: true })).items.map(({ name }) => name);
      await fixture.spawn(undefined, { ...STEADY_LEASES.open, schedules: schedules.slice(2) }).ready();
      expect(await missing(), "a deploy that drops some marks them").toEqual(["s0", "s1"]);
      await fixture.spawn(undefined, { ...STEADY_LEASES.open, schedules: [], app: "another" }).ready();
      expect(await missing(), "another application marks nothing").toEqual(["s0", "s1"]);
      await fixture.spawn(undefined, { ...STEADY_LEASES.open, schedules }).ready();
      expect(await missing(), "and one that has them again takes them up").toEqual([]);
      expect(await fixture.one("select max(revision) from pawl.schedule")).toBe(1);
    }, 60_000);
  });
});

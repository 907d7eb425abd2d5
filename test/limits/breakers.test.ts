import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { eventually } from "../support/eventually.js";
import { freshFixture } from "../support/fixtures/fresh-fixture.js";
import { STEADY_LEASES } from "../support/fixtures/process-fixture.js";
import { describeOn } from "../support/servers/servers.js";

const PAIR = { tenant: "acme", task: "call" };
/** ms, as the task of the children has it */
const PROBE = 3_000;

describeOn("embedded18", () => {
  describe("a breaker and four worker processes", () => {
    it("opens soon after the service goes down, spends attempts on probes only, closes when it is up, and hinders nobody else", async () => {
      await using fixture = await freshFixture();
      const down = join(fixture.folder, "down");
      writeFileSync(down, "");
      const workers = await Promise.all([1, 2, 3, 4].map(() => fixture.worker({ ...STEADY_LEASES.work, concurrency: 10 }, STEADY_LEASES.open)));
      const jobs = new Set(await fixture.enqueueMany("call", 200, { down }, { tenant: "acme" }));
      const calls = () => fixture.handlerLog.lines("start").filter(({ job }) => jobs.has(job));

      const opened = await eventually("it is open", async () => {
        const breaker = await fixture.pawl.breakers.get(PAIR);
        return breaker?.state === "open" ? breaker : undefined;
      });
      const firstCall = Math.min(...calls().map(({ at }) => at));
      // Twenty failures are there at once; a report takes a second, the doubt three, and a report a second again.
      expect(opened.since.getTime() - firstCall, "ms until it opened").toBeLessThanOrEqual(10_000);

      // Others meanwhile: another tenant's jobs of the task, and another task of the tenant.
      await fixture.enqueueMany("call", 100, {}, { tenant: "umbrella" });
      await fixture.enqueueMany("quick", 100, {}, { tenant: "acme" });
      await eventually("others are done", async () => (await fixture.pawl.counts()).succeeded === 200, 10_000);

      // Whoever has not heard of it yet goes on until then; from the first pause on, there is nothing but probes.
      const probes = await eventually("it was probed again and again", () => {
        const times = calls().map(({ at }) => at);
        const pause = times.findIndex((at, n) => n > 0 && at - (times[n - 1] as number) >= PROBE / 2 && at > opened.since.getTime());
        return pause > 0 && times.length - pause >= 2 ? times.slice(pause) : undefined;
      });
      expect((probes[0] as number) - opened.since.getTime(), "ms until all had heard of it").toBeLessThanOrEqual(10_000);
      probes.slice(1).forEach((at, n) => {
        expect(at - (probes[n] as number), "ms between probes").toBeGreaterThanOrEqual(PROBE - 500);
      });
      expect(await fixture.pawl.breakers.list({ state: "open" })).toMatchObject({ items: [PAIR] });

      await workers[0]?.kill();
      rmSync(down);
      await eventually("it is half-open", async () => (await fixture.pawl.breakers.get(PAIR))?.state !== "open");
      await fixture.drained();
      expect(await fixture.pawl.counts()).toMatchObject({ succeeded: 400, dead: 0 });
      await fixture.check();
    }, 240_000);

    it("is forced open by a person for all of them, and reset", async () => {
      await using fixture = await freshFixture();
      await Promise.all([1, 2].map(() => fixture.worker({ ...STEADY_LEASES.work, concurrency: 10 }, STEADY_LEASES.open)));
      await fixture.pawl.breakers.open(PAIR);
      await eventually("both know of it: a job of each is left alone", async () => {
        await fixture.enqueueMany("call", 1, {}, { tenant: "acme" });
        return (await fixture.pawl.counts({ task: "call" })).ready >= 20;
      });
      const before = fixture.handlerLog.lines("start").length;
      await fixture.enqueueMany("call", 50, {}, { tenant: "acme" });
      await fixture.enqueueMany("quick", 50, {}, { tenant: "acme" });
      await eventually("others are done", async () => (await fixture.pawl.counts({ task: "quick" })).succeeded === 50);
      expect(fixture.handlerLog.lines("start").filter(({ task }) => task === "call")).toHaveLength(before);
      await fixture.pawl.breakers.reset(PAIR);
      await fixture.drained();
      await fixture.check();
    }, 240_000);
  });
});

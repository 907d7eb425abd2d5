import { describe, expect, it } from "vitest";
import { open, task } from "../../packages/pawl/src/index.js";
import { eventually } from "../support/eventually.js";
import { freshFixture, proxiedFixture } from "../support/fixtures/fresh-fixture.js";
import { fakeTime } from "../support/processes/faketime.js";
import { describeOn, migratedDatabase } from "../support/servers/servers.js";

const fake = fakeTime();

describeOn("embedded18", () => {
  describe.concurrent("time", () => {
    it.skipIf(!fake.available)(
      `delays of nothing, one lease and ten leases are never early and never doubled, with one worker's clock a day ahead and another's a day behind (A11, D9)${fake.available ? "" : `: ${fake.reason}`}`,
      async () => {
        if (!fake.available) throw new Error(fake.reason);
        await using fixture = await freshFixture();
        const lease = {
          work: { leaseDuration: "2s", renewInterval: "400ms", concurrency: 5 },
          open: { maintenance: { leaseDuration: "2s", reapInterval: "200ms", pollInterval: "100ms" } },
        } as const;
        await fixture.worker(lease.work, lease.open, { env: fake.env("+1d") });
        await fixture.worker(lease.work, lease.open, { env: fake.env("-1d") });
        const due = [0, 2_000, 20_000];
        for (const delay of due) await fixture.enqueueMany("counter", 10, {}, { delay });
        const far = await fixture.enqueueMany("counter", 5, {}, { delay: "365d" });
        await eventually("those due have run", async () => (await fixture.pawl.counts()).succeeded === 30, 120_000);

        // Both by the store's clock: when it was due, and when its effect committed.
        const waits = await fixture.rows<{ late: number }>(
          "select (extract(epoch from e.at - j.due_at) * 1000)::float8 as late from public.effects e join pawl.any_job j on j.id = e.job",
        );
        expect(waits).toHaveLength(30);
        for (const { late } of waits) expect(late, "ms after its time").toBeGreaterThanOrEqual(0);
        const skewed = new Set(fixture.handlerLog.lines("start").map(({ at }) => Math.round((at - Date.now()) / 86_400_000)));
        expect(
          [...skewed].every((days) => Math.abs(days) === 1),
          "their clocks really were wrong",
        ).toBe(true);
        // On a machine that stood still a lease of two seconds may be lost, and its job run again: the history tells. A
        // delay that was taken for a lost job would show as a start without a line.
        const starts = new Map<string, number>();
        for (const { job } of fixture.handlerLog.lines("start")) starts.set(job, (starts.get(job) ?? 0) + 1);
        expect(starts.size).toBe(30);
        for (const [job, times] of starts) {
          const lines = await fixture.history(job);
          expect(lines.filter((outcome) => outcome === "succeeded")).toHaveLength(1);
          expect(times, `${job}: ${lines}`).toBeLessThanOrEqual(lines.length);
        }
        for (const id of far) expect(await fixture.pawl.jobs.get(id)).toMatchObject({ state: "scheduled" });
        await fixture.check({ quiet: false });
      },
    );

    it("twenty restarts of everything change no count and start nothing twice (A13)", async () => {
      await using database = await migratedDatabase();
      let runs = 0;
      const quick = task("quick", () => void runs++);
      const doomed = task("doomed", { retry: 0 }, () => {
        throw new Error("always");
      });
      const tasks = { tasks: [quick, doomed], maintenance: { pollInterval: "20ms", reapInterval: "50ms", leaseDuration: "1s" } } as const;
      {
        await using pawl = await open(database.url, tasks);
        await pawl.work();
        for (const job of await pawl.enqueueMany(quick, Array.from({ length: 30 }))) await job.result("20s");
        const dead = await pawl.enqueue(doomed, undefined);
        await pawl.jobs.wait(dead, "20s");
        await pawl.enqueueMany(quick, Array.from({ length: 7 }), { delay: "1d" });
        await (await pawl.enqueue(quick, undefined, { delay: "1d" })).pause();
      }
      for (let restart = 0; restart < 20; restart++) {
        await using pawl = await open(database.url, tasks);
        await pawl.work({ name: "nightly" });
        expect(await pawl.counts()).toMatchObject({ succeeded: 30, dead: 1, scheduled: 7, parked: 1, ready: 0, running: 0 });
      }
      expect(runs).toBe(30);
    });

    it("an idle process asks at most two things a second (C11)", async () => {
      const proxied = await proxiedFixture();
      await using fixture = proxied.fixture;
      await fixture.pawl.close();
      await using idle = await open(fixture.url, { tasks: [task("quick", () => {})] });
      await idle.work();
      await eventually("it hears", async () => (await idle.info()).receivesWakeups);
      // Five windows, and the one in the middle counts: the end of starting and a pruning may fall into two of them.
      const windows: number[] = [];
      for (let i = 0; i < 5; i++) {
        const start = proxied.proxy.requests;
        const end = performance.now() + 5_000;
        await eventually("five seconds are over", () => performance.now() >= end);
        windows.push(proxied.proxy.requests - start);
      }
      console.log(`an idle process made ${windows.join(", ")} requests in 5 s each`);
      const [, , asked] = windows.sort((a, b) => a - b);
      expect(asked).toBeGreaterThan(0);
      expect(asked).toBeLessThanOrEqual(2 * 5);
    });
  });
});

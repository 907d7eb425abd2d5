import { setTimeout as pause } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { eventually } from "../support/eventually.js";
import { freshFixture } from "../support/fixtures/fresh-fixture.js";
import { STEADY_LEASES } from "../support/fixtures/process-fixture.js";
import { Standstill } from "../support/processes/standstill.js";
import { seededRandom } from "../support/seeded-random.js";
import { describeOn } from "../support/servers/servers.js";

const LONG_LEASE = {
  work: { leaseDuration: "60s", renewInterval: "5s" },
  open: { maintenance: { leaseDuration: "60s", reapInterval: "200ms", pollInterval: "100ms" } },
} as const;

describeOn("embedded18", () => {
  describe.concurrent("a worker told to stop", () => {
    it("gives back what it cannot finish within a second of its deadline, with no attempt spent (E7)", async () => {
      await using fixture = await freshFixture();
      const ids = await fixture.enqueueMany("slow", 10, { ms: 600_000 });
      // With leases this long only a release can bring them back.
      const worker = await fixture.worker({ ...LONG_LEASE.work, concurrency: 5, shutdownGrace: "300ms" }, LONG_LEASE.open);
      await eventually("five of them run", () => fixture.handlerLog.lines("start").length === 5);
      using still = new Standstill();
      worker.signal("SIGTERM");
      const { at } = (await worker.hears("worker.stopping")) as unknown as { at: number };
      await eventually("all are ready again", async () => (await fixture.one<number>("select count(*)::int from pawl.any_ready")) === ids.length);
      expect(performance.now() - at).toBeLessThan(300 + 1_000 + 500 + still.ms); // half a second for a loaded machine to tell us
      expect(await worker.exited).toEqual({ code: 0, signal: null });

      const attempts = await fixture.rows("select distinct outcome, attempts, crashes from pawl.any_attempt");
      expect(attempts).toEqual([{ outcome: 3, attempts: 0, crashes: 0 }]);
      expect(fixture.handlerLog.lines("abort"), "their signals said so").toHaveLength(5);
      await fixture.check({ quiet: false });
    });

    it("exits at once on a second signal, and what it held runs elsewhere (E7)", async () => {
      await using fixture = await freshFixture();
      const job = await fixture.enqueue("slow", { ms: 600_000 });
      const worker = await fixture.worker({ ...STEADY_LEASES.work, shutdownGrace: "10m" }, STEADY_LEASES.open);
      await fixture.started(job.id);
      worker.signal("SIGTERM");
      await worker.hears("worker.stopping");
      using still = new Standstill();
      const second = performance.now();
      worker.signal("SIGTERM");
      expect(await worker.exited).toEqual({ code: 143, signal: null });
      expect(performance.now() - second).toBeLessThan(2_000 + still.ms);
      await fixture.worker(STEADY_LEASES.work, STEADY_LEASES.open);
      await eventually("it runs elsewhere", () => fixture.handlerLog.of(job.id, "start").length === 2);
      expect(await job.get()).toMatchObject({ attempts: 0 });
      await fixture.check({ quiet: false });
    });

    it("at random moments loses nothing, spends nothing and doubles no effect (E7)", async () => {
      await using fixture = await freshFixture();
      const { between } = seededRandom("SIGTERM at random moments");
      await fixture.enqueueMany("counter", 150, { ms: 40 });
      await fixture.enqueueMany("quick", 150);
      await fixture.enqueueMany("slow", 20, { ms: 700 });
      for (let round = 0; round < 2; round++) {
        const workers = Array.from({ length: 3 }, () =>
          fixture.spawn({ ...LONG_LEASE.work, concurrency: 4, shutdownGrace: "200ms" }, LONG_LEASE.open),
        );
        await Promise.all(
          workers.map(async (worker) => {
            // Before it is ready, SIGTERM ends it as it ends any process: then it holds nothing.
            await worker.ready();
            await pause(between(0, 700));
            expect(await worker.stop(), worker.describe()).toEqual({ code: 0, signal: null });
          }),
        );
        expect(await fixture.one<number>("select count(*)::int from pawl.lease"), "nothing is left in a lease").toBe(0);
      }
      await fixture.worker({ concurrency: 20 }, LONG_LEASE.open);
      await fixture.drained();
      const spent = await fixture.rows("select distinct outcome, crashes from pawl.any_attempt where outcome <> 0");
      expect(
        spent.filter((row) => (row as { outcome: number }).outcome !== 3),
        "nothing but releases",
      ).toEqual([]);
      expect(await fixture.one("select max(attempts)::int from pawl.any_attempt")).toBe(1);
      await fixture.check();
    });

    it("and replaced by one of the same name claims nothing while it drains, and strands nothing (A6, A7)", async () => {
      await using fixture = await freshFixture();
      await fixture.enqueueMany("counter", 120, { ms: 60 });
      let current = await fixture.worker({ ...LONG_LEASE.work, name: "web-1", concurrency: 3, shutdownGrace: "100ms" }, LONG_LEASE.open);
      for (let generation = 0; generation < 2; generation++) {
        const next = await fixture.worker({ ...LONG_LEASE.work, name: "web-1", concurrency: 3, shutdownGrace: "100ms" }, LONG_LEASE.open);
        const starts = () => fixture.handlerLog.lines("start").filter(({ pid }) => pid === current.pid).length;
        current.signal("SIGTERM");
        await current.hears("worker.stopping");
        const before = starts();
        expect((await current.exited).code).toBe(0);
        expect(starts(), "a draining worker starts nothing").toBe(before);
        current = next;
      }
      await fixture.drained();
      expect(await fixture.rows("select from pawl.any_attempt where outcome = 5"), "nobody took them for dead").toEqual([]);
      expect(await fixture.one("select count(distinct instance)::int from pawl.worker where name = 'web-1'")).toBe(3);
      await fixture.check();
    });
  });
});

import { setTimeout as pause } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { eventually } from "../support/eventually.js";
import { freshStage } from "../support/fresh-stage.js";
import { chance } from "../support/seed.js";
import { describeOn } from "../support/servers.js";
import { STEADY } from "../support/stage.js";
import { Standstill } from "../support/standstill.js";

const LONG_LEASE = { work: { lease: "60s", renewal: "5s" }, open: { maintenance: { lease: "60s", sweep: "200ms", pulse: "100ms" } } } as const;

describeOn("embedded18", () => {
  describe.concurrent("a worker told to stop", () => {
    it("gives back what it cannot finish within a second of its deadline, with no attempt spent (E7)", async () => {
      await using stage = await freshStage();
      const ids = await stage.enqueueMany("slow", 10, { ms: 600_000 });
      // With leases this long only a release can bring them back.
      const worker = await stage.worker({ ...LONG_LEASE.work, concurrency: 5, drain: "300ms" }, LONG_LEASE.open);
      await eventually("five of them run", () => stage.sink.lines("start").length === 5);
      using still = new Standstill();
      worker.signal("SIGTERM");
      const { at } = (await worker.hears("worker.stopping")) as unknown as { at: number };
      await eventually("all are ready again", async () => (await stage.one<number>("select count(*)::int from pawl.any_ready")) === ids.length);
      expect(performance.now() - at).toBeLessThan(300 + 1_000 + 500 + still.ms); // half a second for a loaded machine to tell us
      expect(await worker.exited).toEqual({ code: 0, signal: null });

      const attempts = await stage.rows("select distinct outcome, spent, crashes from pawl.any_attempt");
      expect(attempts).toEqual([{ outcome: 3, spent: 0, crashes: 0 }]);
      expect(stage.sink.lines("abort"), "their signals said so").toHaveLength(5);
      await stage.check({ quiet: false });
    });

    it("exits at once on a second signal, and what it held runs elsewhere (E7)", async () => {
      await using stage = await freshStage();
      const job = await stage.enqueue("slow", { ms: 600_000 });
      const worker = await stage.worker({ ...STEADY.work, drain: "10m" }, STEADY.open);
      await stage.started(job.id);
      worker.signal("SIGTERM");
      await worker.hears("worker.stopping");
      using still = new Standstill();
      const second = performance.now();
      worker.signal("SIGTERM");
      expect(await worker.exited).toEqual({ code: 143, signal: null });
      expect(performance.now() - second).toBeLessThan(2_000 + still.ms);
      await stage.worker(STEADY.work, STEADY.open);
      await eventually("it runs elsewhere", () => stage.sink.of(job.id, "start").length === 2);
      expect(await job.get()).toMatchObject({ attempts: 0 });
      await stage.check({ quiet: false });
    });

    it("at random moments loses nothing, spends nothing and doubles no effect (E7)", async () => {
      await using stage = await freshStage();
      const { between } = chance("SIGTERM at random moments");
      await stage.enqueueMany("counter", 150, { ms: 40 });
      await stage.enqueueMany("quick", 150);
      await stage.enqueueMany("slow", 20, { ms: 700 });
      for (let round = 0; round < 2; round++) {
        const workers = Array.from({ length: 3 }, () => stage.spawn({ ...LONG_LEASE.work, concurrency: 4, drain: "200ms" }, LONG_LEASE.open));
        await Promise.all(
          workers.map(async (worker) => {
            // Before it is ready, SIGTERM ends it as it ends any process: then it holds nothing.
            await worker.ready();
            await pause(between(0, 700));
            expect(await worker.stop(), worker.describe()).toEqual({ code: 0, signal: null });
          }),
        );
        expect(await stage.one<number>("select count(*)::int from pawl.lease"), "nothing is left in a lease").toBe(0);
      }
      await stage.worker({ concurrency: 20 }, LONG_LEASE.open);
      await stage.drained();
      const spent = await stage.rows("select distinct outcome, crashes from pawl.any_attempt where outcome <> 0");
      expect(
        spent.filter((row) => (row as { outcome: number }).outcome !== 3),
        "nothing but releases",
      ).toEqual([]);
      expect(await stage.one("select max(spent)::int from pawl.any_attempt")).toBe(1);
      await stage.check();
    });

    it("and replaced by one of the same name claims nothing while it drains, and strands nothing (A6, A7)", async () => {
      await using stage = await freshStage();
      await stage.enqueueMany("counter", 120, { ms: 60 });
      let current = await stage.worker({ ...LONG_LEASE.work, name: "web-1", concurrency: 3, drain: "100ms" }, LONG_LEASE.open);
      for (let generation = 0; generation < 2; generation++) {
        const next = await stage.worker({ ...LONG_LEASE.work, name: "web-1", concurrency: 3, drain: "100ms" }, LONG_LEASE.open);
        const starts = () => stage.sink.lines("start").filter(({ pid }) => pid === current.pid).length;
        current.signal("SIGTERM");
        await current.hears("worker.stopping");
        const before = starts();
        expect((await current.exited).code).toBe(0);
        expect(starts(), "a draining worker starts nothing").toBe(before);
        current = next;
      }
      await stage.drained();
      expect(await stage.rows("select from pawl.any_attempt where outcome = 5"), "nobody took them for dead").toEqual([]);
      expect(await stage.one("select count(distinct boot)::int from pawl.worker where name = 'web-1'")).toBe(3);
      await stage.check();
    });
  });
});

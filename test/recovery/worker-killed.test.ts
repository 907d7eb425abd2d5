import { describe, expect, it } from "vitest";
import { eventually } from "../support/eventually.js";
import { freshFixture } from "../support/fixtures/fresh-fixture.js";
import { STEADY_LEASES } from "../support/fixtures/process-fixture.js";
import { Standstill } from "../support/processes/standstill.js";
import { describeOn } from "../support/servers/servers.js";

describeOn("embedded18", () => {
  describe.concurrent("a worker killed with -9", () => {
    it("runs elsewhere within 20 s, 99 of 100 jobs, on the default lease of 15 s, renewal of 5 s and sweep of 2 s (B1, B6)", async () => {
      await using fixture = await freshFixture();
      const ids = await fixture.enqueueMany("slow", 100, { ms: 1_000_000 });
      const victim = await fixture.worker({ concurrency: 100 });
      await eventually("all of them run", () => fixture.handlerLog.lines("start").length >= ids.length);
      const heir = await fixture.worker({ concurrency: 100 });
      using still = new Standstill();
      await victim.kill();
      const killedAt = Date.now();

      const again = () => fixture.handlerLog.lines("start").filter(({ pid }) => pid === heir.pid);
      await eventually("all of them run elsewhere", () => new Set(again().map(({ job }) => job)).size === ids.length, 60_000);
      const delays = again()
        .map(({ at }) => at - killedAt)
        .sort((a, b) => a - b);
      expect(delays[Math.ceil(delays.length * 0.99) - 1]).toBeLessThanOrEqual(20_000 + still.ms);

      const crashed = await fixture.rows<{ attempts: number; crashes: number; outcome: number }>(
        "select distinct attempts, crashes, outcome from pawl.any_attempt",
      );
      expect(crashed, "a crash spends no attempt").toEqual([{ attempts: 0, crashes: 1, outcome: 5 }]);
      await fixture.check({ quiet: false });
    });

    it("loses nothing and doubles no effect, whatever its jobs were doing (A14, B1, I4)", async () => {
      await using fixture = await freshFixture();
      await fixture.enqueueMany("counter", 60, { ms: 300 });
      await fixture.enqueueMany("quick", 200);
      await fixture.enqueueMany("once", 20, { ms: 50 });
      const victim = await fixture.worker({ ...STEADY_LEASES.work, concurrency: 30 }, STEADY_LEASES.open);
      await eventually("work is under way", () => fixture.handlerLog.lines("start").length >= 40);
      await victim.kill();
      await fixture.worker({ ...STEADY_LEASES.work, concurrency: 30 }, STEADY_LEASES.open);
      await fixture.drained();

      const wrong = await fixture.rows("select distinct next from pawl.any_attempt where outcome not in (0, 1, 3, 5)");
      expect(wrong).toEqual([]);
      expect(await fixture.pawl.counts()).toMatchObject({ succeeded: 280, dead: 0 });
      await fixture.check();
    });

    it("leaves what may run at most once dead as interrupted, started or not (I5)", async () => {
      await using fixture = await freshFixture();
      const ids = await fixture.enqueueMany("fragile", 6, { ms: 600_000 });
      const victim = await fixture.worker({ ...STEADY_LEASES.work, concurrency: 4 }, STEADY_LEASES.open);
      await eventually("four of them run", () => fixture.handlerLog.lines("start").length >= 4);
      const running = new Set(fixture.handlerLog.lines("start").map(({ job }) => job));
      await victim.kill();
      const heir = await fixture.worker({ ...STEADY_LEASES.work, concurrency: 4 }, STEADY_LEASES.open);
      await eventually("the four are dead", async () => (await fixture.pawl.counts()).dead === 4);
      for (const id of running) {
        const { state, failure } = await fixture.pawl.jobs.get(id);
        expect({ state, kind: failure?.kind }).toEqual({ state: "dead", kind: "interrupted" });
      }
      // The two that nobody had begun are unharmed.
      await eventually("the others run", () => new Set(fixture.handlerLog.lines("start").map(({ job }) => job)).size === ids.length);
      await heir.kill();
      await fixture.worker({ ...STEADY_LEASES.work }, STEADY_LEASES.open);
      await fixture.drained();
      expect(await fixture.pawl.counts()).toMatchObject({ dead: 6 });
      await fixture.check();
    });

    it("takes no job with it that is enqueued later, though it sat and waited for one", async () => {
      await using fixture = await freshFixture();
      const victim = await fixture.worker();
      await eventually("it is registered as idle", async () => (await fixture.rows("select from pawl.idle_worker where lease is null")).length === 1);
      await victim.kill();
      const heir = await fixture.worker();
      const { id } = await fixture.enqueue("quick");
      await fixture.drained();
      expect(fixture.handlerLog.lines("start").map(({ job, pid }) => [job, pid])).toEqual([[id, heir.pid]]);
      const crashes = await fixture.rows("select from pawl.any_attempt where outcome = 5");
      expect(crashes, "nothing had to be taken from the dead").toEqual([]);
      await fixture.check();
    });

    it("gives up what it was handed and did not begin, when its lease has run out", async () => {
      await using fixture = await freshFixture();
      const victim = await fixture.worker(STEADY_LEASES.work, STEADY_LEASES.open);
      await eventually("it is registered as idle", async () => (await fixture.rows("select from pawl.idle_worker where lease is null")).length === 1);
      victim.freeze();
      const { id } = await fixture.enqueue("quick");
      expect(await fixture.rows("select from pawl.lease where $1 = any(jobs)", [id]), "it is handed off").toHaveLength(1);
      await victim.kill();
      const heir = await fixture.worker(STEADY_LEASES.work, STEADY_LEASES.open);
      await fixture.drained();
      expect(fixture.handlerLog.lines("start").map(({ pid }) => pid)).toEqual([heir.pid]);
      await fixture.check();
    });

    it("never runs an at-most-once job again that a producer without the task's code enqueued (I5)", async () => {
      await using fixture = await freshFixture();
      const { open } = await import("../../packages/pawl/src/index.js");
      const producer = await open(fixture.url, { maintenance: false });
      const { id } = await producer.enqueue("fragile", { ms: 600_000 });
      await producer.close();
      fixture.acknowledged.push(id);
      const victim = await fixture.worker(STEADY_LEASES.work, STEADY_LEASES.open);
      await fixture.started(id);
      await victim.kill();
      await fixture.worker(STEADY_LEASES.work, STEADY_LEASES.open);
      await fixture.drained();
      const { state, failure } = await fixture.pawl.jobs.get(id);
      expect({ state, kind: failure?.kind }).toEqual({ state: "dead", kind: "interrupted" });
      await fixture.check();
    });
  });
});

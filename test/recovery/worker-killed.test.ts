import { describe, expect, it } from "vitest";
import { eventually } from "../support/eventually.js";
import { freshStage } from "../support/fresh-stage.js";
import { describeOn } from "../support/servers.js";
import { STEADY } from "../support/stage.js";
import { Standstill } from "../support/standstill.js";

describeOn("embedded18", () => {
  describe.concurrent("a worker killed with -9", () => {
    it("runs elsewhere within 20 s, 99 of 100 jobs, on the default lease of 15 s, renewal of 5 s and sweep of 2 s (B1, B6)", async () => {
      await using stage = await freshStage();
      const ids = await stage.enqueueMany("slow", 100, { ms: 1_000_000 });
      const victim = await stage.worker({ concurrency: 100 });
      await eventually("all of them run", () => stage.sink.lines("start").length >= ids.length);
      const heir = await stage.worker({ concurrency: 100 });
      using still = new Standstill();
      await victim.kill();
      const killedAt = Date.now();

      const again = () => stage.sink.lines("start").filter(({ pid }) => pid === heir.pid);
      await eventually("all of them run elsewhere", () => new Set(again().map(({ job }) => job)).size === ids.length, 60_000);
      const delays = again()
        .map(({ at }) => at - killedAt)
        .sort((a, b) => a - b);
      expect(delays[Math.ceil(delays.length * 0.99) - 1]).toBeLessThanOrEqual(20_000 + still.ms);

      const crashed = await stage.rows<{ spent: number; crashes: number; outcome: number }>(
        "select distinct spent, crashes, outcome from pawl.any_attempt",
      );
      expect(crashed, "a crash spends no attempt").toEqual([{ spent: 0, crashes: 1, outcome: 5 }]);
      await stage.check({ quiet: false });
    });

    it("loses nothing and doubles no effect, whatever its jobs were doing (A14, B1, I4)", async () => {
      await using stage = await freshStage();
      await stage.enqueueMany("counter", 60, { ms: 300 });
      await stage.enqueueMany("quick", 200);
      await stage.enqueueMany("once", 20, { ms: 50 });
      const victim = await stage.worker({ ...STEADY.work, concurrency: 30 }, STEADY.open);
      await eventually("work is under way", () => stage.sink.lines("start").length >= 40);
      await victim.kill();
      await stage.worker({ ...STEADY.work, concurrency: 30 }, STEADY.open);
      await stage.drained();

      const wrong = await stage.rows("select distinct next from pawl.any_attempt where outcome not in (0, 1, 3, 5)");
      expect(wrong).toEqual([]);
      expect(await stage.pawl.counts()).toMatchObject({ succeeded: 280, dead: 0 });
      await stage.check();
    });

    it("leaves what may run at most once dead as interrupted, started or not (I5)", async () => {
      await using stage = await freshStage();
      const ids = await stage.enqueueMany("fragile", 6, { ms: 600_000 });
      const victim = await stage.worker({ ...STEADY.work, concurrency: 4 }, STEADY.open);
      await eventually("four of them run", () => stage.sink.lines("start").length >= 4);
      const running = new Set(stage.sink.lines("start").map(({ job }) => job));
      await victim.kill();
      const heir = await stage.worker({ ...STEADY.work, concurrency: 4 }, STEADY.open);
      await eventually("the four are dead", async () => (await stage.pawl.counts()).dead === 4);
      for (const id of running) {
        const { state, failure } = await stage.pawl.jobs.get(id);
        expect({ state, kind: failure?.kind }).toEqual({ state: "dead", kind: "interrupted" });
      }
      // The two that nobody had begun are unharmed.
      await eventually("the others run", () => new Set(stage.sink.lines("start").map(({ job }) => job)).size === ids.length);
      await heir.kill();
      await stage.worker({ ...STEADY.work }, STEADY.open);
      await stage.drained();
      expect(await stage.pawl.counts()).toMatchObject({ dead: 6 });
      await stage.check();
    });

    it("takes no job with it that is enqueued later, though it sat and waited for one", async () => {
      await using stage = await freshStage();
      const victim = await stage.worker();
      await eventually("it sits", async () => (await stage.rows("select from pawl.seat where lease is null")).length === 1);
      await victim.kill();
      const heir = await stage.worker();
      const { id } = await stage.enqueue("quick");
      await stage.drained();
      expect(stage.sink.lines("start").map(({ job, pid }) => [job, pid])).toEqual([[id, heir.pid]]);
      const crashes = await stage.rows("select from pawl.any_attempt where outcome = 5");
      expect(crashes, "nothing had to be taken from the dead").toEqual([]);
      await stage.check();
    });

    it("gives up what it was handed and did not begin, when its lease has run out", async () => {
      await using stage = await freshStage();
      const victim = await stage.worker(STEADY.work, STEADY.open);
      await eventually("it sits", async () => (await stage.rows("select from pawl.seat where lease is null")).length === 1);
      victim.freeze();
      const { id } = await stage.enqueue("quick");
      expect(await stage.rows("select from pawl.lease where $1 = any(jobs)", [id]), "it is handed over").toHaveLength(1);
      await victim.kill();
      const heir = await stage.worker(STEADY.work, STEADY.open);
      await stage.drained();
      expect(stage.sink.lines("start").map(({ pid }) => pid)).toEqual([heir.pid]);
      await stage.check();
    });

    it("never runs an at-most-once job again that a producer without the task's code enqueued (I5)", async () => {
      await using stage = await freshStage();
      const { open } = await import("../../packages/pawl/src/index.js");
      const producer = await open(stage.url, { maintenance: false });
      const { id } = await producer.enqueue("fragile", { ms: 600_000 });
      await producer.close();
      stage.acked.push(id);
      const victim = await stage.worker(STEADY.work, STEADY.open);
      await stage.started(id);
      await victim.kill();
      await stage.worker(STEADY.work, STEADY.open);
      await stage.drained();
      const { state, failure } = await stage.pawl.jobs.get(id);
      expect({ state, kind: failure?.kind }).toEqual({ state: "dead", kind: "interrupted" });
      await stage.check();
    });
  });
});

import { describe, expect, it } from "vitest";
import { eventually } from "../support/eventually.js";
import { freshStage } from "../support/fresh-stage.js";
import { describeOn } from "../support/servers.js";
import { STEADY } from "../support/stage.js";
import { Standstill } from "../support/standstill.js";

describeOn("embedded18", () => {
  describe.concurrent("a worker that stands still", () => {
    it("frozen past its lease and thawed commits nothing of what others have done meanwhile (A1, A8)", async () => {
      await using stage = await freshStage();
      const counters = await stage.enqueueMany("counter", 8, { ms: 400 });
      const blocked = await stage.enqueue("block", { ms: 800 });
      const zombie = await stage.worker({ ...STEADY.work, concurrency: 9 }, STEADY.open);
      await stage.started(blocked.id);
      zombie.freeze();
      const frozen = new Set(stage.sink.lines("start").map(({ job }) => job));
      await stage.worker({ ...STEADY.work, concurrency: 9 }, STEADY.open);
      await stage.drained();
      await zombie.thaw();
      // The handler went on where it was: its outcome goes to the store, which knows better.
      await zombie.hears("attempt.stale");

      const crashed = await stage.rows("select job from pawl.any_attempt where outcome = 5");
      expect(crashed.length, "they were taken from the frozen one").toBeGreaterThan(0);
      expect(frozen.has(blocked.id)).toBe(true);
      expect(await stage.pawl.counts()).toMatchObject({ succeeded: counters.length + 1, dead: 0 });
      await stage.check();

      // It is as good as new.
      const next = await stage.enqueueMany("counter", 20);
      await eventually("it takes part again", () => stage.sink.lines("end").filter(({ job }) => next.includes(job)).length === next.length);
      expect((await zombie.stop()).code).toBe(0);
      await stage.drained();
      await stage.check();
    });

    it("with its event loop blocked for three leases keeps the lease by its thread, and its job runs once (A1, A9, A10)", async () => {
      await using stage = await freshStage();
      const job = await stage.enqueue("block", { ms: 9_000 });
      const busy = await stage.worker({ ...STEADY.work, concurrency: 2 }, STEADY.open);
      const idle = await stage.worker({ ...STEADY.work, concurrency: 2 }, STEADY.open);
      await stage.drained();
      await busy.hears("attempt.blocked").catch(() => idle.hears("attempt.blocked", 1));
      expect(stage.sink.of(job.id, "start")).toHaveLength(1);
      expect(await stage.history(job.id)).toEqual(["succeeded"]);
      expect([...busy.heard("lease.lost"), ...idle.heard("lease.lost")]).toEqual([]);
      await stage.check();
    });

    it("blocked by its first job, taken while its thread comes up, keeps the lease (A1)", async () => {
      await using stage = await freshStage();
      const job = await stage.enqueue("block", { ms: 12_000 });
      const work = { lease: 10_000, renewal: 5_000, concurrency: 1 };
      const both = await Promise.all([stage.worker(work, STEADY.open), stage.worker(work, STEADY.open)]);
      await stage.drained();
      expect(stage.sink.of(job.id, "start")).toHaveLength(1);
      expect(await stage.history(job.id)).toEqual(["succeeded"]);
      for (const worker of both) expect(worker.heard("lease.lost")).toEqual([]);
      await stage.check();
    });

    it("on a machine with no core to spare renews its lease in time: never a third of a lease late (A9)", async () => {
      await using stage = await freshStage();
      await stage.rows("create table public.renewals (lease bigint, at timestamptz default clock_timestamp())");
      await stage.rows(`create function public.renewed() returns trigger language plpgsql as $$
        begin insert into public.renewals (lease) values (new.id); return null; end $$`);
      // Only what really extended a lease counts.
      await stage.rows("create trigger claimed after insert on pawl.lease for each row execute function public.renewed()");
      await stage.rows(
        "create trigger renewed after update on pawl.lease for each row when (new.until > old.until) execute function public.renewed()",
      );
      const [lease, renewal] = [12_000, 1_000];
      const work = { lease, renewal, concurrency: 1 };
      const workers = await Promise.all([stage.worker(work, STEADY.open), stage.worker(work, STEADY.open), stage.worker(work, STEADY.open)]);
      using still = new Standstill();
      await stage.enqueueMany("block", workers.length, { ms: 5_000, busy: true });
      await stage.drained();
      const [gaps] = await stage.rows<{ n: number; longest: number }>(
        `select count(*)::int as n, max(extract(epoch from gap) * 1000)::float8 as longest
         from (select at - lag(at) over (partition by lease order by at) as gap from public.renewals) g where gap is not null`,
      );
      expect(gaps?.n).toBeGreaterThanOrEqual(3 * workers.length);
      expect(gaps?.longest).toBeLessThan(renewal + lease / 3 + still.ms);
      for (const worker of workers) expect(worker.heard("lease.lost")).toEqual([]);
      await stage.check();
    });

    it("blocked for longer than its job may take loses the lease all the same, and the job runs elsewhere (A10)", async () => {
      await using stage = await freshStage();
      const one = { ...STEADY.work, concurrency: 1 };
      await Promise.all([stage.worker(one, STEADY.open), stage.worker(one, STEADY.open)]);
      const job = await stage.enqueue("block", { ms: 30_000 }, { timeout: "1s" });
      await eventually("it runs elsewhere", () => stage.sink.of(job.id, "start").length === 2);
      expect(stage.sink.of(job.id, "end"), "while the first one still blocks").toEqual([]);
      expect(await stage.history(job.id)).toEqual(["crashed"]);
    });

    it("a handler that hangs is ended by its timeout, and cannot settle late (A3, A10)", async () => {
      await using stage = await freshStage();
      const job = await stage.enqueue("hang", { ms: 3_000 }, { timeout: "500ms", retry: 0 });
      await stage.worker(STEADY.work, STEADY.open);
      await stage.drained();
      expect(await job.get()).toMatchObject({ state: "dead", failure: { kind: "timeout" } });
      await eventually("its handler has tried to commit", () => stage.sink.of(job.id, "end").length === 1);
      expect(stage.sink.of(job.id).map(({ what, why }) => (what === "abort" ? `abort: ${why}` : what))).toEqual([
        "start",
        expect.stringMatching(/^abort: .*timeout/),
        "end",
      ]);
      expect(await stage.history(job.id)).toEqual(["failed"]);
      await stage.check();
    });

    it("a job ten times as long as the lease runs once, while others come and go (A2)", async () => {
      await using stage = await freshStage();
      const job = await stage.enqueue("slow", { ms: 30_000 });
      const workers = await Promise.all([stage.worker(STEADY.work, STEADY.open), stage.worker(STEADY.work, STEADY.open)]);
      await stage.started(job.id);
      await stage.enqueueMany("quick", 200);
      await stage.drained();
      expect(stage.sink.of(job.id).map(({ what }) => what)).toEqual(["start", "end"]);
      expect(await stage.history(job.id)).toEqual(["succeeded"]);
      for (const worker of workers) expect(worker.heard("lease.lost")).toEqual([]);
      await stage.check();
    });
  });
});

import { describe, expect, it } from "vitest";
import { eventually } from "../support/eventually.js";
import { freshFixture } from "../support/fixtures/fresh-fixture.js";
import { STEADY_LEASES } from "../support/fixtures/process-fixture.js";
import { Standstill } from "../support/processes/standstill.js";
import { describeOn } from "../support/servers/servers.js";

describeOn("embedded18", () => {
  describe.concurrent("a worker that stands still", () => {
    it("frozen past its lease and thawed commits nothing of what others have done meanwhile (A1, A8)", async () => {
      await using fixture = await freshFixture();
      const counters = await fixture.enqueueMany("counter", 8, { ms: 400 });
      const blocked = await fixture.enqueue("block", { ms: 800 });
      const zombie = await fixture.worker({ ...STEADY_LEASES.work, concurrency: 9 }, STEADY_LEASES.open);
      await fixture.started(blocked.id);
      zombie.freeze();
      const frozen = new Set(fixture.handlerLog.lines("start").map(({ job }) => job));
      await fixture.worker({ ...STEADY_LEASES.work, concurrency: 9 }, STEADY_LEASES.open);
      await fixture.drained();
      await zombie.thaw();
      // The handler went on where it was: its outcome goes to the store, which knows better.
      await zombie.hears("attempt.stale");

      const crashed = await fixture.rows("select job from pawl.any_attempt where outcome = 5");
      expect(crashed.length, "they were taken from the frozen one").toBeGreaterThan(0);
      expect(frozen.has(blocked.id)).toBe(true);
      expect(await fixture.pawl.counts()).toMatchObject({ succeeded: counters.length + 1, dead: 0 });
      await fixture.check();

      // It is as good as new.
      const next = await fixture.enqueueMany("counter", 20);
      await eventually("it takes part again", () => fixture.handlerLog.lines("end").filter(({ job }) => next.includes(job)).length === next.length);
      expect((await zombie.stop()).code).toBe(0);
      await fixture.drained();
      await fixture.check();
    });

    it("with its event loop blocked for three leases keeps the lease by its thread, and its job runs once (A1, A9, A10)", async () => {
      await using fixture = await freshFixture();
      const job = await fixture.enqueue("block", { ms: 9_000 });
      const busy = await fixture.worker({ ...STEADY_LEASES.work, concurrency: 2 }, STEADY_LEASES.open);
      const idle = await fixture.worker({ ...STEADY_LEASES.work, concurrency: 2 }, STEADY_LEASES.open);
      await fixture.drained();
      await busy.hears("worker.blocked").catch(() => idle.hears("worker.blocked", 1));
      expect(fixture.handlerLog.of(job.id, "start")).toHaveLength(1);
      expect(await fixture.history(job.id)).toEqual(["succeeded"]);
      expect([...busy.heard("lease.lost"), ...idle.heard("lease.lost")]).toEqual([]);
      await fixture.check();
    });

    it("blocked by its first job, taken while its thread comes up, keeps the lease (A1)", async () => {
      await using fixture = await freshFixture();
      const job = await fixture.enqueue("block", { ms: 12_000 });
      const work = { leaseDuration: 10_000, renewInterval: 5_000, concurrency: 1 };
      const both = await Promise.all([fixture.worker(work, STEADY_LEASES.open), fixture.worker(work, STEADY_LEASES.open)]);
      await fixture.drained();
      expect(fixture.handlerLog.of(job.id, "start")).toHaveLength(1);
      expect(await fixture.history(job.id)).toEqual(["succeeded"]);
      for (const worker of both) expect(worker.heard("lease.lost")).toEqual([]);
      await fixture.check();
    });

    it("on a machine with no core to spare renews its lease in time: never a third of a lease late (A9)", async () => {
      await using fixture = await freshFixture();
      await fixture.rows("create table public.renewals (lease bigint, at timestamptz default clock_timestamp())");
      await fixture.rows(`create function public.renewed() returns trigger language plpgsql as $$
        begin insert into public.renewals (lease) values (new.id); return null; end $$`);
      // Only what really extended a lease counts.
      await fixture.rows("create trigger claimed after insert on pawl.lease for each row execute function public.renewed()");
      await fixture.rows(
        "create trigger renewed after update on pawl.lease for each row when (new.until > old.until) execute function public.renewed()",
      );
      const [lease, renewal] = [12_000, 1_000];
      const work = { leaseDuration: lease, renewInterval: renewal, concurrency: 1 };
      const workers = await Promise.all([
        fixture.worker(work, STEADY_LEASES.open),
        fixture.worker(work, STEADY_LEASES.open),
        fixture.worker(work, STEADY_LEASES.open),
      ]);
      using still = new Standstill();
      await fixture.enqueueMany("block", workers.length, { ms: 5_000, busy: true });
      await fixture.drained();
      const [gaps] = await fixture.rows<{ n: number; longest: number }>(
        `select count(*)::int as n, max(extract(epoch from gap) * 1000)::float8 as longest
         from (select at - lag(at) over (partition by lease order by at) as gap from public.renewals) g where gap is not null`,
      );
      expect(gaps?.n).toBeGreaterThanOrEqual(3 * workers.length);
      expect(gaps?.longest).toBeLessThan(renewal + lease / 3 + still.ms);
      for (const worker of workers) expect(worker.heard("lease.lost")).toEqual([]);
      await fixture.check();
    });

    it("blocked for longer than its job may take loses the lease all the same, and the job runs elsewhere (A10)", async () => {
      await using fixture = await freshFixture();
      const one = { ...STEADY_LEASES.work, concurrency: 1 };
      await Promise.all([fixture.worker(one, STEADY_LEASES.open), fixture.worker(one, STEADY_LEASES.open)]);
      const job = await fixture.enqueue("block", { ms: 30_000 }, { timeout: "1s" });
      await eventually("it runs elsewhere", () => fixture.handlerLog.of(job.id, "start").length === 2);
      expect(fixture.handlerLog.of(job.id, "end"), "while the first one still blocks").toEqual([]);
      expect(await fixture.history(job.id)).toEqual(["crashed"]);
    });

    it("a handler that hangs is ended by its timeout, and cannot settle late (A3, A10)", async () => {
      await using fixture = await freshFixture();
      const job = await fixture.enqueue("hang", { ms: 3_000 }, { timeout: "500ms", retry: 0 });
      await fixture.worker(STEADY_LEASES.work, STEADY_LEASES.open);
      await fixture.drained();
      expect(await job.get()).toMatchObject({ state: "dead", failure: { kind: "timeout" } });
      await eventually("its handler has tried to commit", () => fixture.handlerLog.of(job.id, "end").length === 1);
      expect(fixture.handlerLog.of(job.id).map(({ step, reason }) => (step === "abort" ? `abort: ${reason}` : step))).toEqual([
        "start",
        expect.stringMatching(/^abort: .*timeout/),
        "end",
      ]);
      expect(await fixture.history(job.id)).toEqual(["failed"]);
      await fixture.check();
    });

    it("a job ten times as long as the lease runs once, while others come and go (A2)", async () => {
      await using fixture = await freshFixture();
      const job = await fixture.enqueue("slow", { ms: 30_000 });
      const workers = await Promise.all([
        fixture.worker(STEADY_LEASES.work, STEADY_LEASES.open),
        fixture.worker(STEADY_LEASES.work, STEADY_LEASES.open),
      ]);
      await fixture.started(job.id);
      await fixture.enqueueMany("quick", 200);
      await fixture.drained();
      expect(fixture.handlerLog.of(job.id).map(({ step }) => step)).toEqual(["start", "end"]);
      expect(await fixture.history(job.id)).toEqual(["succeeded"]);
      for (const worker of workers) expect(worker.heard("lease.lost")).toEqual([]);
      await fixture.check();
    });
  });
});

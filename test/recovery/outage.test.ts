import { describe, expect, it } from "vitest";
import { eventually, throughout } from "../support/eventually.js";
import { freshStage, proxiedStage } from "../support/fresh-stage.js";
import { describeOn } from "../support/servers.js";
import { STEADY } from "../support/stage.js";

describeOn("embedded18", () => {
  describe.concurrent("a store that is away", () => {
    it("for longer than a lease: what ended meanwhile is settled on its return and runs once, what could not go on runs again (E9)", async () => {
      const proxied = await proxiedStage();
      await using stage = proxied.stage;
      const worker = await stage.worker({ ...STEADY.work, concurrency: 40 }, STEADY.open);
      const short = await stage.enqueueMany("slow", 20, { ms: 1_200 });
      const long = await stage.enqueueMany("slow", 5, { ms: 9_000 });
      await eventually("all run", () => stage.sink.lines("start").length === 25);
      await proxied.proxy.refuse();
      await eventually("the long ones were stopped", () => stage.sink.lines("abort").length === long.length);
      await eventually(
        "and their leases have run out",
        async () => await stage.one<boolean>("select max(until) < now() - interval '1 second' from pawl.lease"),
      );
      await proxied.proxy.accept();
      await stage.drained();

      for (const id of short) expect(await stage.history(id)).toEqual(["succeeded"]);
      expect(
        stage.sink.lines("start").filter(({ job }) => short.includes(job)),
        "re-dispatched live jobs",
      ).toHaveLength(short.length);
      for (const id of long) expect((await stage.history(id)).at(-1)).toBe("succeeded");
      expect(await stage.one("select max(spent)::int from pawl.any_attempt"), "no attempt was spent on it").toBe(1);
      expect(worker.exit, worker.describe()).toBeUndefined();
      await stage.check();
    });

    it("three times does not make a long job a poison pill: its worker is alive, and gives it back (E9, A14)", async () => {
      const proxied = await proxiedStage();
      await using stage = proxied.stage;
      await stage.worker({ ...STEADY.work, concurrency: 2 }, STEADY.open);
      const job = await stage.enqueue("slow", { ms: 6_000 });
      for (let outage = 1; outage <= 4; outage++) {
        await eventually("it runs", () => stage.sink.of(job.id, "start").length >= outage);
        await proxied.proxy.refuse();
        await eventually("it was stopped", () => stage.sink.of(job.id, "abort").length >= outage);
        await eventually("its lease has run out", async () => await stage.one<boolean>("select max(until) < now() from pawl.lease"));
        await proxied.proxy.accept();
      }
      await stage.drained();
      expect(await job.get()).toMatchObject({ state: "succeeded", crashes: 0, attempts: 1 });
      await stage.check();
    });

    it("says so at most once a second and step, and nobody exits (C2, C3)", async () => {
      const proxied = await proxiedStage();
      await using stage = proxied.stage;
      await stage.enqueueMany("counter", 50, { ms: 30 });
      const worker = await stage.worker({ ...STEADY.work, concurrency: 10 }, STEADY.open);
      await eventually("work is under way", () => stage.sink.lines("end").length > 3);
      await proxied.proxy.refuse();
      const from = worker.events.length;
      await throughout(6_000, () => expect(worker.exit, worker.describe()).toBeUndefined());
      const said = worker.events.slice(from).filter(({ name }) => name === "duty.failed");
      const bySteps = groupBy(said);
      expect(bySteps.size).toBeGreaterThan(0);
      for (const [step, lines] of bySteps) expect(lines.length, step).toBeLessThanOrEqual(8);
      expect(said.length, "in six seconds").toBeLessThanOrEqual(60);
      await proxied.proxy.accept();
      await stage.drained();
      await stage.check();
    });

    it("turned read-only, as a standby is: a coded error, no half-done work, and all goes on when it can be written (C4)", async () => {
      await using stage = await freshStage();
      const worker = await stage.worker({ ...STEADY.work, concurrency: 4 }, STEADY.open);
      await stage.enqueueMany("counter", 20, { ms: 50 });
      const name = await stage.one<string>("select current_database()");
      const readOnly = async (on: boolean) => {
        await stage.rows(`set default_transaction_read_only = off`);
        await stage.rows(`alter database ${name} set default_transaction_read_only = ${on ? "on" : "off"}`);
        await stage.rows("select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()");
      };
      await readOnly(true);
      const refused = await eventually("the refusal", () =>
        stage.pawl.enqueue("counter").then(
          () => undefined,
          (error: { code: string }) => (error.code === "store_read_only" ? error : undefined),
        ),
      );
      expect(refused).toMatchObject({ code: "store_read_only" });
      await eventually("the worker notices", () =>
        worker.heard("duty.failed").some(({ event }) => (event as { error: string }).error.includes("read-only")),
      );
      // Not by ending connections: those that answered "read-only" must have been let go by themselves.
      await stage.rows(`alter database ${name} set default_transaction_read_only = off`);
      await eventually("enqueueing works", () => stage.enqueue("counter").catch(() => undefined));
      await stage.drained();
      expect(worker.exit, worker.describe()).toBeUndefined();
      await stage.check({ attempted: await stage.everyId() });
    });

    it("whose advisory locks of ours are held by somebody else: processes start and claims go on (C12)", async () => {
      await using stage = await freshStage();
      await stage.rows("select pg_advisory_lock(hashtext('pawl.migrations')), pg_advisory_lock(hashtext('pawl.partitions'))");
      await stage.enqueueMany("counter", 20);
      await stage.spawn(STEADY.work, STEADY.open).ready(30_000);
      await stage.drained(30_000);
      await stage.rows("select pg_advisory_unlock_all()");
      await stage.check();
    });
  });
});

function groupBy<T extends { readonly event: object }>(lines: readonly T[]): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const line of lines) {
    const { duty } = line.event as { duty: string };
    groups.set(duty, [...(groups.get(duty) ?? []), line]);
  }
  return groups;
}

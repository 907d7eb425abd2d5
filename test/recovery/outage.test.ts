import { describe, expect, it } from "vitest";
import { eventually, throughout } from "../support/eventually.js";
import { freshFixture, proxiedFixture } from "../support/fixtures/fresh-fixture.js";
import { STEADY_LEASES } from "../support/fixtures/process-fixture.js";
import { describeOn } from "../support/servers/servers.js";

describeOn("embedded18", () => {
  describe.concurrent("a store that is away", () => {
    it("for longer than a lease: what ended meanwhile is settled on its return and runs once, what could not go on runs again (E9)", async () => {
      const proxied = await proxiedFixture();
      await using fixture = proxied.fixture;
      const worker = await fixture.worker({ ...STEADY_LEASES.work, concurrency: 40 }, STEADY_LEASES.open);
      const short = await fixture.enqueueMany("slow", 20, { ms: 1_200 });
      const long = await fixture.enqueueMany("slow", 5, { ms: 9_000 });
      await eventually("all run", () => fixture.handlerLog.lines("start").length === 25);
      await proxied.proxy.refuse();
      await eventually("the long ones were stopped", () => fixture.handlerLog.lines("abort").length === long.length);
      await eventually(
        "and their leases have run out",
        async () => await fixture.one<boolean>("select max(until) < now() - interval '1 second' from pawl.lease"),
      );
      await proxied.proxy.accept();
      await fixture.drained();

      for (const id of short) expect(await fixture.history(id)).toEqual(["succeeded"]);
      expect(
        fixture.handlerLog.lines("start").filter(({ job }) => short.includes(job)),
        "re-dispatched live jobs",
      ).toHaveLength(short.length);
      for (const id of long) expect((await fixture.history(id)).at(-1)).toBe("succeeded");
      expect(await fixture.one("select max(attempts)::int from pawl.any_attempt"), "no attempt was spent on it").toBe(1);
      expect(worker.exit, worker.describe()).toBeUndefined();
      await fixture.check();
    });

    it("three times does not make a long job a poison pill: its worker is alive, and gives it back (E9, A14)", async () => {
      const proxied = await proxiedFixture();
      await using fixture = proxied.fixture;
      await fixture.worker({ ...STEADY_LEASES.work, concurrency: 2 }, STEADY_LEASES.open);
      const job = await fixture.enqueue("slow", { ms: 6_000 });
      for (let outage = 1; outage <= 4; outage++) {
        await eventually("it runs", () => fixture.handlerLog.of(job.id, "start").length >= outage);
        await proxied.proxy.refuse();
        await eventually("it was stopped", () => fixture.handlerLog.of(job.id, "abort").length >= outage);
        await eventually("its lease has run out", async () => await fixture.one<boolean>("select max(until) < now() from pawl.lease"));
        await proxied.proxy.accept();
      }
      await fixture.drained();
      expect(await job.get()).toMatchObject({ state: "succeeded", crashes: 0, attempts: 1 });
      await fixture.check();
    });

    it("says so at most once a second and step, and nobody exits (C2, C3)", async () => {
      const proxied = await proxiedFixture();
      await using fixture = proxied.fixture;
      await fixture.enqueueMany("counter", 50, { ms: 30 });
      const worker = await fixture.worker({ ...STEADY_LEASES.work, concurrency: 10 }, STEADY_LEASES.open);
      await eventually("work is under way", () => fixture.handlerLog.lines("end").length > 3);
      await proxied.proxy.refuse();
      const from = worker.events.length;
      await throughout(6_000, () => expect(worker.exit, worker.describe()).toBeUndefined());
      const said = worker.events.slice(from).filter(({ name }) => name === "duty.failed");
      const bySteps = groupBy(said);
      expect(bySteps.size).toBeGreaterThan(0);
      for (const [step, lines] of bySteps) expect(lines.length, step).toBeLessThanOrEqual(8);
      expect(said.length, "in six seconds").toBeLessThanOrEqual(60);
      await proxied.proxy.accept();
      await fixture.drained();
      await fixture.check();
    });

    it("turned read-only, as a standby is: a coded error, no half-done work, and all goes on when it can be written (C4)", async () => {
      await using fixture = await freshFixture();
      const worker = await fixture.worker({ ...STEADY_LEASES.work, concurrency: 4 }, STEADY_LEASES.open);
      await fixture.enqueueMany("counter", 20, { ms: 50 });
      const name = await fixture.one<string>("select current_database()");
      const readOnly = async (on: boolean) => {
        await fixture.rows(`set default_transaction_read_only = off`);
        await fixture.rows(`alter database ${name} set default_transaction_read_only = ${on ? "on" : "off"}`);
        await fixture.rows("select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()");
      };
      await readOnly(true);
      const refused = await eventually("the refusal", () =>
        fixture.pawl.enqueue("counter").then(
          () => undefined,
          (error: { code: string }) => (error.code === "store_read_only" ? error : undefined),
        ),
      );
      expect(refused).toMatchObject({ code: "store_read_only" });
      await eventually("the worker notices", () =>
        worker.heard("duty.failed").some(({ event }) => (event as { error: string }).error.includes("read-only")),
      );
      // Not by ending connections: those that answered "read-only" must have been let go by themselves.
      await fixture.rows(`alter database ${name} set default_transaction_read_only = off`);
      await eventually("enqueueing works", () => fixture.enqueue("counter").catch(() => undefined));
      await fixture.drained();
      expect(worker.exit, worker.describe()).toBeUndefined();
      await fixture.check({ attempted: await fixture.storedIds() });
    });

    it("whose advisory locks of ours are held by somebody else: processes start and claims go on (C12)", async () => {
      await using fixture = await freshFixture();
      await fixture.rows("select pg_advisory_lock(hashtext('pawl.migrations')), pg_advisory_lock(hashtext('pawl.partitions'))");
      await fixture.enqueueMany("counter", 20);
      await fixture.spawn(STEADY_LEASES.work, STEADY_LEASES.open).ready(30_000);
      await fixture.drained(30_000);
      await fixture.rows("select pg_advisory_unlock_all()");
      await fixture.check();
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

import { describe, expect, it } from "vitest";
import { open } from "../../packages/pawl/src/index.js";
import { eventually, throughout } from "../support/eventually.js";
import { freshFixture, proxiedFixture } from "../support/fixtures/fresh-fixture.js";
import { STEADY_LEASES } from "../support/fixtures/process-fixture.js";
import { Standstill } from "../support/processes/standstill.js";
import { childTasks } from "../support/processes/worker-tasks.js";
import { describeOn } from "../support/servers/servers.js";

const TERMINATE = `select count(pg_terminate_backend(pid))::int from pg_stat_activity where datname = current_database() and application_name like 'pawl%'`;

describeOn("embedded18", () => {
  describe.concurrent("connections", () => {
    it("ended by the server fifty times, all of them, idle, busy, listening and renewing: no process exits, none leaks (C5, C10, I15)", async () => {
      await using fixture = await freshFixture("embedded18", { postgres: { connections: 3 } });
      const how = { ...STEADY_LEASES.open, postgres: { connections: 3 } };
      const worker = await fixture.worker({ ...STEADY_LEASES.work, concurrency: 5 }, how);
      await fixture.enqueueMany("counter", 300, { ms: 60 });
      await eventually("work is under way", () => fixture.handlerLog.lines("start").length > 5);
      let ended = 0;
      for (let round = 0; round < 50; round++) {
        ended += await eventually("there are connections again", async () => (await fixture.one<number>(TERMINATE)) || undefined);
      }
      expect(ended).toBeGreaterThanOrEqual(50);

      await fixture.drained();
      expect(worker.exit, worker.describe()).toBeUndefined();
      const listening = async () => (await fixture.connections()).get("pawl listen");
      await eventually("both processes listen again", async () => (await listening()) === 2);
      const all = await fixture.connections();
      expect(all.get("pawl listen")).toBe(2);
      expect(all.get("pawl renewal") ?? 0).toBeLessThanOrEqual(1);
      expect(all.get("pawl")).toBeLessThanOrEqual(2 * 3);
      await fixture.check();
    });

    it("an enqueue whose answer is lost says so, and repeating it with its idempotency key or unique key makes exactly one job (I12)", async () => {
      const proxied = await proxiedFixture();
      await using fixture = proxied.fixture;
      const { proxy } = proxied;
      const ways = [
        { options: { idempotencyKey: "r-1" }, lose: /commit\0/ },
        { options: { unique: "k-1" }, lose: /commit\0/ },
      ];
      for (const { options, lose } of ways) {
        const lost = proxy.loseAnswer(lose);
        await expect(fixture.pawl.enqueue("quick", {}, options)).rejects.toMatchObject({ code: "enqueue_uncertain" });
        await lost;
        const again = await fixture.enqueue("quick", {}, options);
        expect(again.enqueued, "the first one was stored").toBe("existing");
        expect((await fixture.enqueue("quick", {}, options)).id).toBe(again.id);
      }
      // Without either, in a statement of its own: as honest, and one more job is the caller's risk.
      const lost = proxy.loseAnswer(/pawl_enqueue/);
      await expect(fixture.pawl.enqueue("quick")).rejects.toMatchObject({ code: "enqueue_uncertain" });
      await lost;
      expect(await fixture.one("select count(*)::int from pawl.any_job")).toBe(3);
      await fixture.check({ quiet: false, attempted: await fixture.storedIds() });
    });

    it("a settlement whose answer is lost is sent again, and the effect is there once (I4)", async () => {
      const proxied = await proxiedFixture();
      await using fixture = proxied.fixture;
      const { proxy } = proxied;
      // Nobody reaps and no lease runs out: what is settled here, the worker itself has settled. Without maintenance
      // the only commit on the wire is that of the handler's transaction.
      const worker = await fixture.worker({ leaseDuration: "1m" }, { maintenance: false });
      const settlement = /pawl_settle\0/;

      const lost = proxy.loseAnswer(settlement);
      const quick = await fixture.enqueue("quick");
      await lost;
      await proxy.request(settlement);
      await eventually("its end is known", async () => (await quick.get())?.state === "succeeded");

      const commitLost = proxy.loseAnswer(/commit\0/);
      const counter = await fixture.enqueue("counter");
      await commitLost;
      await proxy.request(settlement);
      await fixture.drained();
      expect(worker.exit).toBeUndefined();
      expect(await fixture.history(quick.id)).toEqual(["succeeded"]);
      expect(await fixture.history(counter.id)).toEqual(["succeeded"]);
      await fixture.check();
    });

    it("the renewal's alone silent: the worker stops its own work before the lease ends (A8)", async () => {
      const proxied = await proxiedFixture();
      await using fixture = proxied.fixture;
      const worker = await fixture.worker({ leaseDuration: "3s", renewInterval: "500ms" }, STEADY_LEASES.open);
      const job = await fixture.enqueue("slow", { ms: 600_000 });
      await fixture.started(job.id);
      await eventually("its lease was renewed", async () => (await fixture.connections()).get("pawl renewal") === 1);
      const until = () => fixture.one<Date | null>("select max(until) from pawl.lease");
      proxied.proxy.blackhole({ only: "pawl renewal" });
      const end = (await until()) as Date;
      const { at } = await eventually("it was aborted", () => fixture.handlerLog.of(job.id, "abort")[0]);
      expect(at, "by the same machine's clock").toBeLessThan(end.getTime());
      expect(worker.heard("lease.lost")).toMatchObject([{ event: { reason: "not renewed in time" } }]);
      proxied.proxy.heal();
      await eventually("it runs again", () => fixture.handlerLog.of(job.id, "start").length > 1);
    });
  });

  // Held to seconds: not beside other tests.
  describe("connections, by the clock,", () => {
    it("refused at the start: a patient process waits for the server and works within 3 s of its return, an impatient one is told so (C6)", async () => {
      const proxied = await proxiedFixture();
      await using fixture = proxied.fixture;
      const job = await fixture.enqueue("counter");
      await proxied.proxy.refuse();
      const patient = fixture.spawn(STEADY_LEASES.work, { ...STEADY_LEASES.open, postgres: { startupWait: "forever" } });
      await expect(open(fixture.url, { postgres: { startupWait: 200 } })).rejects.toMatchObject({ code: "store_unreachable" });
      expect((await patient.hears("waiting")).event).toMatchObject({ for: "server", error: expect.stringContaining("cannot be reached") });
      await throughout(2_000, () => expect(patient.exit, patient.describe()).toBeUndefined());
      expect(patient.heard("ready")).toEqual([]);
      using still = new Standstill();
      await proxied.proxy.accept();
      const acceptedAt = Date.now();
      await fixture.started(job.id);
      expect((fixture.handlerLog.of(job.id, "start")[0]?.at ?? 0) - acceptedAt).toBeLessThanOrEqual(3_000 + still.ms);
      await fixture.drained();
      await fixture.check();
    });

    it("half open: every call ends within the statement's time-out and one connect, then work resumes on new ones (C7)", async () => {
      const proxied = await proxiedFixture({ postgres: { statementTimeout: 4_000, connections: 5 } });
      await using fixture = proxied.fixture;
      const { proxy } = proxied;
      const worker = await fixture.worker(
        { ...STEADY_LEASES.work, concurrency: 4 },
        { ...STEADY_LEASES.open, postgres: { statementTimeout: 4_000, connections: 4 } },
      );
      const [first] = await fixture.enqueueMany("counter", 40, { ms: 100 });
      await eventually("work is under way", () => fixture.handlerLog.lines("end").length > 3);

      using still = new Standstill();
      proxy.blackhole();
      const began = performance.now();
      const calls = [
        ...Array.from({ length: 10 }, () => fixture.pawl.jobs.get(first as string)),
        ...Array.from({ length: 10 }, () => fixture.enqueue("quick")),
      ];
      const answers = await Promise.allSettled(calls);
      expect(performance.now() - began).toBeLessThan(4_000 + 5_000 + 2_500 + still.ms);
      for (const answer of answers) {
        expect(answer).toMatchObject({ status: "rejected", reason: { code: expect.stringMatching(/^(store_unreachable|enqueue_uncertain)$/) } });
      }

      const before = fixture.handlerLog.lines("start").length;
      proxy.heal();
      const healedAt = performance.now();
      await eventually("calls succeed again", () => fixture.enqueue("quick").catch(() => undefined));
      await eventually("work resumes", () => fixture.handlerLog.lines("start").length > before);
      expect(performance.now() - healedAt).toBeLessThan(10_000 + still.ms);
      await fixture.drained();
      expect(worker.exit, worker.describe()).toBeUndefined();
      await fixture.check({ attempted: await fixture.storedIds() });
    });

    it("half open at shutdown do not keep the process (C7, E7)", async () => {
      const proxied = await proxiedFixture({ postgres: { statementTimeout: 4_000 } });
      await using fixture = proxied.fixture;
      const job = await fixture.enqueue("slow", { ms: 600_000 });
      const worker = await fixture.worker(
        { ...STEADY_LEASES.work, shutdownGrace: "100ms" },
        { ...STEADY_LEASES.open, postgres: { statementTimeout: 4_000 } },
      );
      await fixture.started(job.id);
      proxied.proxy.blackhole();
      worker.signal("SIGTERM");
      await eventually("it has exited", () => worker.exit, 40_000);
      expect(worker.exit).toEqual({ code: 0, signal: null });
      proxied.proxy.heal();
    });
  });

  describe.concurrent("wakeups", () => {
    // A worker that polls this rarely starts a job soon only if it is woken, by a message or by a poll of its own process.
    const RARELY = { ...STEADY_LEASES.work, pollInterval: "2m" } as const;
    const WITHOUT_POLLS = { maintenance: false } as const;

    it("return when the listener's connection is ended, and nothing enqueued meanwhile waits for the poll (C1)", async () => {
      await using fixture = await freshFixture();
      await fixture.worker(RARELY, WITHOUT_POLLS);
      const soon = async () => fixture.started((await fixture.enqueue("quick")).id, 10_000);
      await soon();
      await fixture.rows(
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'pawl listen'",
      );
      await soon();
      await eventually("both listen again", async () => (await fixture.connections()).get("pawl listen") === 2);
      await soon();
    });

    it("return within 13 s when the listener's connection falls silent, and polling serves meanwhile (C1)", async () => {
      const proxied = await proxiedFixture();
      await using fixture = proxied.fixture;
      await fixture.worker(RARELY, WITHOUT_POLLS);
      await fixture.started((await fixture.enqueue("quick")).id);
      await eventually("it has proved that it hears", async () => fixture.pawl.info().then(({ receivesWakeups }) => receivesWakeups));
      const listeners = async () =>
        (
          await fixture.rows<{ pid: number }>(
            "select pid from pg_stat_activity where datname = current_database() and application_name = 'pawl listen'",
          )
        ).map(({ pid }) => pid);
      const deaf = new Set(await listeners());
      using still = new Standstill();
      const deafSince = performance.now();
      proxied.proxy.blackhole({ only: "pawl listen" });
      proxied.proxy.heal();
      // It may still be met by a claim that is under way, or not be heard of.
      const job = await fixture.enqueue("quick");
      await eventually("both listen anew", async () => (await listeners()).filter((pid) => !deaf.has(pid)).length === 2, 30_000);
      await fixture.started(job.id, 5_000);
      // Ten seconds between proofs, three for one to come back, and the time to connect.
      expect(performance.now() - deafSince).toBeLessThan(13_000 + 4_000 + still.ms);
      await fixture.started((await fixture.enqueue("quick")).id, 5_000);

      const polling = await fixture.worker({ ...STEADY_LEASES.work, pollInterval: "300ms" }, STEADY_LEASES.open);
      proxied.proxy.blackhole({ only: "pawl listen" });
      await fixture.started((await fixture.enqueue("quick")).id, 5_000);
      expect(polling.exit).toBeUndefined();
      proxied.proxy.heal();
      await fixture.drained();
      await fixture.check();
    });

    it("that are never sent are made up for by the poll: a job of a transaction of the caller's does not wait for the poll", async () => {
      await using fixture = await freshFixture();
      await fixture.worker(RARELY, STEADY_LEASES.open);
      // One after the other, so that it has looked and found nothing before each.
      for (let n = 0; n < 3; n++) {
        await fixture.client.query("begin");
        const { id } = await fixture.enqueue("quick", {}, { tx: fixture.client });
        await fixture.client.query("commit");
        await fixture.started(id, 10_000);
        await fixture.drained();
      }
    });
  });
});

describeOn("pgbouncer", () => {
  it("a worker behind PgBouncer in transaction mode drains as ever, deaf to LISTEN or given a direct connection for it (C15)", async () => {
    await using fixture = await freshFixture("pgbouncer");
    await fixture.enqueueMany("counter", 60, { ms: 5 });
    await fixture.enqueueMany("quick", 300);
    await fixture.enqueueMany("once", 10);
    const deaf = await fixture.worker({ ...STEADY_LEASES.work, concurrency: 10 }, STEADY_LEASES.open);
    await fixture.drained();
    expect((await deaf.stop()).code).toBe(0);

    const hearing = await open(fixture.url, {
      tasks: childTasks(fixture.handlerLog),
      maintenance: false,
      postgres: { listenUrl: fixture.directUrl },
    });
    try {
      await hearing.work({ pollInterval: "2m" });
      await fixture.started((await fixture.enqueue("quick")).id, 10_000);
      await fixture.drained();
    } finally {
      await hearing.close();
    }
    await fixture.check();
  });
});

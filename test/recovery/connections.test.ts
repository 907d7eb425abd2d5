import { describe, expect, it } from "vitest";
import { open } from "../../packages/pawl/src/index.js";
import { childTasks } from "../support/child-tasks.js";
import { eventually, throughout } from "../support/eventually.js";
import { freshStage, proxiedStage } from "../support/fresh-stage.js";
import { describeOn } from "../support/servers.js";
import { STEADY } from "../support/stage.js";
import { Standstill } from "../support/standstill.js";

const TERMINATE = `select count(pg_terminate_backend(pid))::int from pg_stat_activity where datname = current_database() and application_name like 'pawl%'`;

describeOn("embedded18", () => {
  describe.concurrent("connections", () => {
    it("ended by the server fifty times, all of them, idle, busy, listening and renewing: no process exits, none leaks (C5, C10, I15)", async () => {
      await using stage = await freshStage("embedded18", { postgres: { connections: 3 } });
      const how = { ...STEADY.open, postgres: { connections: 3 } };
      const worker = await stage.worker({ ...STEADY.work, concurrency: 5 }, how);
      await stage.enqueueMany("counter", 300, { ms: 60 });
      await eventually("work is under way", () => stage.sink.lines("start").length > 5);
      let ended = 0;
      for (let round = 0; round < 50; round++) {
        ended += await eventually("there are connections again", async () => (await stage.one<number>(TERMINATE)) || undefined);
      }
      expect(ended).toBeGreaterThanOrEqual(50);

      await stage.drained();
      expect(worker.exit, worker.describe()).toBeUndefined();
      const listening = async () => (await stage.connections()).get("pawl listen");
      await eventually("both processes listen again", async () => (await listening()) === 2);
      const all = await stage.connections();
      expect(all.get("pawl listen")).toBe(2);
      expect(all.get("pawl renewal") ?? 0).toBeLessThanOrEqual(1);
      expect(all.get("pawl")).toBeLessThanOrEqual(2 * 3);
      await stage.check();
    });

    it("an enqueue whose answer is lost says so, and repeating it with its request id or key makes exactly one job (I12)", async () => {
      const proxied = await proxiedStage();
      await using stage = proxied.stage;
      const { proxy } = proxied;
      const ways = [
        { options: { request: "r-1" }, lose: /commit\0/ },
        { options: { key: "k-1" }, lose: /commit\0/ },
      ];
      for (const { options, lose } of ways) {
        const lost = proxy.loseAnswer(lose);
        await expect(stage.pawl.enqueue("quick", {}, options)).rejects.toMatchObject({ code: "enqueue_unknown" });
        await lost;
        const again = await stage.enqueue("quick", {}, options);
        expect(again.enqueued, "the first one was stored").toBe("existing");
        expect((await stage.enqueue("quick", {}, options)).id).toBe(again.id);
      }
      // Without either, in a statement of its own: as honest, and one more job is the caller's risk.
      const lost = proxy.loseAnswer(/pawl_enqueue/);
      await expect(stage.pawl.enqueue("quick")).rejects.toMatchObject({ code: "enqueue_unknown" });
      await lost;
      expect(await stage.one("select count(*)::int from pawl.any_job")).toBe(3);
      await stage.check({ quiet: false, attempted: await stage.everyId() });
    });

    it("a settlement whose answer is lost is sent again, and the effect is there once (I4)", async () => {
      const proxied = await proxiedStage();
      await using stage = proxied.stage;
      const { proxy } = proxied;
      // Nobody reaps and no lease runs out: what is settled here, the worker itself has settled. Without maintenance
      // the only commit on the wire is that of the handler's transaction.
      const worker = await stage.worker({ lease: "1m" }, { maintenance: false });
      const settlement = /pawl_settle\0/;

      const lost = proxy.loseAnswer(settlement);
      const quick = await stage.enqueue("quick");
      await lost;
      await proxy.request(settlement);
      await eventually("its end is known", async () => (await quick.get())?.state === "succeeded");

      const commitLost = proxy.loseAnswer(/commit\0/);
      const counter = await stage.enqueue("counter");
      await commitLost;
      await proxy.request(settlement);
      await stage.drained();
      expect(worker.exit).toBeUndefined();
      expect(await stage.history(quick.id)).toEqual(["succeeded"]);
      expect(await stage.history(counter.id)).toEqual(["succeeded"]);
      await stage.check();
    });

    it("the renewal's alone silent: the worker stops its own work before the lease ends (A8)", async () => {
      const proxied = await proxiedStage();
      await using stage = proxied.stage;
      const worker = await stage.worker({ lease: "3s", renewal: "500ms" }, STEADY.open);
      const job = await stage.enqueue("slow", { ms: 600_000 });
      await stage.started(job.id);
      await eventually("its lease was renewed", async () => (await stage.connections()).get("pawl renewal") === 1);
      const until = () => stage.one<Date | null>("select max(until) from pawl.lease");
      proxied.proxy.blackhole({ only: "pawl renewal" });
      const end = (await until()) as Date;
      const { at } = await eventually("it was aborted", () => stage.sink.of(job.id, "abort")[0]);
      expect(at, "by the same machine's clock").toBeLessThan(end.getTime());
      expect(worker.heard("lease.lost")).toMatchObject([{ event: { why: "not renewed in time" } }]);
      proxied.proxy.heal();
      await eventually("it runs again", () => stage.sink.of(job.id, "start").length > 1);
    });
  });

  // Held to seconds: not beside other tests.
  describe("connections, by the clock,", () => {
    it("refused at the start: a patient process waits for the server and works within 3 s of its return, an impatient one is told so (C6)", async () => {
      const proxied = await proxiedStage();
      await using stage = proxied.stage;
      const job = await stage.enqueue("counter");
      await proxied.proxy.refuse();
      const patient = stage.spawn(STEADY.work, { ...STEADY.open, postgres: { patience: "forever" } });
      await expect(open(stage.url, { postgres: { patience: 200 } })).rejects.toMatchObject({ code: "store_unreachable" });
      expect((await patient.hears("waiting")).event).toMatchObject({ for: "server", error: expect.stringContaining("cannot be reached") });
      await throughout(2_000, () => expect(patient.exit, patient.describe()).toBeUndefined());
      expect(patient.heard("ready")).toEqual([]);
      using still = new Standstill();
      await proxied.proxy.accept();
      const acceptedAt = Date.now();
      await stage.started(job.id);
      expect((stage.sink.of(job.id, "start")[0]?.at ?? 0) - acceptedAt).toBeLessThanOrEqual(3_000 + still.ms);
      await stage.drained();
      await stage.check();
    });

    it("half open: every call ends within the statement's time-out and one connect, then work resumes on new ones (C7)", async () => {
      const proxied = await proxiedStage({ postgres: { statementTimeout: 4_000, connections: 5 } });
      await using stage = proxied.stage;
      const { proxy } = proxied;
      const worker = await stage.worker(
        { ...STEADY.work, concurrency: 4 },
        { ...STEADY.open, postgres: { statementTimeout: 4_000, connections: 4 } },
      );
      const [first] = await stage.enqueueMany("counter", 40, { ms: 100 });
      await eventually("work is under way", () => stage.sink.lines("end").length > 3);

      using still = new Standstill();
      proxy.blackhole();
      const began = performance.now();
      const calls = [
        ...Array.from({ length: 10 }, () => stage.pawl.jobs.get(first as string)),
        ...Array.from({ length: 10 }, () => stage.enqueue("quick")),
      ];
      const answers = await Promise.allSettled(calls);
      expect(performance.now() - began).toBeLessThan(4_000 + 5_000 + 2_500 + still.ms);
      for (const answer of answers) {
        expect(answer).toMatchObject({ status: "rejected", reason: { code: expect.stringMatching(/^(store_unreachable|enqueue_unknown)$/) } });
      }

      const before = stage.sink.lines("start").length;
      proxy.heal();
      const healedAt = performance.now();
      await eventually("calls succeed again", () => stage.enqueue("quick").catch(() => undefined));
      await eventually("work resumes", () => stage.sink.lines("start").length > before);
      expect(performance.now() - healedAt).toBeLessThan(10_000 + still.ms);
      await stage.drained();
      expect(worker.exit, worker.describe()).toBeUndefined();
      await stage.check({ attempted: await stage.everyId() });
    });

    it("half open at shutdown do not keep the process (C7, E7)", async () => {
      const proxied = await proxiedStage({ postgres: { statementTimeout: 4_000 } });
      await using stage = proxied.stage;
      const job = await stage.enqueue("slow", { ms: 600_000 });
      const worker = await stage.worker({ ...STEADY.work, drain: "100ms" }, { ...STEADY.open, postgres: { statementTimeout: 4_000 } });
      await stage.started(job.id);
      proxied.proxy.blackhole();
      worker.signal("SIGTERM");
      await eventually("it has exited", () => worker.exit, 40_000);
      expect(worker.exit).toEqual({ code: 0, signal: null });
      proxied.proxy.heal();
    });
  });

  describe.concurrent("wake-ups", () => {
    // A worker that polls this rarely starts a job soon only if it is woken, by a message or by a pulse of its own process.
    const RARELY = { ...STEADY.work, poll: "2m" } as const;
    const WITHOUT_PULSES = { maintenance: false } as const;

    it("return when the listener's connection is ended, and nothing enqueued meanwhile waits for the poll (C1)", async () => {
      await using stage = await freshStage();
      await stage.worker(RARELY, WITHOUT_PULSES);
      const soon = async () => stage.started((await stage.enqueue("quick")).id, 10_000);
      await soon();
      await stage.rows(
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'pawl listen'",
      );
      await soon();
      await eventually("both listen again", async () => (await stage.connections()).get("pawl listen") === 2);
      await soon();
    });

    it("return within 13 s when the listener's connection falls silent, and polling serves meanwhile (C1)", async () => {
      const proxied = await proxiedStage();
      await using stage = proxied.stage;
      await stage.worker(RARELY, WITHOUT_PULSES);
      await stage.started((await stage.enqueue("quick")).id);
      await eventually("it has proved that it hears", async () => stage.pawl.info().then(({ hearsOthers }) => hearsOthers));
      const listeners = async () =>
        (
          await stage.rows<{ pid: number }>(
            "select pid from pg_stat_activity where datname = current_database() and application_name = 'pawl listen'",
          )
        ).map(({ pid }) => pid);
      const deaf = new Set(await listeners());
      using still = new Standstill();
      const deafSince = performance.now();
      proxied.proxy.blackhole({ only: "pawl listen" });
      proxied.proxy.heal();
      // It may still be met by a claim that is under way, or not be heard of.
      const job = await stage.enqueue("quick");
      await eventually("both listen anew", async () => (await listeners()).filter((pid) => !deaf.has(pid)).length === 2, 30_000);
      await stage.started(job.id, 5_000);
      // Ten seconds between proofs, three for one to come back, and the time to connect.
      expect(performance.now() - deafSince).toBeLessThan(13_000 + 4_000 + still.ms);
      await stage.started((await stage.enqueue("quick")).id, 5_000);

      const polling = await stage.worker({ ...STEADY.work, poll: "300ms" }, STEADY.open);
      proxied.proxy.blackhole({ only: "pawl listen" });
      await stage.started((await stage.enqueue("quick")).id, 5_000);
      expect(polling.exit).toBeUndefined();
      proxied.proxy.heal();
      await stage.drained();
      await stage.check();
    });

    it("that are never sent are made up for by the pulse: a job of a transaction of the caller's does not wait for the poll", async () => {
      await using stage = await freshStage();
      await stage.worker(RARELY, STEADY.open);
      // One after the other, so that it has looked and found nothing before each.
      for (let n = 0; n < 3; n++) {
        await stage.client.query("begin");
        const { id } = await stage.enqueue("quick", {}, { tx: stage.client });
        await stage.client.query("commit");
        await stage.started(id, 10_000);
        await stage.drained();
      }
    });
  });
});

describeOn("pgbouncer", () => {
  it("a worker behind PgBouncer in transaction mode drains as ever, deaf to LISTEN or given a direct connection for it (C15)", async () => {
    await using stage = await freshStage("pgbouncer");
    await stage.enqueueMany("counter", 60, { ms: 5 });
    await stage.enqueueMany("quick", 300);
    await stage.enqueueMany("once", 10);
    const deaf = await stage.worker({ ...STEADY.work, concurrency: 10 }, STEADY.open);
    await stage.drained();
    expect((await deaf.stop()).code).toBe(0);

    const hearing = await open(stage.url, { tasks: childTasks(stage.sink), maintenance: false, postgres: { listenUrl: stage.directUrl } });
    try {
      await hearing.work({ poll: "2m" });
      await stage.started((await stage.enqueue("quick")).id, 10_000);
      await stage.drained();
    } finally {
      await hearing.close();
    }
    await stage.check();
  });
});

import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { inTransaction } from "../../packages/pawl/conformance/transactions.js";
import type { InstanceId } from "../../packages/pawl/src/core/jobs/id.js";
import { again } from "../support/again.js";
import { eventually } from "../support/eventually.js";
import { HandoffFixture, LANE, LEASE_MS, newJob } from "../support/fixtures/handoff-fixture.js";
import { describeOn, migratedDatabase } from "../support/servers/servers.js";

describeOn("embedded18", () => {
  test("a job that is enqueued while a worker is idle is its own at once, under a lease that can be renewed and settled", async () => {
    await using database = await migratedDatabase();
    await using fixture = await HandoffFixture.open(database.url);
    await fixture.register();
    const id = await fixture.enqueue({ options: { tags: ["a"] } });
    expect(await fixture.counts(), "before the worker has said a word").toEqual({ ready: 0, running: 1 });
    const { claimed, since } = await fixture.nextHandoff();
    expect(claimed.jobs).toMatchObject([{ id, lane: LANE, input: '{"n":1}', options: { tags: ["a"] }, attempts: 0, crashes: 0 }]);
    expect(since).toBeLessThanOrEqual(performance.now());
    expect((await fixture.consumer.leases.renew(fixture.worker, [claimed.lease], LEASE_MS)).held).toEqual([claimed.lease]);
    const settled = await fixture.consumer.leases.settle(fixture.worker, [
      {
        lease: claimed.lease,
        job: id,
        lane: LANE,
        startedAt: claimed.now,
        finishedAt: claimed.now,
        patch: { outcome: "succeeded", next: "succeeded", attempts: 1, crashes: 0 },
      },
    ]);
    expect(settled).toEqual(["settled"]);
    expect(await fixture.producer.jobs.get("everyone", id)).toMatchObject({ state: "succeeded" });
    expect(await fixture.counts()).toEqual({ ready: 0, running: 0 });
  });

  test("one idle worker takes one job, and the next one is ready", async () => {
    await using database = await migratedDatabase();
    await using fixture = await HandoffFixture.open(database.url);
    await fixture.register();
    const [first, second] = [await fixture.enqueue(), await fixture.enqueue()];
    expect((await fixture.nextHandoff()).claimed.jobs.map(({ id }) => id)).toEqual([first]);
    expect(await fixture.producer.jobs.get("everyone", second)).toMatchObject({ state: "ready" });
  });

  test("an input that is too long for a message is handed off as well", async () => {
    await using database = await migratedDatabase();
    await using fixture = await HandoffFixture.open(database.url);
    await fixture.register();
    const input = JSON.stringify({ text: "ä".repeat(20_000) });
    await fixture.enqueue({ input, options: { tags: ["long"] } });
    expect((await fixture.nextHandoff()).claimed.jobs).toMatchObject([{ input, options: { tags: ["long"] } }]);
  });

  test.each<[string, (fixture: HandoffFixture) => Promise<unknown>]>([
    ["of a task it does not serve", (fixture) => fixture.enqueue({ lane: { task: "other" } })],
    ["of a queue it does not serve", (fixture) => fixture.enqueue({ lane: { queue: "other" } })],
    ["that runs at most once", (fixture) => fixture.enqueue({ options: { atMostOnce: true } })],
    ["of a paused queue", (fixture) => fixture.producer.lanes.pause("queue", "default").then(() => fixture.enqueue())],
    ["of a paused tenant", (fixture) => fixture.producer.lanes.pause("tenant", "acme").then(() => fixture.enqueue())],
    [
      "of a task under a limit",
      (fixture) => fixture.producer.policies.put({ kind: "task", name: "call" }, { concurrency: 1 }, 0).then(() => fixture.enqueue()),
    ],
    [
      "in a transaction of the caller's",
      async (fixture) => {
        await inTransaction(fixture.producer, (tx) => fixture.producer.jobs.enqueue([newJob()], tx));
      },
    ],
  ])("a job %s is not handed off", async (_, enqueue) => {
    await using database = await migratedDatabase();
    await using fixture = await HandoffFixture.open(database.url);
    await fixture.register({ queues: ["default"] });
    await enqueue(fixture);
    expect(await fixture.counts()).toEqual({ ready: 1, running: 0 });
    expect(await fixture.freeIdleWorkers()).toBe(1);
    expect(await fixture.closeWorker()).toBeUndefined();
  });

  test.each<[string, (fixture: HandoffFixture) => Promise<unknown>]>([
    ["in a row", (fixture) => inTransaction(fixture.producer, (tx) => fixture.producer.jobs.enqueue([newJob()], tx))],
    ["in a batch", (fixture) => fixture.producer.jobs.enqueue(Array.from({ length: 100 }, () => newJob()))],
  ])("a job is not handed off past others of its lane that wait %s", async (_, enqueue) => {
    await using database = await migratedDatabase();
    await using fixture = await HandoffFixture.open(database.url);
    await fixture.register();
    await enqueue(fixture);
    const { ready } = await fixture.counts();
    await fixture.enqueue();
    expect(await fixture.counts()).toEqual({ ready: ready + 1, running: 0 });
    await fixture.enqueue({ lane: { tenant: "another" } });
    expect(await fixture.counts(), "one of another lane is").toEqual({ ready: ready + 1, running: 1 });
  });

  test("nothing is handed to a process that is gone, though its registration is there", async () => {
    await using database = await migratedDatabase();
    await using fixture = await HandoffFixture.open(database.url);
    await fixture.register();
    await fixture.sql.query("select pg_terminate_backend(listener) from pawl.idle_worker");
    await eventually("its connection is gone", async () => {
      const { rows } = await fixture.sql.query(
        "select from pawl.idle_worker s where exists (select from pg_stat_activity a where a.pid = s.listener)",
      );
      return rows.length === 0;
    });
    await fixture.enqueue();
    expect(await fixture.counts()).toEqual({ ready: 1, running: 0 });
  });

  test("a message that is lost is made up for when the worker unregisters", async () => {
    await using database = await migratedDatabase();
    await using fixture = await HandoffFixture.open(database.url);
    await fixture.register();
    // As if it were said to nobody.
    await fixture.sql.query("update pawl.idle_worker set channel = 'nobody'");
    const id = await fixture.enqueue({ options: { tags: ["lost"] } });
    expect(await fixture.counts()).toEqual({ ready: 0, running: 1 });
    const handed = await fixture.closeWorker();
    expect(handed?.claimed.jobs).toMatchObject([{ id, lane: LANE, input: '{"n":1}', options: { tags: ["lost"] } }]);
  });

  test("a message that is lost is made up for by registering anew, under a lease that is renewed before the job is begun", async () => {
    await using database = await migratedDatabase();
    await using fixture = await HandoffFixture.open(database.url);
    await fixture.register({ duration: 6_000 });
    await fixture.sql.query("update pawl.idle_worker set channel = 'nobody'");
    const id = await fixture.enqueue();
    const { claimed, since } = await fixture.nextHandoff();
    const heardAt = performance.now();
    expect(claimed.jobs).toMatchObject([{ id }]);
    const [row] = (
      await fixture.sql.query(
        "select extract(epoch from until - claimed_at)::float8 * 1000 as lasts, extract(epoch from clock_timestamp())::float8 * 1000 as now from pawl.lease",
      )
    ).rows;
    expect(row?.lasts, "it was renewed").toBeGreaterThan(6_500);
    expect(heardAt - since, "and counts from then").toBeLessThan(1_000);
    expect(Math.abs(row?.now - claimed.now), "the store's time is that of now, not of the enqueue").toBeLessThan(1_000);
  });

  test("a job that was handed over while nobody was registered any more is told all the same", async () => {
    await using database = await migratedDatabase();
    await using fixture = await HandoffFixture.open(database.url);
    const idleWorker = await fixture.register();
    // As if standing up had failed.
    await fixture.sql.query("create rule keep as on delete to pawl.idle_worker do instead nothing");
    idleWorker.unregister();
    await eventually("it has tried", async () => {
      const { rows } = await fixture.sql.query("select from pg_stat_activity where query ~ 'delete from pawl.idle_worker' and query !~ 'insert'");
      return rows.length > 0;
    });
    const id = await fixture.enqueue();
    expect((await fixture.nextHandoff()).claimed.jobs).toMatchObject([{ id }]);
  });

  test("what nobody can understand is passed over, on every channel", async () => {
    await using database = await migratedDatabase();
    await using fixture = await HandoffFixture.open(database.url);
    await fixture.register();
    const [{ channel }] = (await fixture.sql.query("select channel from pawl.idle_worker")).rows as [{ channel: string }];
    for (const name of ["pawl", "pawl.work", channel])
      for (const payload of ["null", "{}", "[]", '{"wakeups":[null]}', "\u001f\u001f", "{"])
        await fixture.sql.query("select pg_notify($1, $2)", [name, payload]);
    const id = await fixture.enqueue();
    expect((await fixture.nextHandoff()).claimed.jobs).toMatchObject([{ id }]);
  });

  test("the name of the channel is not seen by those who watch the server", async () => {
    await using database = await migratedDatabase();
    await using fixture = await HandoffFixture.open(database.url);
    await fixture.register();
    const { rows } = await fixture.sql.query("select query from pg_stat_activity a join pawl.idle_worker s on strpos(a.query, s.channel) > 0");
    expect(rows).toEqual([]);
  });

  test("an idle worker is given up by a crash of the server, and the worker registers anew", async () => {
    await using database = await migratedDatabase();
    await using fixture = await HandoffFixture.open(database.url);
    await fixture.register();
    // What recovery does to an unlogged table.
    await fixture.sql.query("truncate pawl.idle_worker");
    await fixture.enqueue();
    expect(await fixture.counts()).toEqual({ ready: 1, running: 0 });
    expect(await fixture.closeWorker()).toBeUndefined();
  });

  test("whatever enqueues, idle workers and workers that unregister do at once, each job is handed over once or is ready", async () => {
    await using database = await migratedDatabase();
    await using fixture = await HandoffFixture.open(database.url);
    await fixture.register();
    await fixture.closeWorker();
    const rounds = again() ? 300 : 40;
    let handedOver = 0;
    for (let round = 0; round < rounds; round++) {
      const workers = Array.from({ length: 3 }, (_, n) => ({ name: `w${n}`, instance: randomUUID() as InstanceId }));
      const idleWorkers = workers.map((worker) => fixture.idleWorker({ worker }));
      for (const idleWorker of idleWorkers) idleWorker.register();
      // Each of a lane of its own, so that none waits for another.
      const jobs = Array.from({ length: 4 }, (_, n) => fixture.enqueue({ lane: { tenant: `t${round}-${n}` } }));
      await Promise.race([jobs[round % 4], new Promise((resolve) => setTimeout(resolve, round % 7))]);
      await Promise.all(idleWorkers.map((idleWorker) => idleWorker.close()));
      const stored = await Promise.all(jobs);
      const handed = fixture.handoffs.splice(0).flatMap(({ claimed }) => claimed.jobs.map(({ id }) => id));
      handedOver += handed.length;
      expect(new Set(handed).size, "none twice").toBe(handed.length);
      for (const id of stored) {
        const state = (await fixture.producer.jobs.get("everyone", id))?.state;
        expect(state, `job ${id}`).toBe(handed.includes(id) ? "running" : "ready");
      }
    }
    expect(handedOver, "some were").toBeGreaterThan(0);
  });
});

import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import type { BootId } from "../../packages/pawl/src/core/id.js";
import { again } from "../support/again.js";
import { eventually } from "../support/eventually.js";
import { LANE, LEASE, newJob, SeatScene } from "../support/seat-scene.js";
import { describeOn, migratedDatabase } from "../support/servers.js";

describeOn("embedded18", () => {
  test("a job that is enqueued while a worker sits is its own at once, under a lease that can be renewed and settled", async () => {
    await using database = await migratedDatabase();
    await using scene = await SeatScene.open(database.url);
    await scene.sit();
    const id = await scene.enqueue({ options: { tags: ["a"] } });
    expect(await scene.counts(), "before the worker has said a word").toEqual({ ready: 0, running: 1 });
    const { claimed, since } = await scene.handed();
    expect(claimed.jobs).toMatchObject([{ id, lane: LANE, input: '{"n":1}', options: { tags: ["a"] }, spent: 0, crashes: 0 }]);
    expect(since).toBeLessThanOrEqual(performance.now());
    expect((await scene.consumer.leases.renew(scene.worker, [claimed.lease], LEASE)).held).toEqual([claimed.lease]);
    const settled = await scene.consumer.leases.settle(scene.worker, [
      {
        lease: claimed.lease,
        job: id,
        lane: LANE,
        startedAt: claimed.now,
        finishedAt: claimed.now,
        patch: { outcome: "succeeded", next: "succeeded", spent: 1, crashes: 0 },
      },
    ]);
    expect(settled).toEqual(["settled"]);
    expect(await scene.producer.jobs.get("everyone", id)).toMatchObject({ state: "succeeded" });
    expect(await scene.counts()).toEqual({ ready: 0, running: 0 });
  });

  test("one seat takes one job, and the next one is ready", async () => {
    await using database = await migratedDatabase();
    await using scene = await SeatScene.open(database.url);
    await scene.sit();
    const [first, second] = [await scene.enqueue(), await scene.enqueue()];
    expect((await scene.handed()).claimed.jobs.map(({ id }) => id)).toEqual([first]);
    expect(await scene.producer.jobs.get("everyone", second)).toMatchObject({ state: "ready" });
  });

  test("an input that is too long for a message is handed over as well", async () => {
    await using database = await migratedDatabase();
    await using scene = await SeatScene.open(database.url);
    await scene.sit();
    const input = JSON.stringify({ text: "ä".repeat(20_000) });
    await scene.enqueue({ input, options: { tags: ["long"] } });
    expect((await scene.handed()).claimed.jobs).toMatchObject([{ input, options: { tags: ["long"] } }]);
  });

  test.each<[string, (scene: SeatScene) => Promise<unknown>]>([
    ["of a task it does not serve", (scene) => scene.enqueue({ lane: { task: "other" } })],
    ["of a queue it does not serve", (scene) => scene.enqueue({ lane: { queue: "other" } })],
    ["that runs at most once", (scene) => scene.enqueue({ options: { atMostOnce: true } })],
    ["of a paused queue", (scene) => scene.producer.lanes.pause("queue", "default").then(() => scene.enqueue())],
    ["of a paused tenant", (scene) => scene.producer.lanes.pause("tenant", "acme").then(() => scene.enqueue())],
    [
      "of a task under a limit",
      (scene) => scene.producer.policies.put({ kind: "task", name: "call" }, { concurrency: 1 }, 0).then(() => scene.enqueue()),
    ],
    [
      "in a transaction of the caller's",
      async (scene) => {
        await scene.producer.leases.transaction((tx) => scene.producer.jobs.enqueue([newJob()], tx));
      },
    ],
  ])("a job %s is not handed over", async (_, enqueue) => {
    await using database = await migratedDatabase();
    await using scene = await SeatScene.open(database.url);
    await scene.sit({ queues: ["default"] });
    await enqueue(scene);
    expect(await scene.counts()).toEqual({ ready: 1, running: 0 });
    expect(await scene.freeSeats()).toBe(1);
    expect(await scene.leave()).toBeUndefined();
  });

  test.each<[string, (scene: SeatScene) => Promise<unknown>]>([
    ["in a row", (scene) => scene.producer.leases.transaction((tx) => scene.producer.jobs.enqueue([newJob()], tx))],
    ["in a batch", (scene) => scene.producer.jobs.enqueue(Array.from({ length: 100 }, () => newJob()))],
  ])("a job is not handed over past others of its lane that wait %s", async (_, enqueue) => {
    await using database = await migratedDatabase();
    await using scene = await SeatScene.open(database.url);
    await scene.sit();
    await enqueue(scene);
    const { ready } = await scene.counts();
    await scene.enqueue();
    expect(await scene.counts()).toEqual({ ready: ready + 1, running: 0 });
    await scene.enqueue({ lane: { tenant: "another" } });
    expect(await scene.counts(), "one of another lane is").toEqual({ ready: ready + 1, running: 1 });
  });

  test("nothing is handed to a process that is gone, though its seat is there", async () => {
    await using database = await migratedDatabase();
    await using scene = await SeatScene.open(database.url);
    await scene.sit();
    await scene.sql.query("select pg_terminate_backend(listener) from pawl.seat");
    await eventually("its connection is gone", async () => {
      const { rows } = await scene.sql.query("select from pawl.seat s where exists (select from pg_stat_activity a where a.pid = s.listener)");
      return rows.length === 0;
    });
    await scene.enqueue();
    expect(await scene.counts()).toEqual({ ready: 1, running: 0 });
  });

  test("a message that is lost is made up for by whoever stands up", async () => {
    await using database = await migratedDatabase();
    await using scene = await SeatScene.open(database.url);
    await scene.sit();
    // As if it were said to nobody.
    await scene.sql.query("update pawl.seat set channel = 'nobody'");
    const id = await scene.enqueue({ options: { tags: ["lost"] } });
    expect(await scene.counts()).toEqual({ ready: 0, running: 1 });
    const handed = await scene.leave();
    expect(handed?.claimed.jobs).toMatchObject([{ id, lane: LANE, input: '{"n":1}', options: { tags: ["lost"] } }]);
  });

  test("a message that is lost is made up for by sitting anew, under a lease that is renewed before the job is begun", async () => {
    await using database = await migratedDatabase();
    await using scene = await SeatScene.open(database.url);
    await scene.sit({ duration: 6_000 });
    await scene.sql.query("update pawl.seat set channel = 'nobody'");
    const id = await scene.enqueue();
    const { claimed, since } = await scene.handed();
    const heardAt = performance.now();
    expect(claimed.jobs).toMatchObject([{ id }]);
    const [row] = (
      await scene.sql.query(
        "select extract(epoch from until - claimed_at)::float8 * 1000 as lasts, extract(epoch from clock_timestamp())::float8 * 1000 as now from pawl.lease",
      )
    ).rows;
    expect(row?.lasts, "it was renewed").toBeGreaterThan(6_500);
    expect(heardAt - since, "and counts from then").toBeLessThan(1_000);
    expect(Math.abs(row?.now - claimed.now), "the store's time is that of now, not of the enqueue").toBeLessThan(1_000);
  });

  test("a job that was handed over while nobody sat any more is told all the same", async () => {
    await using database = await migratedDatabase();
    await using scene = await SeatScene.open(database.url);
    const seat = await scene.sit();
    // As if standing up had failed.
    await scene.sql.query("create rule keep as on delete to pawl.seat do instead nothing");
    seat.standUp();
    await eventually("it has tried", async () => {
      const { rows } = await scene.sql.query("select from pg_stat_activity where query ~ 'delete from pawl.seat' and query !~ 'insert'");
      return rows.length > 0;
    });
    const id = await scene.enqueue();
    expect((await scene.handed()).claimed.jobs).toMatchObject([{ id }]);
  });

  test("what nobody can understand is passed over, on every channel", async () => {
    await using database = await migratedDatabase();
    await using scene = await SeatScene.open(database.url);
    await scene.sit();
    const [{ channel }] = (await scene.sql.query("select channel from pawl.seat")).rows as [{ channel: string }];
    for (const name of ["pawl", "pawl.work", channel])
      for (const payload of ["null", "{}", "[]", '{"hints":[null]}', "\u001f\u001f", "{"])
        await scene.sql.query("select pg_notify($1, $2)", [name, payload]);
    const id = await scene.enqueue();
    expect((await scene.handed()).claimed.jobs).toMatchObject([{ id }]);
  });

  test("the name of the channel is not seen by those who watch the server", async () => {
    await using database = await migratedDatabase();
    await using scene = await SeatScene.open(database.url);
    await scene.sit();
    const { rows } = await scene.sql.query("select query from pg_stat_activity a join pawl.seat s on strpos(a.query, s.channel) > 0");
    expect(rows).toEqual([]);
  });

  test("a seat is given up by a crash of the server, and the worker sits anew", async () => {
    await using database = await migratedDatabase();
    await using scene = await SeatScene.open(database.url);
    await scene.sit();
    // What recovery does to an unlogged table.
    await scene.sql.query("truncate pawl.seat");
    await scene.enqueue();
    expect(await scene.counts()).toEqual({ ready: 1, running: 0 });
    expect(await scene.leave()).toBeUndefined();
  });

  test("whatever enqueues, seats and workers that stand up do at once, each job is handed over once or is ready", async () => {
    await using database = await migratedDatabase();
    await using scene = await SeatScene.open(database.url);
    await scene.sit();
    await scene.leave();
    const rounds = again() ? 300 : 40;
    let handedOver = 0;
    for (let round = 0; round < rounds; round++) {
      const workers = Array.from({ length: 3 }, (_, n) => ({ name: `w${n}`, boot: randomUUID() as BootId }));
      const seats = workers.map((worker) => scene.seat({ worker }));
      for (const seat of seats) seat.sit();
      // Each of a lane of its own, so that none waits for another.
      const jobs = Array.from({ length: 4 }, (_, n) => scene.enqueue({ lane: { tenant: `t${round}-${n}` } }));
      await Promise.race([jobs[round % 4], new Promise((resolve) => setTimeout(resolve, round % 7))]);
      await Promise.all(seats.map((seat) => seat.leave()));
      const stored = await Promise.all(jobs);
      const handed = scene.came.splice(0).flatMap(({ claimed }) => claimed.jobs.map(({ id }) => id));
      handedOver += handed.length;
      expect(new Set(handed).size, "none twice").toBe(handed.length);
      for (const id of stored) {
        const state = (await scene.producer.jobs.get("everyone", id))?.state;
        expect(state, `job ${id}`).toBe(handed.includes(id) ? "running" : "ready");
      }
    }
    expect(handedOver, "some were").toBeGreaterThan(0);
  });
});

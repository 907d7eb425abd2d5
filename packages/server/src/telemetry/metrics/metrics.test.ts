import { task } from "pawl";
import { VERSION } from "pawl/service";
import { faultyStore, openTest, type TestOptions } from "pawl/testing";
import { describe, expect, test, vi } from "vitest";
import { METRICS } from "./metric-table.js";
import { type MetricsOptions, metricsOf } from "./metrics.js";
import { StoreGauges } from "./store-gauges.js";

class TooLate extends Error {
  override readonly name = "TooLate";
}

const fine = task<number, void>("fine", () => {});
const broken = task<number, void>("broken", { retry: 0 }, () => {
  throw new TooLate("no");
});
const serial = task<number, void>("serial", { limits: [{ name: "one", key: () => "k", serial: true }] }, () => {});

async function measured(options: TestOptions = {}, how: MetricsOptions = {}) {
  const world = await openTest({ tasks: [fine, broken, serial], ...options });
  const metrics = metricsOf(world.pawl, { fresh: 0, process: false, ...how });
  /** the values of one metric, by their labels */
  const read = async (name: string): Promise<Record<string, number>> => {
    const lines = (await metrics.text()).split("\n").filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
    return Object.fromEntries(lines.map((line) => [line.slice(name.length, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ") + 1))]));
  };
  return { ...world, metrics, read, [Symbol.asyncDispose]: () => world.close() };
}

describe("metrics", () => {
  test("name the version that the process runs", async () => {
    await using world = await measured();
    expect(await world.read("pawl_build_info")).toEqual({ [`{version="${VERSION}"}`]: 1 });
  });

  test("count jobs on their way in and out, by queue, task and outcome", async () => {
    await using world = await measured();
    await world.pawl.enqueueMany(fine, [1, 2, 3], { queue: "mail" });
    await world.pawl.enqueue(broken, 1);
    await world.drain();
    expect(await world.read("pawl_jobs_enqueued_total")).toEqual({ '{queue="mail",task="fine"}': 3, '{queue="default",task="broken"}': 1 });
    expect(await world.read("pawl_jobs_claimed_total")).toEqual({ "": 4 });
    expect(await world.read("pawl_attempts_settled_total")).toEqual({
      '{queue="mail",task="fine",outcome="succeeded"}': 3,
      '{queue="default",task="broken",outcome="failed"}': 1,
    });
    expect(await world.read("pawl_attempt_failures_total")).toEqual({ '{task="broken",failure="TooLate"}': 1 });
    expect(await world.read("pawl_jobs")).toMatchObject({
      '{queue="mail",task="fine",state="succeeded"}': 3,
      '{queue="default",task="broken",state="dead"}': 1,
      '{queue="default",task="broken",state="ready"}': 0,
    });
  });

  test("tell how long handlers take, how long jobs wait, and how long it all takes", async () => {
    let tries = 0;
    const twice = task<number, void>("twice", () => {
      if (tries++ === 0) throw new Error("once more");
    });
    await using world = await measured({ tasks: [twice], work: false });
    await world.pawl.enqueue(twice, 1);
    await world.advance("20s");
    await world.pawl.work();
    await world.drain();
    const name = "pawl_job_wait_seconds";
    expect(await world.read(`${name}_count`)).toEqual({ '{task="twice"}': 1 });
    expect(await world.read(`${name}_bucket`)).toMatchObject({
      '{task="twice",le="10"}': 0,
      '{task="twice",le="30"}': 1,
      '{task="twice",le="+Inf"}': 1,
    });
    expect(await world.read("pawl_attempt_duration_seconds_count")).toEqual({ '{task="twice"}': 2 });
    const total = (await world.read("pawl_job_end_to_end_seconds_sum"))['{task="twice"}'] as number;
    // 20 s of waiting, and the retry a second or so later
    expect(total).toBeGreaterThan(20.2);
    expect(total).toBeLessThan(40);
  });

  test("tell what waits, and what for", async () => {
    await using world = await measured({ work: false });
    const { pawl } = world;
    await pawl.enqueueMany(serial, [1, 2, 3]);
    await pawl.enqueue(fine, 1, { priority: "low", queue: "mail" });
    await pawl.queues.pause("mail");
    await pawl.tasks.pause("serial");
    await world.advance("1m");
    expect(await world.read("pawl_jobs_parked")).toMatchObject({ '{reason="serial"}': 2, '{reason="rate"}': 0 });
    expect(await world.read("pawl_oldest_wait_seconds")).toEqual({ '{queue="default",priority="5"}': 60, '{queue="mail",priority="2"}': 60 });
    expect(await world.read("pawl_queue_paused")).toEqual({ '{queue="mail"}': 1 });
    expect(await world.read("pawl_task_paused")).toEqual({ '{task="serial"}': 1 });
  });

  test("count the rise of the dead, however they died, and not what was there before", async () => {
    await using world = await measured({ work: false });
    await world.pawl.enqueueMany(fine, [1, 2], { startWithin: "1m" });
    expect(await world.read("pawl_jobs_died_total")).toEqual({ '{queue="default",task="fine"}': 0 });
    await world.advance("2m");
    expect(await world.read("pawl_jobs_died_total")).toEqual({ '{queue="default",task="fine"}': 2 });
    await world.pawl.dead.redrive();
    expect(await world.read("pawl_jobs_died_total")).toEqual({ '{queue="default",task="fine"}': 2 });
    const later = metricsOf(world.pawl, { process: false });
    expect(await later.text()).toContain('pawl_jobs_died_total{queue="default",task="fine"} 0');
  });

  test("say when somebody last looked for what is due, and how late it is", async () => {
    await using world = await measured({
      wrapStore: (store) => faultyStore(store, (operation) => (operation === "duties.tick" ? { kind: "fail" } : undefined)),
    });
    expect(await world.read("pawl_overdue_seconds")).toMatchObject({ '{kind="schedules"}': 0 });
    await world.pawl.schedules.put("often", fine, { every: "10s", input: 1 });
    await world.advance("45s");
    const lateness = await world.read("pawl_overdue_seconds");
    expect(lateness['{kind="schedules"}']).toBeGreaterThan(25);
    expect((await world.read("pawl_maintenance_last_poll_timestamp_seconds"))[""]).toBeGreaterThan(0);
    expect((await world.read("pawl_duty_failures_total"))['{duty="tick"}']).toBeGreaterThan(0);
  });

  test("of a process without maintenance say that it takes no part", async () => {
    await using world = await measured({ maintenance: false });
    await world.advance("10s");
    expect(await world.read("pawl_maintenance_last_poll_timestamp_seconds")).toEqual({ "": 0 });
  });

  test("tell how busy the workers of the process are", async () => {
    let free = () => {};
    const endless = task<number, void>("held", () => new Promise((resolve) => (free = resolve)));
    await using world = await measured({ tasks: [endless], work: { concurrency: 4 } });
    await world.pawl.enqueue(endless, 1);
    await world.idle();
    expect(await world.read("pawl_worker_slots")).toEqual({ "": 4 });
    expect(await world.read("pawl_worker_slots_busy")).toEqual({ "": 1 });
    expect(await world.read("pawl_workers_live")).toEqual({ "": 1 });
    expect(await world.read("pawl_worker_overruns")).toEqual({ "": 0 });
    await world.advance("10s");
    expect(await world.read("pawl_live_slots")).toEqual({ '{state="free"}': 3, '{state="busy"}': 1 });
    free();
    await world.idle();
    expect(await world.read("pawl_worker_slots_busy")).toEqual({ "": 0 });
  });

  test("have numbers of their own for the tenants that most is seen of, and no others", async () => {
    await using world = await measured({}, { tenants: 2 });
    const { pawl } = world;
    for (let n = 0; n < 300; n++) await pawl.enqueue(fine, n, { tenant: `t${n}` });
    await pawl.enqueueMany(
      fine,
      Array.from({ length: 50 }, () => 1),
      { tenant: "big" },
    );
    await pawl.enqueueMany(
      broken,
      Array.from({ length: 40 }, () => 1),
      { tenant: "bad" },
    );
    await world.drain();
    await world.metrics.text();
    await pawl.enqueue(fine, 1, { tenant: "big" });
    await pawl.enqueue(broken, 1, { tenant: "bad" });
    await world.drain();
    expect(await world.read("pawl_tenant_attempts_total")).toEqual({ '{tenant="big"}': 1, '{tenant="bad"}': 1 });
    expect(await world.read("pawl_tenant_failures_total")).toEqual({ '{tenant="big"}': 0, '{tenant="bad"}': 1 });
    expect(await world.read("pawl_tenant_jobs_waiting")).toEqual({ '{tenant="big"}': 0, '{tenant="bad"}': 0 });
    expect(await world.read("pawl_tenant_end_to_end_seconds_count")).toEqual({ '{tenant="big"}': 1, '{tenant="bad"}': 1 });
  });

  test("do not grow without end with the names that callers invent", async () => {
    await using world = await measured();
    for (let n = 0; n < 310; n++) await world.pawl.enqueue(fine, n, { queue: `q${n}` });
    await world.drain();
    const jobs = await world.read("pawl_jobs");
    expect(Object.keys(jobs)).toHaveLength(301 * 8);
    expect(jobs['{queue="other",task="other",state="succeeded"}']).toBe(10);
    const settled = await world.read("pawl_attempts_settled_total");
    expect(Object.keys(settled)).toHaveLength(201);
    expect(settled['{queue="other",task="fine",outcome="succeeded"}']).toBe(110);
  });

  test("answer while the store does not, and say so", async () => {
    let away = false;
    const around: TestOptions["wrapStore"] = (store) =>
      faultyStore(store, (operation) => (away && operation === "records.counts" ? { kind: "fail" } : undefined));
    await using world = await measured({ wrapStore: around });
    await world.pawl.enqueue(fine, 1);
    await world.drain();
    expect(await world.read("pawl_store_up")).toEqual({ "": 1 });
    away = true;
    expect(await world.read("pawl_store_up")).toEqual({ "": 0 });
    expect(await world.read("pawl_jobs")).toEqual({});
    expect(await world.read("pawl_jobs_claimed_total")).toEqual({ "": 1 });
    expect((await world.read("pawl_store_errors_total"))['{operation="records.counts"}']).toBeGreaterThan(0);
  });

  test("read the store once for all who ask within the time that it serves", async () => {
    let reads = 0;
    const around: TestOptions["wrapStore"] = (store) =>
      faultyStore(store, (operation) => {
        if (operation === "explain.waits") reads++;
        return undefined;
      });
    await using world = await measured({ wrapStore: around }, { fresh: 60_000 });
    await Promise.all([world.metrics.text(), world.metrics.text()]);
    await world.metrics.text();
    expect(reads).toBe(1);
  });

  test("wait once for a store that does not answer, and not again with every scrape", async () => {
    let answer = () => {};
    const answered = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const around: TestOptions["wrapStore"] = (store) =>
      faultyStore(store, (operation) => (operation === "records.counts" ? { kind: "hold", until: answered } : undefined));
    await using world = await openTest({ tasks: [fine], wrapStore: around });
    const gauges = new StoreGauges(world.pawl, 0, 3_000, () => []);
    const up = () => [...gauges.up()][0]?.value;
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      const first = gauges.refresh();
      await vi.advanceTimersByTimeAsync(3_000);
      await first;
      expect(up()).toBe(0);
      await gauges.refresh();
      expect(up()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
    answer();
    await vi.waitFor(() => expect(up()).toBe(1));
  });

  test("hear nothing more once they are stopped", async () => {
    await using world = await measured();
    world.metrics.stop();
    await world.pawl.enqueue(fine, 1);
    await world.drain();
    expect(await world.read("pawl_jobs_enqueued_total")).toEqual({});
  });

  test("set objectives for tasks by name, and for all others", async () => {
    await using world = await measured({}, { objectives: { broken: 1_500, "*": 60_000 } });
    await world.pawl.enqueue(fine, 1);
    await world.pawl.enqueue(broken, 1);
    await world.drain();
    expect(await world.read("pawl_job_objective_seconds")).toEqual({ '{task="fine"}': 60, '{task="broken"}': 1.5 });
  });

  test("set no objective for a task whose name every object knows", async () => {
    const oddlyNamed = task<number, void>("constructor", () => {});
    await using world = await measured({ tasks: [oddlyNamed] }, { objectives: { broken: 1_500 } });
    await world.pawl.enqueue(oddlyNamed, 1);
    await world.drain();
    expect(await world.read("pawl_job_objective_seconds")).toEqual({});
  });

  test("are all exposed, with their type and help", async () => {
    await using world = await measured();
    const text = await world.metrics.text();
    for (const [name, { type, help }] of Object.entries(METRICS)) {
      expect(text).toContain(`# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`);
    }
  });

  test.each<[string, object, RegExp]>([
    ["a misspelt option", { tenant: 5 }, /metrics\.tenant/],
    ["a part of a tenant", { tenants: 1.5 }, /metrics\.tenants/],
    ["too many tenants", { tenants: 101 }, /metrics\.tenants/],
    ["a time that is none", { fresh: -1 }, /metrics\.fresh/],
    ["an objective that is none", { objectives: { fine: 0 } }, /metrics\.objectives\.fine/],
    ["a word for yes", { process: "yes" }, /metrics\.process/],
  ])("refuse %s", async (_, options, says) => {
    await using world = await openTest({ work: false });
    expect(() => metricsOf(world.pawl, options)).toThrow(says);
  });
});

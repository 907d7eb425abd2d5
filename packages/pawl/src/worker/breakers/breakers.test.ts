import { afterEach, describe, expect, test } from "vitest";
import { NonRetryable } from "../../core/jobs/failure.js";
import { type TaskOptions, task } from "../../core/jobs/task.js";
import { faultyStore } from "../../testing/faulty.js";
import { openTest, type TestOptions, type TestPawl } from "../../testing/open.js";

let world: TestPawl;
afterEach(() => world.close());

const many = (count: number) => Array.from({ length: count }, () => ({}));
const PAIR = { tenant: "default", task: "charge" };

/** A task that fails while the service it calls is down. */
function calls(options: TaskOptions = {}) {
  const service = { up: true, calls: 0, failed: 0, running: 0, most: 0 };
  const charge = task("charge", { retry: () => 1_000, ...options }, async () => {
    service.calls++;
    service.most = Math.max(service.most, ++service.running);
    await new Promise<void>((resolve) => world.clock.after(100, resolve));
    service.running--;
    if (service.up) return;
    service.failed++;
    throw new Error("503");
  });
  return { charge, service };
}

async function open(tasks: TestOptions["tasks"], work: TestOptions["work"] = { concurrency: 20 }): Promise<TestPawl> {
  world = await openTest({ tasks: tasks ?? [], work });
  return world;
}
const stateOf = async (ref = PAIR) => (await world.pawl.breakers.get(ref))?.state ?? "closed";

describe("a service that goes down", () => {
  test("the breaker opens within seconds, then only probes spend attempts, one a minute", async () => {
    const { charge, service } = calls();
    await open([charge]);
    service.up = false;
    await world.pawl.enqueueMany(charge, many(200));
    await world.advance("6s");
    expect(await stateOf()).toBe("open");
    const before = service.calls;
    await world.advance("50s");
    expect(service.calls, "nothing is started").toBe(before);
    await world.advance("4m");
    expect(service.calls - before).toBe(4);
    const { ready, scheduled, dead } = await world.pawl.counts();
    expect({ waiting: ready + scheduled, dead }).toEqual({ waiting: 200, dead: 0 });
  });

  test("it closes step by step when the service is up again, and all jobs are done", async () => {
    const { charge, service } = calls();
    await open([charge]);
    service.up = false;
    await world.pawl.enqueueMany(charge, many(1_000));
    await world.advance("10s");
    service.up = true;
    service.most = 0;
    const seen = new Set<string>();
    for (let second = 0; second < 75; second++) {
      const breaker = await world.pawl.breakers.get(PAIR);
      if (breaker?.state === "half_open") {
        seen.add(`half_open ${breaker.limit}`);
        expect(service.running).toBeLessThanOrEqual(breaker.limit as number);
      }
      await world.advance("1s");
    }
    expect([...seen].slice(0, 3)).toEqual(["half_open 1", "half_open 2", "half_open 4"]);
    expect(await stateOf()).toBe("closed");
    expect(await world.pawl.counts()).toMatchObject({ succeeded: 1_000 });
    expect(service.most, "at full speed in the end").toBe(20);
  });

  test("other tenants and other tasks go on as if nothing were", async () => {
    const { charge, service } = calls();
    const mail = task("mail", async () => {});
    await open([charge, mail]);
    service.up = false;
    await world.pawl.enqueueMany(charge, many(100), { tenant: "acme" });
    await world.advance("6s");
    expect(await stateOf({ tenant: "acme", task: "charge" })).toBe("open");
    service.up = true;
    await world.pawl.enqueueMany(charge, many(50), { tenant: "umbrella" });
    await world.pawl.enqueueMany(mail, many(50), { tenant: "acme" });
    await world.advance("2s");
    expect(await world.pawl.counts()).toMatchObject({ succeeded: 100 });
    expect(await world.pawl.breakers.list({ state: "open" })).toMatchObject({ items: [{ tenant: "acme", task: "charge" }] });
  });

  test("what was claimed before it opened and has not started is given back, at no attempt", async () => {
    const { charge } = calls();
    await open([charge], { concurrency: 1 });
    await world.pawl.enqueueMany(charge, many(3));
    await world.advance(50);
    await world.pawl.breakers.open(PAIR);
    await world.advance("10s");
    const { items: jobs } = await world.pawl.jobs.list({ state: "ready" });
    expect(jobs.map(({ attempts }) => attempts)).toEqual([0, 0]);
  });
});

describe("what counts", () => {
  test("a few failures among successes open nothing", async () => {
    let n = 0;
    const flaky = task("charge", { retry: 0 }, async () => {
      if (n++ % 5 !== 0) throw new Error("503");
    });
    await open([flaky]);
    await world.pawl.enqueueMany(flaky, many(500));
    await world.advance("10s");
    expect(await world.pawl.counts()).toMatchObject({ succeeded: 100, dead: 400 });
    expect(await stateOf()).toBe("closed");
  });

  test("bad inputs, cancellations and snoozes say nothing of the service", async () => {
    const picky = task("charge", { retry: 3 }, async () => {
      throw new NonRetryable("no such account");
    });
    await open([picky]);
    await world.pawl.enqueueMany(picky, many(500));
    await world.advance("10s");
    expect(await world.pawl.counts()).toMatchObject({ dead: 500 });
    expect(await world.pawl.breakers.list()).toEqual({ items: [] });
  });

  test("a task can be without", async () => {
    const { charge, service } = calls({ breaker: false, retry: 0 });
    await open([charge]);
    service.up = false;
    await world.pawl.enqueueMany(charge, many(500));
    await world.advance("20s");
    expect(await world.pawl.counts()).toMatchObject({ dead: 500 });
    expect(await world.pawl.breakers.list()).toEqual({ items: [] });
  });

  test("its own rule is kept: a smaller minimum and a quicker probe", async () => {
    const { charge, service } = calls({ breaker: { minOutcomes: 5, probeInterval: "5s" } });
    await open([charge]);
    service.up = false;
    await world.pawl.enqueueMany(charge, many(5));
    await world.advance("8s");
    expect(await stateOf()).toBe("open");
    const before = service.calls;
    await world.advance("30s");
    expect(service.calls - before).toBeGreaterThanOrEqual(4);
  });

  test("one worker for whom it fails does not open it while others see successes", async () => {
    const { charge, service } = calls({ retry: 0 });
    let broken = true;
    await open([charge], {
      concurrency: 10,
      middleware: [
        async (_context, next) => {
          if (broken) throw new Error("no route to host");
          return next();
        },
      ],
    });
    await world.pawl.work({ concurrency: 10 });
    await world.pawl.enqueueMany(charge, many(2_000));
    for (let second = 0; second < 20; second++) {
      await world.advance("1s");
      expect(await stateOf()).not.toBe("open");
    }
    broken = false;
    expect(service.failed).toBe(0);
  });
});

test("thousands of lanes behind open breakers do not stand before one that is not, and cost the store nothing while they wait", async () => {
  const { charge } = calls();
  const asked: string[] = [];
  world = await openTest({
    tasks: [charge],
    wrapStore: (store) =>
      faultyStore(store, (operation) => {
        asked.push(operation);
        return undefined;
      }),
  });
  const tenants = Array.from({ length: 2_000 }, (_, n) => `t${n}`);
  for (const tenant of tenants) await world.pawl.breakers.open({ tenant, task: "charge" });
  for (const tenant of tenants) await world.pawl.enqueue(charge, {}, { tenant });
  await world.clock.advance(3_000);
  asked.length = 0;
  await world.clock.advance(10_000);
  expect(asked.filter((operation) => operation.startsWith("breakers.") && operation !== "breakers.listNotClosed")).toEqual([]);
  const since = world.clock.monotonic();
  const job = await world.pawl.enqueue(charge, {}, { tenant: "umbrella" });
  await world.clock.advance(200);
  expect((await job.get()).state).toBe("succeeded");
  expect(world.clock.monotonic() - since).toBe(200);
});

describe("people", () => {
  test("one that is forced open stops its jobs in every worker until it is reset, and nothing probes it", async () => {
    const { charge, service } = calls();
    await open([charge]);
    const told: string[] = [];
    world.pawl.on("breaker.changed", ({ tenant, task: of, state }) => told.push(`${tenant} ${of} ${state}`));
    expect(await world.pawl.breakers.open(PAIR)).toMatchObject({ ...PAIR, state: "open", forced: true });
    await world.idle();
    await world.pawl.enqueueMany(charge, many(10));
    await world.advance("2m");
    expect(service.calls).toBe(0);
    expect(await world.pawl.breakers.reset(PAIR)).toMatchObject({ state: "closed", forced: false });
    await world.advance("1s");
    expect(await world.pawl.counts()).toMatchObject({ succeeded: 10 });
    expect(told).toEqual(["default charge open", "default charge closed"]);
  });

  test("one that is forced closed never opens", async () => {
    const { charge, service } = calls({ retry: 0 });
    await open([charge]);
    service.up = false;
    await world.pawl.breakers.close(PAIR);
    await world.pawl.enqueueMany(charge, many(200));
    await world.advance("20s");
    expect(await world.pawl.counts()).toMatchObject({ dead: 200 });
    expect(await world.pawl.breakers.get(PAIR)).toMatchObject({ state: "closed", forced: true });
  });

  test("they are listed page by page, and what is misspelt is refused", async () => {
    const { charge } = calls();
    await open([charge], false);
    const { breakers } = world.pawl;
    for (const tenant of ["c", "a", "b"]) await breakers.open({ tenant, task: "charge" });
    const first = await breakers.list({ state: "open" }, { limit: 2 });
    expect(first).toMatchObject({ items: [{ tenant: "a" }, { tenant: "b" }], next: expect.any(String) });
    expect(await breakers.list({}, { limit: 2, cursor: first.next as string })).toMatchObject({ items: [{ tenant: "c" }] });
    await expect(breakers.list({ state: "ajar" as never })).rejects.toThrow(/filter.state/);
    await expect(breakers.list({ tennant: "a" } as never)).rejects.toThrow(/did you mean tenant/);
    await expect(breakers.open({ task: "charge" } as never)).rejects.toMatchObject({ code: "name_invalid" });
    await expect(breakers.reset({ ...PAIR, queue: "x" } as never)).rejects.toThrow(/queue/);
    await expect(breakers.get("charge" as never)).rejects.toMatchObject({ code: "option_invalid" });
  });
});

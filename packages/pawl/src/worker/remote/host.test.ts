import { describe, expect, test } from "vitest";
import { BOUNDS } from "../../core/values/bounds.js";
import type { Pawl } from "../../pawl.js";
import { allItems } from "../../scheduler/page.js";
import { serviceOf } from "../../service-of.js";
import type { Store } from "../../store/port/index.js";
import { faultyStore } from "../../testing/faulty.js";
import { openTest, type TestPawl } from "../../testing/open.js";
import type { Host, HostedTask, HostOptions, RemoteLease } from "./host.js";
import type { AttemptOutcome, ReportedOutcome } from "./reported-outcome.js";

const INSTANCE = "00000000-0000-4000-8000-00000000000a";
const TASKS: readonly HostedTask[] = [{ name: "resize" }];

function hostOf(pawl: Pawl, options: Partial<HostOptions> = {}): Host {
  return serviceOf(pawl).host({ name: "python", instance: INSTANCE, ...options });
}

/** Lets time pass until the host has answered. */
async function answered<T>(world: TestPawl, answer: Promise<T>): Promise<T> {
  let done = false;
  void answer.then(
    () => {
      done = true;
    },
    () => {
      done = true;
    },
  );
  await world.clock.quiet();
  while (!done) await world.clock.advance(world.clock.nextIn() ?? 1);
  return answer;
}

function only(leases: readonly RemoteLease[]): RemoteLease {
  expect(leases).toHaveLength(1);
  return leases[0] as RemoteLease;
}

function outcomesOf(leases: readonly RemoteLease[], reportedOutcome: ReportedOutcome): AttemptOutcome[] {
  return leases.flatMap(({ lease, jobs }) => jobs.map(({ id }) => ({ lease, job: id, reportedOutcome })));
}

describe("a worker that runs elsewhere", () => {
  test("is handed jobs, and what it says of them is recorded as its attempts", async () => {
    await using world = await openTest({ work: false });
    const { pawl } = world;
    const ok = await pawl.enqueue("resize", { photo: 1 });
    const bad = await pawl.enqueue("resize", { photo: 2 });
    const host = hostOf(pawl);
    const lease = only(await answered(world, host.claim({ tasks: TASKS, limit: 10, wait: "20s" })));
    expect(lease.jobs).toMatchObject([
      { id: ok.id, input: '{"photo":1}', attempts: 0, timeout: 300_000, lane: { task: "resize", tenant: "default" } },
      { id: bad.id, input: '{"photo":2}' },
    ]);
    expect(await ok.get()).toMatchObject({ state: "running" });

    const answers = await host.settle([
      {
        lease: lease.lease,
        job: ok.id,
        reportedOutcome: { outcome: "succeeded", output: { width: 3 } },
        notes: [{ level: "info", message: "done" }],
      },
      { lease: lease.lease, job: bad.id, reportedOutcome: { outcome: "failed", failure: { name: "IOError", message: "no disk" } } },
    ]);
    expect(answers).toEqual(["settled", "settled"]);
    expect(await ok.get()).toMatchObject({ state: "succeeded", output: { width: 3 }, attempts: 1 });
    expect((await ok.logs()).items).toMatchObject([{ level: "info", message: "done" }]);
    expect(await bad.get()).toMatchObject({ state: "scheduled", attempts: 1, failure: { kind: "error", name: "IOError", message: "no disk" } });
    expect((await ok.history()).items).toMatchObject([{ outcome: "succeeded", worker: "python" }]);
    await host.stop();
  });

  test("waits for a job that is not there yet, and gets it when it comes", async () => {
    await using world = await openTest({ work: false });
    const host = hostOf(world.pawl);
    const claim = host.claim({ tasks: TASKS, limit: 1, wait: "20s" });
    await world.clock.quiet();
    const job = await world.pawl.enqueue("resize");
    await world.clock.quiet();
    expect(await claim).toMatchObject([{ jobs: [{ id: job.id }] }]);
    await host.stop();
  });

  test("is answered with nothing when its wait is over", async () => {
    await using world = await openTest({ work: false });
    const host = hostOf(world.pawl);
    expect(await answered(world, host.claim({ tasks: TASKS, limit: 1, wait: "2s" }))).toEqual([]);
    await host.stop();
  });

  test("gets no more than it asked for, and never the same job twice", async () => {
    await using world = await openTest({ work: false });
    await world.pawl.enqueueMany("resize", [1, 2, 3, 4, 5]);
    const host = hostOf(world.pawl);
    const first = await answered(world, host.claim({ tasks: TASKS, concurrency: 5, limit: 2, wait: "5s" }));
    expect(first.flatMap(({ jobs }) => jobs)).toHaveLength(2);
    const rest = await answered(world, host.claim({ tasks: TASKS, concurrency: 5, limit: 10, wait: "5s" }));
    expect(rest.flatMap(({ jobs }) => jobs)).toHaveLength(3);
    await host.stop();
  });

  test("that repeats a claim whose answer was lost gets the same answer", async () => {
    await using world = await openTest({ work: false });
    await world.pawl.enqueueMany("resize", [1, 2, 3]);
    const host = hostOf(world.pawl);
    const first = await answered(world, host.claim({ tasks: TASKS, limit: 2, wait: "5s", idempotencyKey: "r1" }));
    expect(await host.claim({ tasks: TASKS, limit: 2, wait: "5s", idempotencyKey: "r1" })).toEqual(first);
    const other = await answered(world, host.claim({ tasks: TASKS, limit: 2, wait: "5s", idempotencyKey: "r2" }));
    expect(other.flatMap(({ jobs }) => jobs)).toHaveLength(1);
    await host.stop();
  });

  test("that repeats a settlement whose answer was lost is answered the same, and nothing is counted twice", async () => {
    await using world = await openTest({ work: false });
    const job = await world.pawl.enqueue("resize");
    const host = hostOf(world.pawl);
    const leases = await answered(world, host.claim({ tasks: TASKS, limit: 1, wait: "5s" }));
    const outcomes = outcomesOf(leases, { outcome: "succeeded" });
    expect(await host.settle([...outcomes, ...outcomes])).toEqual(["settled", "settled"]);
    expect(await host.settle(outcomesOf(leases, { outcome: "failed", failure: { message: "again" } }))).toEqual(["settled"]);
    expect((await job.history()).items).toHaveLength(1);
    await host.stop();
  });

  test("goes on with another process: what it holds is in the store, and so are the counts that decide", async () => {
    await using world = await openTest({ work: false });
    const job = await world.pawl.enqueue("resize", 1, { retry: 1 });
    const first = hostOf(world.pawl);
    const leases = await answered(world, first.claim({ tasks: TASKS, limit: 1, wait: "5s" }));
    await first.stop();
    const second = hostOf(world.pawl);
    expect(await second.renew(leases.map(({ lease }) => lease))).toMatchObject({ held: [leases[0]?.lease], lost: [] });
    expect(await second.settle(outcomesOf(leases, { outcome: "failed", failure: { message: "first" } }))).toEqual(["settled"]);
    expect(await job.get()).toMatchObject({ state: "scheduled", attempts: 1 });

    await world.clock.advance(10_000);
    const again = await answered(world, second.claim({ tasks: TASKS, limit: 1, wait: "5s" }));
    const third = hostOf(world.pawl);
    await third.settle(outcomesOf(again, { outcome: "failed", failure: { message: "second" } }));
    expect(await job.get(), "the one retry it was enqueued with is spent").toMatchObject({ state: "dead", attempts: 2 });
    await Promise.all([second.stop(), third.stop()]);
  });

  test.each([
    ["which may run at most once", { atMostOnce: true }, "dead"],
    ["which has no retries", { retry: 0 }, "dead"],
    ["of which nothing is said", undefined, "scheduled"],
  ] as const)("says with its ending how its task is run, to a process that did not hear the claim: one %s", async (_, run, state) => {
    await using world = await openTest({ work: false });
    const job = await world.pawl.enqueue("resize");
    const first = hostOf(world.pawl);
    const leases = await answered(world, first.claim({ tasks: [{ name: "resize", ...run }], limit: 1, wait: "5s" }));
    await first.stop();
    const second = hostOf(world.pawl);
    const outcomes = outcomesOf(leases, { outcome: "failed", failure: { message: "no disk" } });
    expect(await second.settle(outcomes.map((ending) => ({ ...ending, ...(run === undefined ? {} : { taskOptions: run }) })))).toEqual(["settled"]);
    expect(await job.get()).toMatchObject({ state });
    const wrong = outcomesOf(leases, { outcome: "released" }).map((ending) => ({ ...ending, taskOptions: { retry: -1 } }));
    await expect(second.settle(wrong)).rejects.toMatchObject({ code: "option_invalid" });
    await second.stop();
  });

  test("costs one read for each job that this process does not know, however often it is named", async () => {
    let reads = 0;
    const counting = (store: Store) =>
      faultyStore(store, (operation) => {
        if (operation === "jobs.get") reads++;
        return undefined;
      });
    await using world = await openTest({ work: false, wrapStore: counting });
    const job = await world.pawl.enqueue("resize");
    const first = hostOf(world.pawl);
    const { lease } = only(await answered(world, first.claim({ tasks: TASKS, limit: 1, wait: "5s" })));
    const second = hostOf(world.pawl);
    const line = { lease, job: job.id, level: "info", message: "hello" } as const;
    reads = 0;
    await second.note(new Array<typeof line>(100).fill(line));
    expect(reads).toBe(1);
    expect((await job.logs({ limit: 1_000 })).items).toHaveLength(100);
    await Promise.all([first.stop(), second.stop()]);
  });

  test("is refused more notes at once than are stored in one go, and nothing is settled", async () => {
    await using world = await openTest({ work: false });
    const [job] = await world.pawl.enqueueMany("resize", [1]);
    const host = hostOf(world.pawl);
    const leases = await answered(world, host.claim({ tasks: TASKS, limit: 1, wait: "5s" }));
    const notes = new Array<{ level: "info" }>(1_001).fill({ level: "info" });
    const [ending] = outcomesOf(leases, { outcome: "succeeded" });
    const outcomes = new Array<AttemptOutcome>(10).fill({ ...(ending as AttemptOutcome), notes });
    await expect(host.settle(outcomes)).rejects.toMatchObject({ code: "option_invalid" });
    expect(await job?.get()).toMatchObject({ state: "running" });
    await host.stop();
  });

  test("is refused a progress that is too large, by its place, and nothing is noted", async () => {
    await using world = await openTest({ work: false });
    const job = await world.pawl.enqueue("resize");
    const host = hostOf(world.pawl);
    const { lease } = only(await answered(world, host.claim({ tasks: TASKS, limit: 1, wait: "5s" })));
    const at = { lease, job: job.id };
    const large = "x".repeat(BOUNDS.progress);
    await expect(
      host.note([
        { ...at, level: "info", message: "one" },
        { ...at, level: "progress", data: large },
      ]),
    ).rejects.toMatchObject({
      code: "progress_too_large",
      details: { pointer: "/notes/1/data" },
    });
    expect((await job.logs()).items).toEqual([]);
    const outcomes: ReportedOutcome = { outcome: "succeeded" };
    await expect(host.settle([{ ...at, reportedOutcome: outcomes, notes: [{ level: "progress", data: large }] }])).rejects.toMatchObject({
      code: "progress_too_large",
    });
    expect((await job.get())?.state).toBe("running");
    await host.stop();
  });

  test.each(["this process", "another one"])("has its lines cut and counted by %s, and the last one says how many were dropped", async (where) => {
    await using world = await openTest({ work: false });
    const job = await world.pawl.enqueue("resize");
    const first = hostOf(world.pawl);
    const { lease } = only(await answered(world, first.claim({ tasks: TASKS, limit: 1, wait: "5s" })));
    const host = where === "this process" ? first : hostOf(world.pawl);
    const at = { lease, job: job.id };
    await host.note([{ ...at, level: "warn", message: "m".repeat(100_000), data: "d".repeat(1_000_000) }]);
    for (let i = 0; i < 3; i++) await host.note(Array.from({ length: 500 }, () => ({ ...at, level: "info" as const, message: "more" })));
    await host.settle([{ ...at, reportedOutcome: { outcome: "succeeded" } }]);
    const lines = await allItems(job.logs({ limit: 1_000 }));
    expect(lines[0]?.message).toMatch(/^m+… \(9\d{4} more characters were cut\)$/);
    expect(Buffer.byteLength(JSON.stringify(lines[0]?.data))).toBeLessThanOrEqual(BOUNDS.logData);
    expect(lines).toHaveLength(BOUNDS.logLines + 1);
    expect(lines.at(-1)?.message).toBe("… 501 more lines were dropped");
    await Promise.all([first.stop(), host.stop()]);
  });

  test("cannot record more of an effect than a worker here", async () => {
    await using world = await openTest({ work: false });
    const job = await world.pawl.enqueue("resize");
    const host = hostOf(world.pawl);
    const { lease } = only(await answered(world, host.claim({ tasks: TASKS, limit: 1, wait: "5s" })));
    const value = JSON.stringify("x".repeat(BOUNDS.recorded));
    await expect(host.record({ lease, job: job.id }, "charge", value, 1_000)).rejects.toMatchObject({ code: "output_unencodable" });
    await host.stop();
  });

  test("of another instance can neither settle nor renew what is not its own", async () => {
    await using world = await openTest({ work: false });
    const job = await world.pawl.enqueue("resize");
    const host = hostOf(world.pawl);
    const leases = await answered(world, host.claim({ tasks: TASKS, limit: 1, wait: "5s" }));
    const other = hostOf(world.pawl, { instance: "00000000-0000-4000-8000-00000000000b" });
    expect(await other.settle(outcomesOf(leases, { outcome: "succeeded" }))).toEqual(["stale"]);
    expect(await other.renew(leases.map(({ lease }) => lease))).toMatchObject({ held: [], lost: [leases[0]?.lease] });
    expect(await job.get()).toMatchObject({ state: "running" });
    await Promise.all([host.stop(), other.stop()]);
  });

  test("may have jobs it is allowed, and sees and ends no others", async () => {
    await using world = await openTest({ work: false });
    const theirs = await world.pawl.enqueue("resize", 1, { tenant: "theirs" });
    const allows = ({ tenant }: { tenant: string }) => tenant === "ours";
    const owner = hostOf(world.pawl, { tenants: ["theirs"] });
    const leases = await answered(world, owner.claim({ tasks: TASKS, limit: 1, wait: "5s" }));
    // The same instance, as if it had been guessed.
    const thief = hostOf(world.pawl, { tenants: ["ours"], allows });
    expect(await thief.settle(outcomesOf(leases, { outcome: "succeeded" }))).toEqual(["stale"]);
    await expect(thief.recall({ lease: only(leases).lease, job: theirs.id }, "x")).rejects.toMatchObject({ code: "lease_lost" });
    expect(await theirs.get()).toMatchObject({ state: "running" });
    await Promise.all([owner.stop(), thief.stop()]);
  });

  test("hears of a cancellation when it renews", async () => {
    await using world = await openTest({ work: false });
    const job = await world.pawl.enqueue("resize");
    const host = hostOf(world.pawl);
    const leases = await answered(world, host.claim({ tasks: TASKS, limit: 1, wait: "5s" }));
    await job.cancel("not needed");
    const ids = leases.map(({ lease }) => lease);
    expect(await host.renew(ids)).toMatchObject({ held: ids, cancel: [job.id] });
    await host.settle(outcomesOf(leases, { outcome: "cancelled" }));
    expect(await job.get()).toMatchObject({ state: "cancelled" });
    await host.stop();
  });

  test("that vanishes loses its jobs when their lease ends, and that spends no attempt", async () => {
    await using world = await openTest({ work: false });
    const job = await world.pawl.enqueue("resize");
    const host = hostOf(world.pawl);
    const leases = await answered(world, host.claim({ tasks: TASKS, limit: 1, wait: "5s" }));
    await world.clock.advance(20_000);
    expect(await job.get()).toMatchObject({ state: "ready", attempts: 0, crashes: 1 });
    expect(await host.renew([only(leases).lease])).toMatchObject({ held: [], lost: [only(leases).lease] });
    expect(await host.settle(outcomesOf(leases, { outcome: "succeeded" }))).toEqual(["stale"]);
    await host.stop();
  });

  test("that hangs cannot renew for ever: its lease ends after the timeout of its jobs", async () => {
    await using world = await openTest({ work: false });
    await world.pawl.enqueue("resize", 1, { timeout: "20s" });
    const host = hostOf(world.pawl);
    const lease = only(await answered(world, host.claim({ tasks: TASKS, limit: 1, wait: "5s" })));
    let held = 0;
    for (; held < 100; held++) {
      await world.clock.advance(5_000);
      if ((await host.renew([lease.lease])).held.length === 0) break;
    }
    expect(held).toBeGreaterThanOrEqual(6);
    expect(held).toBeLessThanOrEqual(8);
    await host.stop();
  });

  test("that gave up its ask does not keep the jobs that came for it", async () => {
    await using world = await openTest({ work: false });
    const gone = new AbortController();
    const host = hostOf(world.pawl);
    const asked = host.claim({ tasks: TASKS, limit: 1, wait: "20s", signal: gone.signal });
    await world.clock.quiet();
    const job = await world.pawl.enqueue("resize");
    // The claim is under way: nobody will hear its answer.
    gone.abort();
    expect(await asked).toEqual([]);
    await world.clock.advance(3_000);
    expect(await job.get()).toMatchObject({ state: "ready", attempts: 0, crashes: 0 });
    await host.stop();
  });

  test("has its resources held by what it says it has, also of jobs that it got through others", async () => {
    await using world = await openTest({ work: false });
    await world.pawl.enqueueMany("resize", [1, 2, 3]);
    const serves = { tasks: [{ name: "resize", needs: { resources: { gpu: 1 } } }], provides: { resources: { gpu: 2 } } };
    const host = hostOf(world.pawl);
    const lane = { queue: "default", priority: 5 as const, tenant: "default", task: "resize" };
    const one = await answered(world, host.claim({ ...serves, limit: 10, wait: "5s", heldJobs: [{ lane, count: 1 }] }));
    expect(one.flatMap(({ jobs }) => jobs)).toHaveLength(1);
    expect(await answered(world, host.claim({ ...serves, limit: 10, wait: "3s", heldJobs: [{ lane, count: 2 }] }))).toEqual([]);
    const both = await answered(world, host.claim({ ...serves, limit: 10, wait: "5s", heldJobs: [] }));
    expect(both.flatMap(({ jobs }) => jobs)).toHaveLength(2);
    await host.stop();
  });

  test("is bound by a limit of its task over all workers", async () => {
    await using world = await openTest({ work: false });
    await world.pawl.tasks.update("resize", { concurrency: 1 });
    await world.pawl.enqueueMany("resize", [1, 2]);
    const host = hostOf(world.pawl);
    const first = await answered(world, host.claim({ tasks: TASKS, limit: 10, wait: "5s" }));
    expect(first.flatMap(({ jobs }) => jobs)).toHaveLength(1);
    expect(await answered(world, host.claim({ tasks: TASKS, limit: 10, wait: "3s" }))).toEqual([]);
    await host.settle(outcomesOf(first, { outcome: "succeeded" }));
    const second = await answered(world, host.claim({ tasks: TASKS, limit: 10, wait: "5s" }));
    expect(second.flatMap(({ jobs }) => jobs)).toHaveLength(1);
    await host.stop();
  });

  test("runs by the retries and the timeout it says its task has, or else by what was published", async () => {
    await using world = await openTest({ work: false });
    const job = await world.pawl.enqueue("resize");
    const host = hostOf(world.pawl);
    const lease = only(await answered(world, host.claim({ tasks: [{ name: "resize", retry: 0, timeout: "7s" }], limit: 1, wait: "5s" })));
    expect(lease.jobs[0]?.timeout).toBe(7_000);
    await host.settle(outcomesOf([lease], { outcome: "failed", failure: { message: "no" } }));
    expect(await job.get()).toMatchObject({ state: "dead" });
    await host.stop();
  });

  test("decides about a retry itself where only its code can, whichever process hears of it", async () => {
    await using world = await openTest({ work: false });
    const job = await world.pawl.enqueue("resize");
    const host = hostOf(world.pawl);
    const leases = await answered(world, host.claim({ tasks: [{ name: "resize", retry: 0 }], limit: 1, wait: "5s" }));
    await host.settle(outcomesOf(leases, { outcome: "failed", failure: { message: "not yet" }, retryAfter: "1m", overridesPolicy: true }));
    expect(await job.get()).toMatchObject({ state: "scheduled", attempts: 1 });
    await host.stop();
  });

  test("may run at most once what it says so of: a crash is the end of it", async () => {
    await using world = await openTest({ work: false });
    const job = await world.pawl.enqueue("resize");
    const host = hostOf(world.pawl);
    const lease = only(await answered(world, host.claim({ tasks: [{ name: "resize", atMostOnce: true }], limit: 1, wait: "5s" })));
    await host.settle(outcomesOf([lease], { outcome: "failed", failure: { message: "no" } }));
    expect(await job.get()).toMatchObject({ state: "dead", attempts: 1 });
    await host.stop();
  });

  test.each([
    ["an instance that is no UUID", { instance: "x" }, /instance/],
    ["a name with a control character", { name: "a\u0001" }, /worker name/],
  ])("with %s is refused", async (_, options, why) => {
    await using world = await openTest({ work: false });
    expect(() => hostOf(world.pawl, options)).toThrow(why);
  });

  test.each([
    ["more jobs than a claim may ask for", { tasks: TASKS, limit: 1_001 }],
    ["concurrency of a task it does not have", { tasks: TASKS, limit: 1, concurrency: { tasks: { other: 1 } } }],
    ["a retry policy that is none", { tasks: [{ name: "resize", retry: "often" as never }], limit: 1 }],
    ["needs that are none", { tasks: [{ name: "resize", needs: { capabilities: 1 } as never }], limit: 1 }],
    ["counts that are none", { tasks: TASKS, limit: 1, heldJobs: [{ lane: {} as never, count: -1 }] }],
  ])("that asks with %s is refused", async (_, ask) => {
    await using world = await openTest({ work: false });
    await expect(hostOf(world.pawl).claim(ask)).rejects.toMatchObject({ code: expect.stringMatching(/^(option_invalid|task_unknown)$/) });
  });
});

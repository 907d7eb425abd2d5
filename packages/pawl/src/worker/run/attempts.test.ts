import { afterEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { barrier, MemoryFixture } from "../../../../../test/support/fixtures/memory-fixture.js";
import type { Context } from "../../core/jobs/context.js";
import { NonRetryable, RetryAfter, Snooze } from "../../core/jobs/failure.js";
import type { RetryPolicy } from "../../core/jobs/retry.js";
import { type AnyTask, task } from "../../core/jobs/task.js";

let fixture: MemoryFixture;
const open = (...tasks: AnyTask[]) => {
  fixture = new MemoryFixture({ tasks });
  return fixture;
};
afterEach(() => fixture.close());

describe("what a handler returns or throws", () => {
  test("its value is the output, and nothing returned is no output", async () => {
    const answer = task("answer", (input: { n: number }) => (input.n === 0 ? undefined : { twice: input.n * 2 }));
    const { clock } = open(answer);
    const [two, none] = [await fixture.enqueue(answer, { n: 2 }), await fixture.enqueue(answer, { n: 0 })];
    await fixture.work();
    await clock.quiet();
    expect((await fixture.job(two)).output).toBe('{"twice":4}');
    expect(await fixture.job(none)).toMatchObject({ state: "succeeded" });
    expect((await fixture.job(none)).output).toBeUndefined();
  });

  test("an output that is not JSON kills its job and says why", async () => {
    const bigint = task("bigint", () => 1n);
    const circular = task("circular", async () => {
      const loop: { self?: unknown } = {};
      loop.self = loop;
      return loop;
    });
    const huge = task("huge", () => "x".repeat(1_100_000));
    open(bigint, circular, huge);
    const ids = [await fixture.enqueue(bigint), await fixture.enqueue(circular), await fixture.enqueue(huge)];
    await fixture.work();
    await fixture.clock.quiet();
    for (const id of ids) expect(await fixture.job(id)).toMatchObject({ state: "dead", failure: { kind: "output_unencodable" }, attempts: 1 });
  });

  test("whatever is thrown is recorded, and the line goes on behind it", async () => {
    const things: Record<string, () => unknown> = {
      undefined: () => undefined,
      null: () => null,
      text: () => "just text",
      frozen: () => Object.freeze(new Error("frozen")),
      getter: () =>
        Object.defineProperty(new Error("x"), "message", {
          get() {
            throw new Error("do not look");
          },
        }),
      circular: () => {
        const error = new Error("circular") as Error & { cause?: unknown };
        error.cause = error;
        return error;
      },
    };
    const thrower = task("thrower", { retry: 0 }, async (input: { what: string }) => {
      throw things[input.what]?.();
    });
    const fine = task("fine", () => "ok");
    open(thrower, fine);
    const ids = await fixture.enqueueMany(
      thrower,
      Object.keys(things).map((what) => ({ what })),
    );
    const after = await fixture.enqueue(fine);
    await fixture.work({ concurrency: 1 });
    await fixture.clock.quiet();
    for (const id of ids) expect(await fixture.job(id)).toMatchObject({ state: "dead", failure: { kind: "error" } });
    expect(await fixture.state(after)).toBe("succeeded");
  });

  test("a failure is retried as the task says, and the attempt that succeeds ends it", async () => {
    const flaky = task("flaky", { retry: ["1s", "1s"] }, (_: unknown, ctx) => {
      if (ctx.attempt < 3) throw new Error("not yet");
      return ctx.attempt;
    });
    open(flaky);
    const id = await fixture.enqueue(flaky);
    await fixture.work();
    await fixture.maintain();
    await fixture.clock.advance(2_100);
    expect(await fixture.job(id)).toMatchObject({ state: "succeeded", output: "3", attempts: 3 });
    expect(await fixture.outcomes(id)).toEqual(["failed", "failed", "succeeded"]);
  });

  test("a retry function that throws or answers nonsense is told, in the log of its job too, and the default policy decides", async () => {
    const policies: Record<string, RetryPolicy> = {
      thrower: () => {
        throw new RangeError("no policy today");
      },
      joker: () => "soonish",
    };
    const tasks = Object.entries(policies).map(([name, retry]) =>
      task(name, { retry }, (_: unknown, ctx) => {
        if (ctx.attempt === 1) throw new Error("not yet");
        ctx.log.info("done");
      }),
    );
    open(...tasks);
    const ids = await Promise.all(tasks.map((one) => fixture.enqueue(one)));
    await fixture.work();
    await fixture.maintain();
    await fixture.clock.advance(1_100);
    const faults = ["it threw RangeError: no policy today", expect.stringContaining('it answered "soonish"')];
    for (const [place, id] of ids.entries()) {
      expect(await fixture.job(id)).toMatchObject({ state: "succeeded", attempts: 2 });
      expect(fixture.eventsNamed("retry.failed")[place]).toMatchObject({ job: id, attempt: 1, reason: faults[place] });
      expect((await fixture.inner.jobs.logs("everyone", id)).map(({ level }) => level)).toEqual(["error", "info"]);
    }
    const [line] = await fixture.inner.jobs.logs("everyone", ids[0] as (typeof ids)[0]);
    expect(line?.message).toBe("the retry function of its task failed, and the default policy decided: it threw RangeError: no policy today");
  });

  test("a job's own retry policy comes before its task's", async () => {
    const flaky = task("flaky", { retry: 10 }, () => {
      throw new Error("never");
    });
    open(flaky);
    const id = await fixture.enqueue(flaky, {}, { options: { retry: 0 } });
    await fixture.work();
    expect(await fixture.state(id)).toBe("dead");
  });

  test("NonRetryable, RetryAfter and Snooze are known by class, by subclass and by name", async () => {
    class CustomerGone extends NonRetryable {
      override readonly name = "CustomerGone";
    }
    const thrown: Record<string, Error> = {
      own: new NonRetryable("no"),
      sub: new CustomerGone("gone"),
      copy: Object.assign(new Error("from another copy of the package"), { name: "NonRetryable" }),
      after: new RetryAfter("7s"),
      snooze: new Snooze("9s"),
      "bad snooze": new Snooze("soonish"),
    };
    const thrower = task("thrower", (input: { what: string }) => {
      throw thrown[input.what];
    });
    open(thrower);
    const ids = Object.fromEntries(await Promise.all(Object.keys(thrown).map(async (what) => [what, await fixture.enqueue(thrower, { what })])));
    await fixture.work();
    const now = fixture.clock.now();
    for (const what of ["own", "sub", "copy"]) expect(await fixture.job(ids[what])).toMatchObject({ state: "dead", attempts: 1 });
    expect(await fixture.job(ids.after)).toMatchObject({ state: "scheduled", runAt: now + 7_000, attempts: 1 });
    expect(await fixture.job(ids.snooze)).toMatchObject({ state: "scheduled", runAt: now + 9_000, attempts: 0 });
    expect(await fixture.job(ids["bad snooze"])).toMatchObject({ state: "scheduled", attempts: 1 });
  });
});

describe("what is not run at all", () => {
  test("B3: one undecodable input in a batch of fifty dies alone", async () => {
    const ran: number[] = [];
    const note = task("note", { input: z.object({ n: z.number() }) }, ({ n }) => void ran.push(n));
    open(note);
    const ids = await fixture.enqueueMany(
      note,
      Array.from({ length: 50 }, (_, n) => (n === 17 ? { n: "seventeen" } : { n })),
    );
    await fixture.work({ concurrency: 50 });
    await fixture.clock.quiet();
    expect(ran).toHaveLength(49);
    expect(await fixture.job(ids[17] as (typeof ids)[0])).toMatchObject({
      state: "dead",
      failure: { kind: "undecodable", message: expect.stringContaining("n:") },
      attempts: 1,
    });
    expect(await fixture.state(ids[16] as (typeof ids)[0])).toBe("succeeded");
  });

  test("a schema may answer later", async () => {
    const seen: unknown[] = [];
    const checked = task("checked", { input: z.object({ n: z.number() }).refine(async ({ n }) => n > 0) }, (input) => void seen.push(input));
    open(checked);
    const [good, bad] = [await fixture.enqueue(checked, { n: 1 }), await fixture.enqueue(checked, { n: -1 })];
    await fixture.work();
    await fixture.clock.quiet();
    expect(seen).toEqual([{ n: 1 }]);
    expect([await fixture.state(good), await fixture.state(bad)]).toEqual(["succeeded", "dead"]);
  });

  test("a job past its expiry or its deadline dies without running", async () => {
    let ran = 0;
    const late = task("late", () => void ran++);
    open(late);
    const expired = await fixture.enqueue(late, {}, { options: { startWithin: 1_000 } });
    const overdue = await fixture.enqueue(late, {}, { options: { finishWithin: 1_000 } });
    fixture.clock.leap(1_001);
    await fixture.work();
    expect(ran).toBe(0);
    expect(await fixture.job(expired)).toMatchObject({ state: "dead", failure: { kind: "expired" } });
    expect(await fixture.job(overdue)).toMatchObject({ state: "dead", failure: { kind: "deadline" } });
  });
});

describe("timeouts", () => {
  const hang = () => new Promise<never>(() => {});

  test("A3: at its timeout the signal is aborted, then the attempt is settled, never early", async () => {
    const reasons: unknown[] = [];
    const slow = task("slow", { timeout: "10s", retry: 0 }, (_: unknown, { signal }) => {
      signal.addEventListener("abort", () => reasons.push(signal.reason.why));
      return hang();
    });
    open(slow);
    const id = await fixture.enqueue(slow);
    const worker = await fixture.work();
    await fixture.clock.advance(9_999);
    expect([reasons, await fixture.state(id)]).toEqual([[], "running"]);
    await fixture.clock.advance(1);
    expect(reasons).toEqual(["timeout"]);
    expect(await fixture.job(id)).toMatchObject({ state: "dead", failure: { kind: "timeout" } });
    expect(worker.status()).toMatchObject({ running: 0, overrun: 1, free: 9 });
  });

  test("A3: what a handler answers after its timeout changes nothing", async () => {
    const late = barrier<string>();
    const slow = task("slow", { timeout: "1s", retry: 0 }, () => late.opened);
    open(slow);
    const id = await fixture.enqueue(slow);
    const worker = await fixture.work();
    await fixture.clock.advance(1_000);
    late.open("too late");
    await fixture.clock.quiet();
    expect(await fixture.job(id)).toMatchObject({ state: "dead", failure: { kind: "timeout" } });
    expect(await fixture.outcomes(id)).toEqual(["failed"]);
    expect(worker.status().overrun).toBe(0);
  });

  test("a rejection after the timeout is swallowed", async () => {
    const late = barrier();
    const slow = task("slow", { timeout: "1s", retry: 0 }, () => late.opened);
    open(slow);
    const id = await fixture.enqueue(slow);
    await fixture.work();
    await fixture.clock.advance(1_000);
    late.fail(new Error("late"));
    await fixture.clock.quiet();
    expect((await fixture.job(id)).failure).toMatchObject({ kind: "timeout" });
  });

  test("a handler that blocked its own timer is late all the same", async () => {
    const blocking = task("blocking", { timeout: "1s", retry: 0 }, () => fixture.clock.leap(1_500));
    open(blocking);
    const id = await fixture.enqueue(blocking);
    await fixture.work();
    await fixture.clock.quiet();
    expect(await fixture.job(id)).toMatchObject({ state: "dead", failure: { kind: "timeout" } });
  });

  test("the deadline over all attempts cuts the last one short, and there is no further one", async () => {
    const slow = task("slow", { timeout: "1m" }, hang);
    open(slow);
    const id = await fixture.enqueue(slow, {}, { options: { finishWithin: 3_000 } });
    await fixture.work();
    await fixture.clock.advance(3_000);
    expect(await fixture.job(id)).toMatchObject({ state: "dead", failure: { kind: "deadline" } });
  });

  test("the nearest timeout wins: job, then task, then queue", async () => {
    const plain = task("plain", { retry: 0 }, hang);
    const own = task("own", { timeout: "2s", retry: 0 }, hang);
    fixture = new MemoryFixture({ tasks: [plain, own], defaults: { default: { timeout: "3s" } } });
    const ids = [await fixture.enqueue(own, {}, { options: { timeout: 1_000 } }), await fixture.enqueue(own), await fixture.enqueue(plain)];
    await fixture.work();
    for (let done = 0; done < 3; done++) {
      await fixture.clock.advance(1_000);
      expect(await Promise.all(ids.map((id) => fixture.state(id)))).toEqual(ids.map((_, i) => (i <= done ? "dead" : "running")));
    }
  });
});

describe("cancellation", () => {
  const deaf = task("deaf", () => new Promise<never>(() => {}));
  const polite = task(
    "polite",
    (_: unknown, { signal }: Context) => new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
  );

  test("a running job hears of it at once where wakeups arrive, and is cancelled when its handler stops", async () => {
    open(polite);
    const id = await fixture.enqueue(polite);
    await fixture.work();
    await fixture.inner.jobs.cancel("everyone", id, "changed my mind");
    await fixture.clock.quiet();
    expect(await fixture.state(id)).toBe("cancelled");
    expect(await fixture.outcomes(id)).toEqual(["cancelled"]);
  });

  test("where no wakeup arrives, within a second", async () => {
    fixture = new MemoryFixture({ tasks: [polite], wrapStore: (store) => ({ ...store, onWakeup: () => () => {}, receivesWakeups: () => false }) });
    const id = await fixture.enqueue(polite);
    await fixture.work();
    await fixture.clock.advance(300);
    await fixture.inner.jobs.cancel("everyone", id, "changed my mind");
    await fixture.clock.advance(999);
    expect(await fixture.state(id)).toBe("cancelled");
  });

  test("a handler that ignores it has five seconds, then its job is cancelled without it", async () => {
    open(deaf);
    const id = await fixture.enqueue(deaf);
    const worker = await fixture.work();
    await fixture.inner.jobs.cancel("everyone", id, "enough");
    await fixture.clock.advance(4_999);
    expect(await fixture.state(id)).toBe("running");
    await fixture.clock.advance(1);
    expect(await fixture.state(id)).toBe("cancelled");
    expect(worker.status().overrun).toBe(1);
  });

  test("one that succeeds all the same has succeeded", async () => {
    const end = barrier<string>();
    const late = task("late", () => end.opened);
    open(late);
    const id = await fixture.enqueue(late);
    await fixture.work();
    await fixture.inner.jobs.cancel("everyone", id, "enough");
    await fixture.clock.quiet();
    end.open("done");
    await fixture.clock.quiet();
    expect(await fixture.job(id)).toMatchObject({ state: "succeeded", output: '"done"' });
  });

  test("a job cancelled while it lies claimed and not started never runs", async () => {
    const ran: string[] = [];
    const mixed = task("mixed", (input: { n: string }) => {
      ran.push(input.n);
      return input.n === "hang" ? new Promise<never>(() => {}) : undefined;
    });
    open(mixed);
    const worker = await fixture.work({ concurrency: 1 });
    await fixture.enqueueMany(
      mixed,
      Array.from({ length: 20 }, () => ({ n: "quick" })),
    );
    await fixture.clock.quiet();
    // The worker has learnt that these jobs are quick, so it claims ahead of its slot.
    const [, victim] = await fixture.enqueueMany(mixed, [{ n: "hang" }, { n: "victim" }]);
    await fixture.clock.quiet();
    expect(worker.status()).toMatchObject({ running: 1, buffered: 1 });
    await fixture.inner.jobs.cancel("everyone", victim as NonNullable<typeof victim>, "no");
    await fixture.clock.advance(5_000);
    expect(await fixture.state(victim as NonNullable<typeof victim>)).toBe("cancelled");
    expect(ran).not.toContain("victim");
  });
});

describe("middleware", () => {
  test("wraps every attempt in the order given and sees what the handler answers", async () => {
    const seen: string[] = [];
    const named = task("named", () => {
      seen.push("handler");
      return 1;
    });
    open(named);
    const id = await fixture.enqueue(named);
    const layer = (name: string) => async (ctx: Context, next: () => Promise<unknown>) => {
      seen.push(`${name} in ${ctx.task}`);
      const value = (await next()) as number;
      seen.push(`${name} out`);
      return value + 1;
    };
    await fixture.work({ middleware: [layer("outer"), layer("inner")] });
    expect(seen).toEqual(["outer in named", "inner in named", "handler", "inner out", "outer out"]);
    expect((await fixture.job(id)).output).toBe("3");
  });

  test("may map errors, and may not run the handler twice", async () => {
    let ran = 0;
    const failing = task("failing", () => {
      ran++;
      throw new Error("HTTP 410");
    });
    open(failing);
    const id = await fixture.enqueue(failing);
    await fixture.work({
      middleware: [
        async (_, next) => {
          await next().catch(() => {});
          return next().catch((error: Error) => {
            throw new NonRetryable(error.message);
          });
        },
      ],
    });
    expect(ran).toBe(1);
    expect(await fixture.job(id)).toMatchObject({ state: "dead", failure: { message: expect.stringContaining("twice") } });
  });
});

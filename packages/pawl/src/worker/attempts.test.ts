import { afterEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { gate, World } from "../../../../test/support/world.js";
import { NonRetryable, RetryAfter, Snooze } from "../core/failure.js";
import type { Retry } from "../core/retry.js";
import type { Context } from "./context.js";
import { type AnyTask, task } from "./task.js";

let world: World;
const open = (...tasks: AnyTask[]) => {
  world = new World({ tasks });
  return world;
};
afterEach(() => world.close());

describe("what a handler returns or throws", () => {
  test("its value is the output, and nothing returned is no output", async () => {
    const answer = task("answer", (input: { n: number }) => (input.n === 0 ? undefined : { twice: input.n * 2 }));
    const { clock } = open(answer);
    const [two, none] = [await world.enqueue(answer, { n: 2 }), await world.enqueue(answer, { n: 0 })];
    await world.work();
    await clock.quiet();
    expect((await world.job(two)).output).toBe('{"twice":4}');
    expect(await world.job(none)).toMatchObject({ state: "succeeded" });
    expect((await world.job(none)).output).toBeUndefined();
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
    const ids = [await world.enqueue(bigint), await world.enqueue(circular), await world.enqueue(huge)];
    await world.work();
    await world.clock.quiet();
    for (const id of ids) expect(await world.job(id)).toMatchObject({ state: "dead", failure: { kind: "output_unencodable" }, spent: 1 });
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
    const ids = await world.enqueueMany(
      thrower,
      Object.keys(things).map((what) => ({ what })),
    );
    const after = await world.enqueue(fine);
    await world.work({ concurrency: 1 });
    await world.clock.quiet();
    for (const id of ids) expect(await world.job(id)).toMatchObject({ state: "dead", failure: { kind: "error" } });
    expect(await world.state(after)).toBe("succeeded");
  });

  test("a failure is retried as the task says, and the attempt that succeeds ends it", async () => {
    const flaky = task("flaky", { retry: ["1s", "1s"] }, (_: unknown, ctx) => {
      if (ctx.attempt < 3) throw new Error("not yet");
      return ctx.attempt;
    });
    open(flaky);
    const id = await world.enqueue(flaky);
    await world.work();
    await world.upkeep();
    await world.clock.advance(2_100);
    expect(await world.job(id)).toMatchObject({ state: "succeeded", output: "3", spent: 3 });
    expect(await world.outcomes(id)).toEqual(["failed", "failed", "succeeded"]);
  });

  test("a retry function that throws or answers nonsense is told, in the log of its job too, and the default policy decides", async () => {
    const policies: Record<string, Retry> = {
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
    const ids = await Promise.all(tasks.map((one) => world.enqueue(one)));
    await world.work();
    await world.upkeep();
    await world.clock.advance(1_100);
    const faults = ["it threw RangeError: no policy today", expect.stringContaining('it answered "soonish"')];
    for (const [place, id] of ids.entries()) {
      expect(await world.job(id)).toMatchObject({ state: "succeeded", spent: 2 });
      expect(world.heard("retry.failed")[place]).toMatchObject({ job: id, attempt: 1, why: faults[place] });
      expect((await world.inner.jobs.logs("everyone", id)).map(({ level }) => level)).toEqual(["error", "info"]);
    }
    const [line] = await world.inner.jobs.logs("everyone", ids[0] as (typeof ids)[0]);
    expect(line?.message).toBe("the retry function of its task failed, and the default policy decided: it threw RangeError: no policy today");
  });

  test("a job's own retry policy comes before its task's", async () => {
    const flaky = task("flaky", { retry: 10 }, () => {
      throw new Error("never");
    });
    open(flaky);
    const id = await world.enqueue(flaky, {}, { options: { retry: 0 } });
    await world.work();
    expect(await world.state(id)).toBe("dead");
  });

  test("NonRetryable, RetryAfter and Snooze are known by class, by subclass and by name", async () => {
    class Gone extends NonRetryable {
      override readonly name = "Gone";
    }
    const thrown: Record<string, Error> = {
      own: new NonRetryable("no"),
      sub: new Gone("gone"),
      copy: Object.assign(new Error("from another copy of the package"), { name: "NonRetryable" }),
      after: new RetryAfter("7s"),
      snooze: new Snooze("9s"),
      "bad snooze": new Snooze("soonish"),
    };
    const thrower = task("thrower", (input: { what: string }) => {
      throw thrown[input.what];
    });
    open(thrower);
    const ids = Object.fromEntries(await Promise.all(Object.keys(thrown).map(async (what) => [what, await world.enqueue(thrower, { what })])));
    await world.work();
    const now = world.clock.now();
    for (const what of ["own", "sub", "copy"]) expect(await world.job(ids[what])).toMatchObject({ state: "dead", spent: 1 });
    expect(await world.job(ids.after)).toMatchObject({ state: "scheduled", runAt: now + 7_000, spent: 1 });
    expect(await world.job(ids.snooze)).toMatchObject({ state: "scheduled", runAt: now + 9_000, spent: 0 });
    expect(await world.job(ids["bad snooze"])).toMatchObject({ state: "scheduled", spent: 1 });
  });
});

describe("what is not run at all", () => {
  test("B3: one undecodable input in a batch of fifty dies alone", async () => {
    const ran: number[] = [];
    const note = task("note", { input: z.object({ n: z.number() }) }, ({ n }) => void ran.push(n));
    open(note);
    const ids = await world.enqueueMany(
      note,
      Array.from({ length: 50 }, (_, n) => (n === 17 ? { n: "seventeen" } : { n })),
    );
    await world.work({ concurrency: 50 });
    await world.clock.quiet();
    expect(ran).toHaveLength(49);
    expect(await world.job(ids[17] as (typeof ids)[0])).toMatchObject({
      state: "dead",
      failure: { kind: "undecodable", message: expect.stringContaining("n:") },
      spent: 1,
    });
    expect(await world.state(ids[16] as (typeof ids)[0])).toBe("succeeded");
  });

  test("a schema may answer later", async () => {
    const seen: unknown[] = [];
    const checked = task("checked", { input: z.object({ n: z.number() }).refine(async ({ n }) => n > 0) }, (input) => void seen.push(input));
    open(checked);
    const [good, bad] = [await world.enqueue(checked, { n: 1 }), await world.enqueue(checked, { n: -1 })];
    await world.work();
    await world.clock.quiet();
    expect(seen).toEqual([{ n: 1 }]);
    expect([await world.state(good), await world.state(bad)]).toEqual(["succeeded", "dead"]);
  });

  test("a job past its expiry or its deadline dies without running", async () => {
    let ran = 0;
    const late = task("late", () => void ran++);
    open(late);
    const expired = await world.enqueue(late, {}, { options: { expire: 1_000 } });
    const overdue = await world.enqueue(late, {}, { options: { deadline: 1_000 } });
    world.clock.leap(1_001);
    await world.work();
    expect(ran).toBe(0);
    expect(await world.job(expired)).toMatchObject({ state: "dead", failure: { kind: "expired" } });
    expect(await world.job(overdue)).toMatchObject({ state: "dead", failure: { kind: "deadline" } });
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
    const id = await world.enqueue(slow);
    const worker = await world.work();
    await world.clock.advance(9_999);
    expect([reasons, await world.state(id)]).toEqual([[], "running"]);
    await world.clock.advance(1);
    expect(reasons).toEqual(["timeout"]);
    expect(await world.job(id)).toMatchObject({ state: "dead", failure: { kind: "timeout" } });
    expect(worker.status()).toMatchObject({ running: 0, overrun: 1, free: 9 });
  });

  test("A3: what a handler answers after its timeout changes nothing", async () => {
    const late = gate<string>();
    const slow = task("slow", { timeout: "1s", retry: 0 }, () => late.opened);
    open(slow);
    const id = await world.enqueue(slow);
    const worker = await world.work();
    await world.clock.advance(1_000);
    late.open("too late");
    await world.clock.quiet();
    expect(await world.job(id)).toMatchObject({ state: "dead", failure: { kind: "timeout" } });
    expect(await world.outcomes(id)).toEqual(["failed"]);
    expect(worker.status().overrun).toBe(0);
  });

  test("a rejection after the timeout is swallowed", async () => {
    const late = gate();
    const slow = task("slow", { timeout: "1s", retry: 0 }, () => late.opened);
    open(slow);
    const id = await world.enqueue(slow);
    await world.work();
    await world.clock.advance(1_000);
    late.fail(new Error("late"));
    await world.clock.quiet();
    expect((await world.job(id)).failure).toMatchObject({ kind: "timeout" });
  });

  test("a handler that blocked its own timer is late all the same", async () => {
    const blocking = task("blocking", { timeout: "1s", retry: 0 }, () => world.clock.leap(1_500));
    open(blocking);
    const id = await world.enqueue(blocking);
    await world.work();
    await world.clock.quiet();
    expect(await world.job(id)).toMatchObject({ state: "dead", failure: { kind: "timeout" } });
  });

  test("the deadline over all attempts cuts the last one short, and there is no further one", async () => {
    const slow = task("slow", { timeout: "1m" }, hang);
    open(slow);
    const id = await world.enqueue(slow, {}, { options: { deadline: 3_000 } });
    await world.work();
    await world.clock.advance(3_000);
    expect(await world.job(id)).toMatchObject({ state: "dead", failure: { kind: "deadline" } });
  });

  test("the nearest timeout wins: job, then task, then queue", async () => {
    const plain = task("plain", { retry: 0 }, hang);
    const own = task("own", { timeout: "2s", retry: 0 }, hang);
    world = new World({ tasks: [plain, own], defaults: { default: { timeout: "3s" } } });
    const ids = [await world.enqueue(own, {}, { options: { timeout: 1_000 } }), await world.enqueue(own), await world.enqueue(plain)];
    await world.work();
    for (let done = 0; done < 3; done++) {
      await world.clock.advance(1_000);
      expect(await Promise.all(ids.map((id) => world.state(id)))).toEqual(ids.map((_, i) => (i <= done ? "dead" : "running")));
    }
  });
});

describe("cancellation", () => {
  const deaf = task("deaf", () => new Promise<never>(() => {}));
  const polite = task(
    "polite",
    (_: unknown, { signal }: Context) => new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
  );

  test("a running job hears of it at once where hints arrive, and is cancelled when its handler stops", async () => {
    open(polite);
    const id = await world.enqueue(polite);
    await world.work();
    await world.inner.jobs.cancel("everyone", id, "changed my mind");
    await world.clock.quiet();
    expect(await world.state(id)).toBe("cancelled");
    expect(await world.outcomes(id)).toEqual(["cancelled"]);
  });

  test("where no hint arrives, within a second", async () => {
    world = new World({ tasks: [polite], around: (store) => ({ ...store, onHint: () => () => {}, hearsOthers: () => false }) });
    const id = await world.enqueue(polite);
    await world.work();
    await world.clock.advance(300);
    await world.inner.jobs.cancel("everyone", id, "changed my mind");
    await world.clock.advance(999);
    expect(await world.state(id)).toBe("cancelled");
  });

  test("a handler that ignores it has five seconds, then its job is cancelled without it", async () => {
    open(deaf);
    const id = await world.enqueue(deaf);
    const worker = await world.work();
    await world.inner.jobs.cancel("everyone", id, "enough");
    await world.clock.advance(4_999);
    expect(await world.state(id)).toBe("running");
    await world.clock.advance(1);
    expect(await world.state(id)).toBe("cancelled");
    expect(worker.status().overrun).toBe(1);
  });

  test("one that succeeds all the same has succeeded", async () => {
    const end = gate<string>();
    const late = task("late", () => end.opened);
    open(late);
    const id = await world.enqueue(late);
    await world.work();
    await world.inner.jobs.cancel("everyone", id, "enough");
    await world.clock.quiet();
    end.open("done");
    await world.clock.quiet();
    expect(await world.job(id)).toMatchObject({ state: "succeeded", output: '"done"' });
  });

  test("a job cancelled while it lies claimed and not started never runs", async () => {
    const ran: string[] = [];
    const mixed = task("mixed", (input: { n: string }) => {
      ran.push(input.n);
      return input.n === "hang" ? new Promise<never>(() => {}) : undefined;
    });
    open(mixed);
    const worker = await world.work({ concurrency: 1 });
    await world.enqueueMany(
      mixed,
      Array.from({ length: 20 }, () => ({ n: "quick" })),
    );
    await world.clock.quiet();
    // The worker has learnt that these jobs are quick, so it claims ahead of its slot.
    const [, victim] = await world.enqueueMany(mixed, [{ n: "hang" }, { n: "victim" }]);
    await world.clock.quiet();
    expect(worker.status()).toMatchObject({ running: 1, buffered: 1 });
    await world.inner.jobs.cancel("everyone", victim as NonNullable<typeof victim>, "no");
    await world.clock.advance(5_000);
    expect(await world.state(victim as NonNullable<typeof victim>)).toBe("cancelled");
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
    const id = await world.enqueue(named);
    const layer = (name: string) => async (ctx: Context, next: () => Promise<unknown>) => {
      seen.push(`${name} in ${ctx.task}`);
      const value = (await next()) as number;
      seen.push(`${name} out`);
      return value + 1;
    };
    await world.work({ middleware: [layer("outer"), layer("inner")] });
    expect(seen).toEqual(["outer in named", "inner in named", "handler", "inner out", "outer out"]);
    expect((await world.job(id)).output).toBe("3");
  });

  test("may map errors, and may not run the handler twice", async () => {
    let ran = 0;
    const failing = task("failing", () => {
      ran++;
      throw new Error("HTTP 410");
    });
    open(failing);
    const id = await world.enqueue(failing);
    await world.work({
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
    expect(await world.job(id)).toMatchObject({ state: "dead", failure: { message: expect.stringContaining("twice") } });
  });
});

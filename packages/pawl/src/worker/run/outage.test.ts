import { afterEach, describe, expect, test } from "vitest";
import { barrier, MemoryFixture } from "../../../../../test/support/fixtures/memory-fixture.js";
import type { Context } from "../../core/jobs/context.js";
import { NonRetryable, RetryAfter, Snooze } from "../../core/jobs/failure.js";
import { type AnyTask, task } from "../../core/jobs/task.js";
import { type PawlError, pawlError } from "../../core/values/error.js";
import type { Store } from "../../store/port/index.js";
import type { Operation } from "../../store/wrap/wrap-store.js";
import { type Fault, faultyStore } from "../../testing/faulty.js";

let fixture: MemoryFixture;
afterEach(() => fixture.close());

/** What a store says that is away. */
const away = (store = fixture.inner.engine.place): PawlError =>
  pawlError("store_unreachable", { store, reason: "Connection terminated unexpectedly" });

/** The first call of an operation goes wrong. */
function faultyAt(at: Operation, fault: () => Fault): (store: Store) => Store {
  return (store) => faultyStore(store, (operation, earlier) => (operation === at && earlier === 0 ? fault() : undefined));
}

/** Runs one job, which has a single attempt, until it is over. */
async function ranOf(work: AnyTask, around: (store: Store) => Store = (store) => store) {
  fixture = new MemoryFixture({ tasks: [work], wrapStore: around });
  const id = await fixture.enqueue(work);
  await fixture.work();
  await fixture.maintain();
  await fixture.clock.advance(60_000);
  const { state, attempts } = await fixture.job(id);
  return { state, attempts, outcomes: await fixture.outcomes(id) };
}

const GIVEN_BACK = { state: "succeeded", attempts: 1, outcomes: ["snoozed", "succeeded"] };
const COUNTED = { state: "dead", attempts: 1, outcomes: ["failed"] };
const ONE_TRY = { retry: 0 } as const;

describe("an outage of the store spends no attempt", () => {
  test("where it hits the look for what was recorded", async () => {
    const work = task("work", ONE_TRY, (_: unknown, { once }: Context) => once("effect", () => 1));
    expect(
      await ranOf(
        work,
        faultyAt("records.recall", () => ({ kind: "fail", error: away() })),
      ),
    ).toEqual(GIVEN_BACK);
  });

  test("where it hits the record of an effect that happened: that is run again, as its record was not written", async () => {
    let effects = 0;
    const work = task("work", ONE_TRY, (_: unknown, { once }: Context) => once("effect", () => ++effects));
    expect(
      await ranOf(
        work,
        faultyAt("records.record", () => ({ kind: "fail", error: away() })),
      ),
    ).toEqual(GIVEN_BACK);
    expect(effects).toBe(2);
  });

  test("where the answer to a record is lost: what was written is found, and the effect is not run again", async () => {
    let effects = 0;
    const work = task("work", ONE_TRY, (_: unknown, { once }: Context) => once("effect", () => ++effects));
    expect(
      await ranOf(
        work,
        faultyAt("records.record", () => ({ kind: "lose", error: away() })),
      ),
    ).toEqual(GIVEN_BACK);
    expect(effects).toBe(1);
  });

  test("whatever way the store fails, if it is not what it was given that it refuses", async () => {
    const work = task("work", ONE_TRY, (_: unknown, { once }: Context) => once("effect", () => 1));
    expect(
      await ranOf(
        work,
        faultyAt("records.recall", () => ({ kind: "fail" })),
      ),
    ).toEqual(GIVEN_BACK);
  });

  test.each<{ readonly how: string; readonly make: (outage: unknown) => unknown }>([
    { how: "as the cause of an error of the handler's", make: (cause) => new Error("saving failed", { cause }) },
    { how: "as the cause of a cause", make: (cause) => new Error("a", { cause: new Error("b", { cause }) }) },
    { how: "as one error of several", make: (error) => new AggregateError([new Error("mine"), new Error("b", { cause: error })], "all failed") },
    { how: "as the cause of one that says not to retry", make: (cause) => Object.assign(new NonRetryable("saving failed"), { cause }) },
    { how: "as the cause of one that says when to retry", make: (cause) => new RetryAfter("5s", "saving failed", { cause }) },
    { how: "in no way but that it came before", make: () => new Error("saving failed") },
    { how: "as nothing at all", make: () => undefined },
  ])("that is told $how", async ({ make }) => {
    const work = task("work", ONE_TRY, async (_: unknown, { once }: Context) => {
      try {
        await once("effect", () => 1);
      } catch (error) {
        throw make(error);
      }
    });
    expect(
      await ranOf(
        work,
        faultyAt("records.recall", () => ({ kind: "fail", error: away() })),
      ),
    ).toEqual(GIVEN_BACK);
  });

  test("that meets one of several things done at once", async () => {
    const work = task("work", ONE_TRY, (_: unknown, { once }: Context) => Promise.all([once("a", () => 1), once("b", () => 2), once("c", () => 3)]));
    expect(
      await ranOf(
        work,
        faultyAt("records.record", () => ({ kind: "fail", error: away() })),
      ),
    ).toEqual(GIVEN_BACK);
  });

  test("that meets all of several things, of which any would do", async () => {
    const work = task("work", ONE_TRY, (_: unknown, { once }: Context) => Promise.any([once("a", () => 1), once("b", () => 2)]));
    const around = (store: Store) =>
      faultyStore(store, (operation, earlier) => (operation === "records.recall" && earlier < 2 ? { kind: "fail", error: away() } : undefined));
    expect(await ranOf(work, around)).toEqual(GIVEN_BACK);
  });

  test("where a handler asks its store in other ways", async () => {
    let tries = 0;
    const work = task("work", ONE_TRY, async () => {
      if (++tries === 1) throw new Error("enqueueing failed", { cause: pawlError("enqueue_uncertain", { count: 1 }, away()) });
    });
    expect(await ranOf(work)).toEqual(GIVEN_BACK);
  });

  test("however often it comes, and the job waits longer each time: a second at first, thirty at last", async () => {
    const starts: number[] = [];
    const work = task("work", ONE_TRY, (_: unknown, { once }: Context) => {
      starts.push(fixture.clock.monotonic());
      return once("effect", () => 1);
    });
    fixture = new MemoryFixture({
      tasks: [work],
      wrapStore: (store) => faultyStore(store, (operation) => (operation === "records.recall" ? { kind: "fail", error: away() } : undefined)),
    });
    const id = await fixture.enqueue(work);
    await fixture.work();
    await fixture.maintain();
    await fixture.clock.advance(20 * 60_000);
    expect(await fixture.job(id)).toMatchObject({ attempts: 0 });
    const waits = starts.slice(1).map((at, index) => at - (starts[index] as number));
    expect(waits[0]).toBeLessThan(3_000);
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(999);
    expect(waits.at(-1)).toBeGreaterThanOrEqual(29_999);
    expect(Math.max(...waits)).toBeLessThan(34_000);
  });

  test("what it was is in the job's history", async () => {
    const work = task("work", ONE_TRY, (_: unknown, { once }: Context) => once("effect", () => 1));
    fixture = new MemoryFixture({ tasks: [work], wrapStore: faultyAt("records.recall", () => ({ kind: "fail", error: away() })) });
    const id = await fixture.enqueue(work);
    await fixture.work();
    await fixture.clock.quiet();
    expect(await fixture.history(id)).toMatchObject([{ outcome: "snoozed", failure: { name: "PawlError", code: "store_unreachable" } }]);
  });
});

describe("what is the handler's own spends an attempt", () => {
  test("an effect that fails", async () => {
    const work = task("work", ONE_TRY, (_: unknown, { once }: Context) => once("effect", () => Promise.reject(new Error("card declined"))));
    expect(await ranOf(work)).toEqual(COUNTED);
  });

  test("a result that the store refuses as such", async () => {
    const refused = () => pawlError("store_failed", { operation: "record", reason: "too long", lasting: true });
    const work = task("work", ONE_TRY, (_: unknown, { once }: Context) => once("effect", () => 1));
    expect(
      await ranOf(
        work,
        faultyAt("records.record", () => ({ kind: "fail", error: refused() })),
      ),
    ).toEqual(COUNTED);
  });

  test("an outage of another store that the handler works with, also inside an effect", async () => {
    const work = task("work", ONE_TRY, (_: unknown, { once }: Context) => once("effect", () => Promise.reject(away("postgres://elsewhere"))));
    expect(await ranOf(work)).toEqual(COUNTED);
  });

  test("a snooze after an outage is one, for as long as the handler said", async () => {
    const work = task("work", ONE_TRY, async (_: unknown, { once }: Context) => {
      await once("effect", () => 1).catch(() => {
        throw new Snooze("10m");
      });
    });
    fixture = new MemoryFixture({ tasks: [work], wrapStore: faultyAt("records.recall", () => ({ kind: "fail", error: away() })) });
    const id = await fixture.enqueue(work);
    await fixture.work();
    await fixture.clock.quiet();
    expect((await fixture.job(id)).runAt).toBeGreaterThan(fixture.clock.now() + 9 * 60_000);
  });

  test("what a handler throws that goes around in a circle, or throws when it is looked at", async () => {
    const circle: { cause?: unknown } = new Error("round");
    circle.cause = circle;
    const thorny = new Proxy(new Error("no"), {
      get() {
        throw new Error("do not look");
      },
    });
    const thrown = [circle, thorny];
    const work = task("work", { retry: ["1s"] }, () => Promise.reject(thrown.pop()));
    expect(await ranOf(work)).toMatchObject({ state: "dead", attempts: 2 });
  });
});

test("a job that may run at most once is dead of it: it had begun", async () => {
  const work = task("work", { atMostOnce: true }, (_: unknown, { once }: Context) => once("effect", () => 1));
  expect(
    await ranOf(
      work,
      faultyAt("records.recall", () => ({ kind: "fail", error: away() })),
    ),
  ).toEqual(COUNTED);
});

test("a job that was cancelled meanwhile is cancelled", async () => {
  const outage = barrier();
  const work = task("work", ONE_TRY, (_: unknown, { once }: Context) => once("effect", () => 1));
  fixture = new MemoryFixture({ tasks: [work], wrapStore: faultyAt("records.recall", () => ({ kind: "hold", until: outage.opened })) });
  const id = await fixture.enqueue(work);
  await fixture.work();
  await fixture.inner.jobs.cancel("everyone", id, "no longer needed");
  await fixture.clock.advance(2_000);
  outage.fail(away());
  await fixture.clock.quiet();
  expect(await fixture.state(id)).toBe("cancelled");
});

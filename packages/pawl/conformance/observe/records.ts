import { expect } from "vitest";
import type { LeaseId } from "../../src/core/jobs/id.js";
import type { LogEntry } from "../../src/store/port/settle/records.js";
import type { Test } from "../suite.js";
import { ANA, ANA_REBORN, BOB, FAILED, type HeldJob, HOUR, MINUTE, NOBODY, START, SUCCEEDED } from "../world.js";

const line = (held: HeldJob, message: string, more: Partial<LogEntry> = {}): LogEntry => ({
  lease: held.claimed.lease,
  job: held.job.id,
  at: START,
  level: "info",
  message,
  ...more,
});
const effect = (held: HeldJob, value: string, ttl = HOUR, name = "charge") => ({ lease: held.claimed.lease, job: held.job.id, name, value, ttl });

export function recordTests(test: Test): void {
  test("log lines are kept in order, as they were written", async (w) => {
    const id = await w.add();
    const held = await w.hold();
    await w.store.records.log(ANA, [line(held, "one"), line(held, "two\n😀", { at: START + 1, level: "warn", data: '{"n":[1]}' })]);
    await w.store.records.log(ANA, [line(held, "three", { at: START + 2, level: "error" })]);
    expect(await w.store.jobs.logs("everyone", id)).toEqual([
      { at: START, level: "info", message: "one" },
      { at: START + 1, level: "warn", message: "two\n😀", data: '{"n":[1]}' },
      { at: START + 2, level: "error", message: "three" },
    ]);
  });

  test("log lines of one millisecond come back in the order in which they were written", async (w) => {
    const id = await w.add();
    const held = await w.hold();
    // Of many lengths: a table puts a short row where a long one had no room.
    const messages = Array.from({ length: 1_200 }, (_, n) => `line ${n} ${"x".repeat((n * 7_919) % 1_800)}`);
    const entries = messages.map((message) => line(held, message));
    // A worker writes in batches, and a batch may end within a millisecond.
    for (const [from, to] of [
      [0, 1_000],
      [1_000, 1_100],
      [1_100, 1_200],
    ] as const)
      await w.store.records.log(ANA, entries.slice(from, to));
    expect((await w.store.jobs.logs("everyone", id)).map(({ message }) => message)).toEqual(messages);
    const page = await w.store.jobs.logs("everyone", id, { after: 990, limit: 20, bytes: Number.POSITIVE_INFINITY });
    expect(page.map(({ message }) => message)).toEqual(messages.slice(990, 1_010));
  });

  test("of several progresses of one millisecond, the one that was written last is shown", async (w) => {
    const id = await w.add();
    const held = await w.hold();
    const steps = Array.from({ length: 50 }, (_, n) => line(held, "", { level: "progress", data: String(n) }));
    await w.store.records.log(ANA, steps.slice(0, 25));
    await w.store.records.log(ANA, steps.slice(25));
    expect((await w.get(id)).progress).toBe("49");
  });

  test("log lines of all attempts are kept", async (w) => {
    const id = await w.add();
    for (const [n, outcome] of [FAILED, SUCCEEDED].entries()) {
      const held = await w.hold();
      await w.store.records.log(ANA, [line(held, `attempt ${n}`, { at: START + n })]);
      await w.settle(held, outcome, [0]);
    }
    expect((await w.store.jobs.logs("everyone", id)).map(({ message }) => message)).toEqual(["attempt 0", "attempt 1"]);
  });

  test("the last progress is shown with the job, and is no log line", async (w) => {
    const id = await w.add();
    const held = await w.hold();
    await w.store.records.log(ANA, [
      line(held, "", { level: "progress", data: "0.1" }),
      line(held, "hello"),
      line(held, "", { level: "progress", data: '{"done":5}' }),
    ]);
    expect((await w.get(id)).progress).toBe('{"done":5}');
    expect((await w.store.jobs.logs("everyone", id)).map(({ message }) => message)).toEqual(["hello"]);
    await w.settle(held, SUCCEEDED);
    expect((await w.get(id)).progress, "also when it is finished").toBe('{"done":5}');
  });

  test("log lines and progress of a lost lease are let go, and the others kept", async (w) => {
    const [a, b] = [await w.add(), await w.add()];
    const [first, second] = [await w.hold(), await w.hold()];
    await w.store.records.log(ANA_REBORN, [line(first, "stale"), line(first, "", { level: "progress", data: "1" })]);
    await w.store.records.log(BOB, [line(first, "stale")]);
    await w.store.records.log(ANA, [
      line(first, "stale", { lease: "999999" as LeaseId }),
      line(first, "stale", { job: b }),
      line(first, "stale", { job: NOBODY }),
      line(second, "kept"),
    ]);
    await w.vanish();
    await w.store.records.log(ANA, [line(first, "stale")]);
    expect(await w.store.jobs.logs("everyone", a)).toEqual([]);
    expect((await w.get(a)).progress).toBeUndefined();
    expect((await w.store.jobs.logs("everyone", b)).map(({ message }) => message)).toEqual(["kept"]);
  });

  test("nothing to log leaves no line", async (w) => {
    const id = await w.add();
    await w.store.records.log(ANA, []);
    expect(await w.store.jobs.logs("everyone", id)).toEqual([]);
  });

  test("a recorded effect is recalled by name and job", async (w) => {
    const [a, b] = [await w.add(), await w.add()];
    const [held] = await w.holdAll();
    if (held === undefined) throw new Error("nothing held");
    expect(await w.store.records.recall(a, "charge")).toBeUndefined();
    expect(await w.store.records.record(ANA, effect(held, '{"id":1}'))).toEqual({ value: '{"id":1}' });
    expect(await w.store.records.recall(a, "charge")).toBe('{"id":1}');
    expect(await w.store.records.recall(a, "refund")).toBeUndefined();
    expect(await w.store.records.recall(b, "charge")).toBeUndefined();
  });

  test("the first record of an effect wins", async (w) => {
    const id = await w.add();
    const held = await w.hold();
    await w.store.records.record(ANA, effect(held, "1"));
    expect(await w.store.records.record(ANA, effect(held, "2"))).toEqual({ value: "1" });
    expect(await w.store.records.recall(id, "charge")).toBe("1");
  });

  test("a recorded effect outlives the attempt", async (w) => {
    const id = await w.add();
    const held = await w.hold();
    await w.store.records.record(ANA, effect(held, "1"));
    await w.settle(held, FAILED, [0]);
    const again = await w.hold({ worker: BOB });
    expect(await w.store.records.recall(id, "charge")).toBe("1");
    expect(await w.store.records.record(BOB, effect(again, "2"))).toEqual({ value: "1" });
  });

  test("a recorded effect is valid for its time, then it can be recorded anew", async (w) => {
    const id = await w.add();
    const held = await w.hold({ duration: HOUR });
    await w.store.records.record(ANA, effect(held, "1", MINUTE));
    w.clock.advance(MINUTE - 1);
    expect(await w.store.records.recall(id, "charge")).toBe("1");
    w.clock.advance(1);
    expect(await w.store.records.recall(id, "charge")).toBeUndefined();
    expect(await w.store.records.record(ANA, effect(held, "2", MINUTE))).toEqual({ value: "2" });
    expect(await w.store.records.recall(id, "charge")).toBe("2");
  });

  test("an effect is not recorded under a lost lease", async (w) => {
    const id = await w.add();
    const held = await w.hold();
    expect(await w.store.records.record(ANA_REBORN, effect(held, "1"))).toBe("stale");
    expect(await w.store.records.record(BOB, effect(held, "1"))).toBe("stale");
    expect(await w.store.records.record(ANA, { ...effect(held, "1"), job: NOBODY })).toBe("stale");
    await w.vanish();
    expect(await w.store.records.record(ANA, effect(held, "1"))).toBe("stale");
    expect(await w.store.records.recall(id, "charge")).toBeUndefined();
  });

  test("the effects of a deleted job are gone", async (w) => {
    const id = await w.add();
    const held = await w.hold();
    await w.store.records.record(ANA, effect(held, "1"));
    await w.settle(held, SUCCEEDED);
    await w.store.jobs.delete("everyone", id);
    expect(await w.store.records.recall(id, "charge")).toBeUndefined();
  });
}

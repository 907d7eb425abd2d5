import { describe, expect, test } from "vitest";
import { eventually } from "../../../../test/support/eventually.js";
import { CheckStopped } from "./check-run.js";
import { CheckThreads, type ThreadQuestion, TooManyChecks } from "./check-threads.js";

/** Takes as long as it may: each item is held against many schemas, and the last one takes it. */
function endless(items = 20_000): ThreadQuestion {
  const schema = { items: { anyOf: [...Array.from({ length: 4_000 }, (_, at) => ({ type: "string", const: at })), { type: "integer" }] } };
  return { key: `endless ${items}`, schema: JSON.stringify(schema), value: JSON.stringify(Array.from({ length: items }, (_, at) => at + 4_000)) };
}

const integer = (value: unknown): ThreadQuestion => ({ key: "integer", schema: '{"type":"integer"}', value: JSON.stringify(value) });
/** Of a machine that is busy with others. ms */
const PATIENT = { deadline: 20_000, maxWait: 60_000 };

/** ms that the quickest of some checks takes from its question to its verdict or refusal. Others on the machine make it longer, never shorter. */
async function quickest(threads: CheckThreads, question: ThreadQuestion): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 4; round++) {
    // A thread that was ended is replaced before the time is taken.
    await threads.check("a", integer(1));
    const before = performance.now();
    await expect(threads.check("a", question)).rejects.toThrow(expect.objectContaining({ name: "CheckStopped", reason: "steps" }));
    least = Math.min(least, performance.now() - before);
  }
  return least;
}

/** Of a value that takes some hundred megabytes and seconds to read, during which nothing looks at the clock. */
const large = (): ThreadQuestion => ({ key: "any", schema: "{}", value: `[${"[[1]],".repeat(5_000_000)}1]` });
/** So much more than the limits allow fails: ten times is more. */
const MARGIN = 5;

describe("threads that check inputs, by the limits that a service has,", () => {
  test("end a check that looks at the clock within 250 ms", async () => {
    const { deadline, maxWait } = PATIENT;
    expect(await quickest(new CheckThreads({ threads: 1, deadline, maxWait, allowance: 1e9 }), endless())).toBeLessThan(MARGIN * 250);
  });

  test("end what does not look at the clock within 250 ms", async () => {
    const { maxWait } = PATIENT;
    expect(await quickest(new CheckThreads({ threads: 1, maxWait, allowance: 1e9, memory: 4_000 }), large())).toBeLessThan(MARGIN * 250);
  });
});

describe("threads that check inputs", () => {
  test("answer with a verdict and what it took", async () => {
    const threads = new CheckThreads(PATIENT);
    expect(await threads.check("a", integer(1))).toEqual({ steps: 2 });
    expect(await threads.check("a", integer("x"))).toMatchObject({ issues: [{ message: "must be integer", path: [] }] });
    expect(await threads.check("a", { key: "none", schema: "{}" })).toMatchObject({ steps: 1 });
  });

  test("give up in time what takes longer, and check what comes after it", async () => {
    const threads = new CheckThreads({ ...PATIENT, threads: 1 });
    const rejected = expect(threads.check("a", endless())).rejects.toThrow(expect.objectContaining({ name: "CheckStopped", reason: "steps" }));
    const next = threads.check("a", integer(1));
    await rejected;
    expect(await next).toEqual({ steps: 2 });
  });

  test("are ended and replaced at their deadline", async () => {
    const threads = new CheckThreads({ ...PATIENT, threads: 1, deadline: 1 });
    for (let round = 0; round < 2; round++) {
      await expect(threads.check("a", endless())).rejects.toThrow(CheckStopped);
      // One that gives up by itself would still be there.
      expect(threads.count).toBe(0);
    }
  });

  test("are ended and replaced when they take too much memory", async () => {
    const threads = new CheckThreads({ ...PATIENT, threads: 1, memory: 24 });
    const value = JSON.stringify(Array.from({ length: 500_000 }, (_, at) => [[at]]));
    await expect(threads.check("a", { key: "any", schema: "{}", value })).rejects.toThrow(expect.objectContaining({ reason: "memory" }));
    expect(await threads.check("a", integer(1))).toEqual({ steps: 2 });
  });

  test("are taken in turns by callers, so that one with many checks waits for itself", async () => {
    const threads = new CheckThreads({ ...PATIENT, threads: 1 });
    const order: string[] = [];
    const check = (caller: string) => threads.check(caller, integer(1)).then(() => order.push(caller));
    await Promise.all([check("a"), check("a"), check("a"), check("a"), check("b"), check("c"), check("b")]);
    expect(order).toEqual(["a", "b", "c", "a", "b", "a", "a"]);
  });

  test("refuse a caller that has too much waiting, and nobody else", async () => {
    const threads = new CheckThreads({ ...PATIENT, threads: 1, perCaller: 25_000 });
    const many = Array.from({ length: 5 }, () => threads.check("a", integer(1)));
    const other = threads.check("b", integer(1));
    const settled = await Promise.allSettled(many);
    expect(settled.map((one) => (one.status === "rejected" ? (one.reason as Error).name : "checked"))).toEqual([
      "checked",
      "checked",
      "checked",
      "TooManyChecks",
      "TooManyChecks",
    ]);
    expect(await other).toEqual({ steps: 2 });
  });

  test("refuse those who have most when too much waits in all", async () => {
    const threads = new CheckThreads({ ...PATIENT, threads: 1, overall: 35_000 });
    const many = Promise.allSettled(Array.from({ length: 3 }, () => threads.check("a", integer(1))));
    const other = threads.check("b", integer(1));
    expect(await other).toEqual({ steps: 2 });
    expect((await many).filter(({ status }) => status === "rejected")).toHaveLength(1);
  });

  test("refuse a caller that has used up its time, and nobody else, until it has some back", async () => {
    const threads = new CheckThreads({ ...PATIENT, threads: 1, allowance: 1, regained: 0 });
    const batch = [threads.check("a", endless()), threads.check("a", integer(1)), threads.check("b", integer(1))] as const;
    await expect(batch[0]).rejects.toThrow(CheckStopped);
    await expect(batch[1]).rejects.toThrow(TooManyChecks);
    expect(await batch[2]).toEqual({ steps: 2 });
    const generous = new CheckThreads({ ...PATIENT, threads: 1, allowance: 1, regained: 1_000_000 });
    await expect(generous.check("a", endless())).rejects.toThrow(CheckStopped);
    expect(await generous.check("a", integer(1))).toEqual({ steps: 2 });
  });

  test("refuse what has waited too long", async () => {
    const threads = new CheckThreads({ ...PATIENT, maxWait: 0 });
    await expect(threads.check("a", integer(1))).rejects.toThrow(TooManyChecks);
  });

  test("end when they have nothing to do, and are started again", async () => {
    const threads = new CheckThreads({ ...PATIENT, idle: 1 });
    expect(await threads.check("a", integer(1))).toEqual({ steps: 2 });
    await eventually("the thread has ended", () => threads.count === 0);
    expect(await threads.check("a", integer(2))).toEqual({ steps: 2 });
  });

  test("say what kept them from starting", async () => {
    const threads = new CheckThreads(PATIENT);
    await expect(threads.check("a", { key: "wrong", schema: "{" })).rejects.toThrow(SyntaxError);
    expect(await threads.check("a", integer(1))).toEqual({ steps: 2 });
  });
});

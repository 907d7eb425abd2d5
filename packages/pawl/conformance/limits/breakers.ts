import { expect } from "vitest";
import { type BreakerRule, CHECKING_MS } from "../../src/core/limits/breaker.js";
import type { BreakerRecord, BreakerRef } from "../../src/store/port/limits/breakers.js";
import type { Test } from "../suite.js";
import { DAY, MINUTE, SECOND, START, type World } from "../world.js";

const RULE: BreakerRule = { failureRate: 0.9, window: 5 * MINUTE, minOutcomes: 20, probeInterval: MINUTE };
const PAIR: BreakerRef = { tenant: "acme", task: "work" };
const OTHERS: readonly BreakerRef[] = [
  { tenant: "acme", task: "another" },
  { tenant: "umbrella", task: "work" },
];

async function saw(w: World, succeeded: number, failed: number, ref = PAIR): Promise<BreakerRecord> {
  const [record] = await w.store.breakers.report([{ ...ref, rule: RULE, samples: [{ succeeded, failed, ago: 0 }] }]);
  return record as BreakerRecord;
}
async function probed(w: World, opening: number, succeeded: number, failed: number): Promise<BreakerRecord> {
  const [record] = await w.store.breakers.report([{ ...PAIR, rule: RULE, samples: [], probes: { opening, succeeded, failed } }]);
  return record as BreakerRecord;
}
async function open(w: World, ref = PAIR): Promise<BreakerRecord> {
  await saw(w, 0, 20, ref);
  w.clock.advance(CHECKING_MS);
  return saw(w, 0, 1, ref);
}

export function breakerTests(test: Test): void {
  test("a breaker is checking and then open when too many fail, whoever saw them", async (w) => {
    expect(await w.store.breakers.get([PAIR])).toEqual([]);
    for (let n = 0; n < 19; n++) expect((await saw(w, 0, 1)).state).toBe("closed");
    expect(await saw(w, 0, 1)).toMatchObject({ ...PAIR, state: "checking", opening: 0, since: START, succeeded: 0, failed: 20 });
    w.clock.advance(CHECKING_MS);
    const now = w.clock.now();
    const opened: BreakerRecord = {
      ...PAIR,
      state: "open",
      forced: false,
      opening: 1,
      since: now,
      probeAt: now + MINUTE,
      succeeded: 0,
      failed: 0,
      asOf: now,
    };
    expect(await saw(w, 0, 1)).toEqual(opened);
    expect(await w.store.breakers.get([...OTHERS, PAIR])).toEqual([opened]);
    expect(await w.store.breakers.listNotClosed()).toEqual([opened]);
  });

  test("successes that others report in time keep it closed", async (w) => {
    expect((await saw(w, 0, 20)).state).toBe("checking");
    w.clock.advance(SECOND);
    expect(await saw(w, 10, 0)).toMatchObject({ state: "closed", succeeded: 10, failed: 20 });
    expect(await w.store.breakers.listNotClosed()).toEqual([]);
  });

  test("a report of many is one step, also where a pair is in it twice", async (w) => {
    const samples = [{ succeeded: 0, failed: 10, ago: 0 }];
    const answers = await w.store.breakers.report([PAIR, ...OTHERS, PAIR].map((ref) => ({ ...ref, rule: RULE, samples })));
    expect(answers.map(({ state, failed }) => [state, failed])).toEqual([
      ["checking", 20],
      ["closed", 10],
      ["closed", 10],
      ["checking", 20],
    ]);
    expect(await w.store.breakers.report([])).toEqual([]);
  });

  test("of all who ask, one is given leave to probe, and again a minute later", async (w) => {
    await open(w);
    expect(await w.store.breakers.probe([PAIR])).toEqual([]);
    w.clock.advance(MINUTE);
    const asked = await Promise.all([1, 2, 3].map(() => w.store.breakers.probe([...OTHERS, PAIR])));
    const given = asked.flat();
    expect(given).toHaveLength(1);
    expect(given[0]).toMatchObject({ ...PAIR, state: "open", opening: 1, probeAt: w.clock.now() + MINUTE });
    w.clock.advance(MINUTE - 1);
    expect(await w.store.breakers.probe([PAIR])).toEqual([]);
    w.clock.advance(1);
    expect(await w.store.breakers.probe([PAIR]), "the first was lost").toHaveLength(1);
  });

  test("a probe that succeeds lets it close step by step, and one that fails does not", async (w) => {
    await open(w);
    expect(await probed(w, 1, 0, 1)).toMatchObject({ state: "open", probeAt: w.clock.now() + MINUTE });
    expect(await probed(w, 0, 1, 0), "claimed before it opened").toMatchObject({ state: "open" });
    for (const limit of [1, 2, 4, 8, 16, 32])
      expect(await probed(w, 1, limit === 1 ? 1 : limit / 2, 0)).toMatchObject({ state: "half_open", limit, opening: 1 });
    expect(await probed(w, 1, 31, 0)).toMatchObject({ state: "half_open", limit: 32, succeeded: 31 });
    const closed = await probed(w, 1, 1, 0);
    expect(closed).toEqual({
      ...PAIR,
      state: "closed",
      forced: false,
      opening: 1,
      since: w.clock.now(),
      succeeded: 0,
      failed: 0,
      asOf: w.clock.now(),
    });
  });

  test("one that closes and fails again is a new opening", async (w) => {
    await open(w);
    await probed(w, 1, 1, 0);
    expect(await probed(w, 1, 0, 1)).toMatchObject({ state: "open", opening: 2, probeAt: w.clock.now() + MINUTE });
  });

  test("a person opens and closes it, and it stays so until it is reset", async (w) => {
    expect(await w.store.breakers.force(PAIR, "open")).toMatchObject({ ...PAIR, state: "open", forced: true, opening: 1 });
    w.clock.advance(2 * DAY);
    expect(await w.store.breakers.probe([PAIR])).toEqual([]);
    expect(await probed(w, 1, 9, 0)).toMatchObject({ state: "open", forced: true });
    expect(await w.store.breakers.force(PAIR, "closed")).toMatchObject({ state: "closed", forced: true });
    expect(await saw(w, 0, 500)).toMatchObject({ state: "closed", forced: true });
    expect(await w.store.breakers.force(PAIR, "reset")).toMatchObject({ state: "closed", forced: false, opening: 1, failed: 0 });
    expect(await saw(w, 0, 20)).toMatchObject({ state: "checking" });
  });

  test("a closed one is forgotten after its window, an open one after a day without a word, a forced one never", async (w) => {
    const [left, right] = OTHERS as [BreakerRef, BreakerRef];
    await saw(w, 0, 1);
    await open(w, left);
    await w.store.breakers.force(right, "closed");
    const there = async () => (await w.store.breakers.get([PAIR, ...OTHERS])).map(({ tenant, task }) => `${tenant} ${task}`);
    expect(await there()).toEqual(["acme another", "acme work", "umbrella work"]);
    w.clock.advance(RULE.window);
    expect(await there()).toEqual(["acme another", "umbrella work"]);
    w.clock.advance(DAY);
    expect(await there()).toEqual(["umbrella work"]);
    expect(await w.store.breakers.probe([left])).toEqual([]);
    expect(await saw(w, 0, 1, left), "it begins anew").toMatchObject({ state: "closed", opening: 0, failed: 1 });
  });

  test("breakers are listed by tenant and task, by what is asked for, page by page", async (w) => {
    const pairs = ["b", "a"].flatMap((tenant) => ["y", `x "quoted" \\ {}, ü`].map((task) => ({ tenant, task })));
    for (const ref of pairs) await saw(w, 1, 1, ref);
    await w.store.breakers.force({ tenant: "a", task: "y" }, "open");
    const list = async (filter: object, after?: BreakerRef, limit = 10) =>
      (await w.store.breakers.list(filter, { limit, ...(after === undefined ? {} : { after }) })).map(({ tenant, task }) => tenant + task[0]);
    expect(await list({})).toEqual(["ax", "ay", "bx", "by"]);
    expect(await list({ tenant: "b" })).toEqual(["bx", "by"]);
    expect(await list({ task: "y" })).toEqual(["ay", "by"]);
    expect(await list({ state: "open" })).toEqual(["ay"]);
    expect(await list({}, undefined, 2)).toEqual(["ax", "ay"]);
    expect(await list({}, { tenant: "a", task: "y" }, 1)).toEqual(["bx"]);
    expect(await list({ tenant: "nobody" })).toEqual([]);
  });

  test("workers hear of a breaker that comes to another state, and of nothing else", async (w) => {
    let heard = 0;
    w.store.onWakeup(({ kind }) => {
      if (kind === "lanes") heard++;
    });
    await saw(w, 5, 5);
    expect(heard).toBe(0);
    await saw(w, 0, 100);
    expect(heard, "checking").toBe(1);
    w.clock.advance(CHECKING_MS);
    await saw(w, 0, 1);
    expect(heard, "open").toBe(2);
    await probed(w, 1, 0, 1);
    expect(heard).toBe(2);
    await w.store.breakers.force(PAIR, "open");
    await w.store.breakers.force(PAIR, "open");
    expect(heard, "forced, once").toBe(3);
  });
}

import { expect } from "vitest";
import { type ActivityCounts, type CountsByState, NO_ACTIVITIES, NO_JOBS, pointsOf } from "../../src/core/observe/series.js";
import type { SeriesQuery } from "../../src/store/port/observe/series.js";
import { dutiesOf } from "../duties.js";
import type { Test } from "../suite.js";
import { FAILED, HOUR, KILLED, lane, MINUTE, START, SUCCEEDED, type World } from "../world.js";

/** What the store says of the last minutes, after folding, as points. */
async function points(w: World, query: Partial<SeriesQuery> = {}) {
  await dutiesOf(w.store).fold(1_000);
  const { first, last, series } = await w.store.series.read({ last: 3 * MINUTE, step: 1, limit: 100, ...query });
  return series.map((one) => ({ name: one.name, points: pointsOf(first, last, one.sums, one.now) }));
}

const happened = (some: Partial<ActivityCounts>, states: Partial<CountsByState> = {}) => ({
  ...NO_ACTIVITIES,
  ...some,
  states: { ...NO_JOBS, ...states },
});

export function seriesTests(test: Test): void {
  test("nothing has happened in an empty store", async (w) => {
    const step = Math.floor(START / MINUTE);
    expect(await w.store.series.read({ last: 3 * MINUTE, step: 1, limit: 100 })).toEqual({ first: step - 2, last: step, series: [] });
  });

  test("what happens to jobs is counted in its minute, with what stood at the end of it", async (w) => {
    await w.enqueue({}, {});
    const later = await w.add({ delay: HOUR });
    expect(await points(w)).toEqual([
      { name: undefined, points: [happened({}), happened({}), happened({ enqueued: 3 }, { ready: 2, scheduled: 1 })] },
    ]);
    w.clock.advance(MINUTE);
    await w.settleAll(await w.holdAll({ limit: 1 }), SUCCEEDED);
    await w.settleAll(await w.holdAll({ limit: 1 }), FAILED, [HOUR]);
    await points(w);
    w.clock.advance(MINUTE);
    await w.store.jobs.cancel("everyone", later, "enough");
    expect(await points(w)).toEqual([
      {
        name: undefined,
        points: [
          happened({ enqueued: 3 }, { ready: 2, scheduled: 1 }),
          happened({ started: 2, succeeded: 1, retried: 1 }, { scheduled: 2 }),
          happened({ cancelled: 1 }, { scheduled: 1 }),
        ],
      },
    ]);
  });

  test("a death and a redrive are told, and what stands follows", async (w) => {
    const id = await w.add();
    await w.run(id, KILLED);
    await points(w);
    w.clock.advance(MINUTE);
    await w.store.jobs.redrive("everyone", id, {});
    expect((await points(w))[0]?.points.slice(1)).toEqual([happened({ enqueued: 1, started: 1, died: 1 }, { dead: 1 }), happened({}, { ready: 1 })]);
  });

  test("folding again counts nothing twice", async (w) => {
    await w.enqueue({}, {});
    const before = await points(w);
    expect(await points(w)).toEqual(before);
  });

  test("longer steps are sums, and a window that has passed is told as it was then", async (w) => {
    for (let minute = 0; minute < 10; minute++) {
      await w.add();
      await dutiesOf(w.store).fold(1_000);
      w.clock.advance(MINUTE);
    }
    // Steps begin at whole multiples of their length: the test begins at one.
    const [all] = await points(w, { step: 5, from: START, to: START + 10 * MINUTE });
    expect(all?.points).toEqual([happened({ enqueued: 5 }, { ready: 5 }), happened({ enqueued: 5 }, { ready: 10 })]);
    const [past] = await points(w, { from: START + 2 * MINUTE, to: START + 4 * MINUTE });
    expect(past?.points).toEqual([happened({ enqueued: 1 }, { ready: 3 }), happened({ enqueued: 1 }, { ready: 4 })]);
  });

  test("series are told by queue or by task, the busiest first, and filtered by both", async (w) => {
    await w.enqueue({ queue: "mail" }, { queue: "mail" }, { queue: "mail", task: "send" }, { task: "send" }, { task: "send" }, { task: "send" }, {});
    const names = async (query: Partial<SeriesQuery>) =>
      (await points(w, query)).map(({ name, points: [, , now] }) => [name, now?.enqueued, now?.states.ready]);
    expect(await names({ by: "queue" })).toEqual([
      ["default", 4, 4],
      ["mail", 3, 3],
    ]);
    expect(await names({ by: "task" })).toEqual([
      ["send", 4, 4],
      ["work", 3, 3],
    ]);
    expect(await names({ by: "task", limit: 1 })).toEqual([["send", 4, 4]]);
    expect(await names({ queue: "mail", task: "send" })).toEqual([[undefined, 1, 1]]);
    expect(await names({ queue: "nowhere" })).toEqual([]);
  });

  test("what stood is told of a queue in which nothing happened for long", async (w) => {
    await w.enqueue({}, {});
    await dutiesOf(w.store).fold(1_000);
    w.clock.advance(HOUR);
    expect(await points(w)).toEqual([
      { name: undefined, points: [happened({}, { ready: 2 }), happened({}, { ready: 2 }), happened({}, { ready: 2 })] },
    ]);
  });

  test("jobs that are brought back from an export were not enqueued now", async (w) => {
    const id = await w.add();
    await w.run(id, SUCCEEDED, undefined, { lanes: [lane()] });
    const [job, history] = [await w.store.jobs.get("everyone", id), await w.store.jobs.history("everyone", id)];
    if (job === undefined) throw new Error("no job");
    await w.store.jobs.delete("everyone", id);
    await points(w);
    w.clock.advance(MINUTE);
    await w.store.jobs.restore([{ job, history }]);
    expect((await points(w))[0]?.points.at(-1) ?? happened({})).toEqual(happened({}));
  });

  test("old minutes are forgotten, by age and by number, and what stands is not", async (w) => {
    for (let minute = 0; minute < 5; minute++) {
      await w.add();
      await dutiesOf(w.store).fold(1_000);
      w.clock.advance(MINUTE);
    }
    expect(await dutiesOf(w.store).trimSeries(HOUR, 1_000)).toBe(0);
    expect(await dutiesOf(w.store).trimSeries(4 * MINUTE, 1_000)).toBe(1);
    expect(await dutiesOf(w.store).trimSeries(HOUR, 2)).toBe(2);
    const [all] = await points(w, { last: 6 * MINUTE });
    expect(all?.points.map(({ enqueued }) => enqueued)).toEqual([0, 0, 0, 1, 1, 0]);
    expect(all?.points.at(-1)?.states.ready).toBe(5);
  });
}

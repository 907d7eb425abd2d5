import { expect } from "vitest";
import type { Test } from "../suite.js";
import { MINUTE, SECOND } from "../world.js";

export function eventTests(test: Test): void {
  test("nobody watches at first, and there is nothing to read", async (w) => {
    expect(await w.store.events.watched()).toBeUndefined();
    expect((await w.store.duties.poll()).watched).toBeUndefined();
    expect(await w.store.events.read(0, 10)).toEqual({ forgotten: 0, batches: [] });
  });

  test("everybody knows that somebody watches, until the time is over", async (w) => {
    const { epoch, last } = await w.store.events.watch(MINUTE);
    expect(last).toBe(0);
    w.clock.advance(10 * SECOND);
    expect(await w.store.events.watched()).toEqual({ epoch, for: 50 * SECOND });
    expect((await w.store.duties.poll()).watched).toEqual({ epoch, for: 50 * SECOND });
    // Somebody else, for less: nothing is cut short.
    expect(await w.store.events.watch(SECOND)).toEqual({ epoch, for: 50 * SECOND, last: 0 });
    w.clock.advance(50 * SECOND);
    expect(await w.store.events.watched()).toBeUndefined();
    expect((await w.store.duties.poll()).watched).toBeUndefined();
  });

  test("batches are read in the order they were recorded, from any place, a page at a time", async (w) => {
    await w.store.events.watch(MINUTE);
    await w.store.events.append(['{"n":1}', '{"n":"\\u0000 \\" 2"}']);
    await w.store.events.append(['{"n":3}']);
    const { batches } = await w.store.events.read(0, 10);
    expect(batches.map(({ entries }) => entries.map((entry) => (JSON.parse(entry) as { n: unknown }).n))).toEqual([[1, '\u0000 " 2'], [3]]);
    const [first, second] = batches.map(({ number }) => number) as [number, number];
    expect(second).toBeGreaterThan(first);
    expect((await w.store.events.read(0, 1)).batches.map(({ number }) => number)).toEqual([first]);
    expect((await w.store.events.read(first, 10)).batches.map(({ number }) => number)).toEqual([second]);
    expect((await w.store.events.watch(MINUTE)).last).toBe(second);
  });

  test("who begins to watch when nobody did begins anew: what was recorded before is forgotten", async (w) => {
    const before = await w.store.events.watch(MINUTE);
    await w.store.events.append(["{}"]);
    w.clock.advance(MINUTE);
    const after = await w.store.events.watch(MINUTE);
    expect(after.epoch).not.toBe(before.epoch);
    const { forgotten } = await w.store.events.read(0, 0);
    expect(forgotten).toBe(after.last);
    await w.store.events.trim(10 * MINUTE, 1_000);
    expect(await w.store.events.read(0, 10)).toEqual({ forgotten, batches: [] });
    await w.store.events.append(["{}"]);
    expect((await w.store.events.read(after.last, 10)).batches).toHaveLength(1);
  });

  test("what is old, and the oldest of what is too much, is forgotten, and that it is can be seen", async (w) => {
    await w.store.events.watch(10 * MINUTE);
    for (let n = 0; n < 4; n++) {
      await w.store.events.append(["{}", "{}"]);
      w.clock.advance(MINUTE);
    }
    const numbers = (await w.store.events.read(0, 10)).batches.map(({ number }) => number);
    expect(await w.store.events.trim(3.5 * MINUTE, 1_000)).toBe(1);
    expect(await w.store.events.read(0, 10)).toMatchObject({ forgotten: numbers[0], batches: [{}, {}, {}] });
    expect(await w.store.events.trim(HOUR, 5)).toBe(1);
    expect((await w.store.events.read(0, 10)).forgotten).toBe(numbers[1]);
    expect(await w.store.events.trim(HOUR, 5)).toBe(0);
    expect((await w.store.events.read(numbers[1] as number, 10)).batches.map(({ number }) => number)).toEqual(numbers.slice(2));
  });
}

const HOUR = 60 * MINUTE;

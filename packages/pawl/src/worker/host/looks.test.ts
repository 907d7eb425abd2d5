import { expect, test } from "vitest";
import type { Store } from "../../store/port.js";
import type { LiveLanes } from "../../store/port-lanes.js";
import { virtualClock } from "../../testing/clock.js";
import { Looks } from "./looks.js";

/** A store whose looks take so long, and that has had enough after a few. */
function slow(ms: number) {
  const clock = virtualClock();
  const looked: (readonly string[])[] = [];
  const live = (_: unknown, tasks: readonly string[] = []) =>
    new Promise<LiveLanes>((resolve, reject) => {
      looked.push(tasks);
      if (looked.length > 5) reject(new Error("it looks for ever"));
      clock.after(ms, () => resolve({ lanes: [], suspects: false, mark: `look ${looked.length}` }));
    });
  const looks = new Looks({ lanes: { live } as unknown as Store["lanes"], onHint: () => () => {} }, clock);
  return { clock, looked, looks };
}

test("a look that takes longer than it is believed answers those who asked for it", async () => {
  const { clock, looked, looks } = slow(1_500);
  const answer = looks.live(undefined, ["resize"]);
  await clock.advance(1_500);
  expect(await answer).toMatchObject({ mark: "look 1" });
  expect(looked).toHaveLength(1);
});

test("a look that was under way when it was called answers nobody whose tasks it did not look for", async () => {
  const { clock, looked, looks } = slow(1_500);
  const first = looks.live(undefined, ["resize"]);
  await clock.advance(100);
  const second = looks.live(undefined, ["mail"]);
  await clock.advance(1_400);
  expect(await first).toMatchObject({ mark: "look 1" });
  await clock.advance(1_500);
  expect(await second).toMatchObject({ mark: "look 2" });
  expect(looked).toEqual([["resize"], ["resize", "mail"]]);
});

test("what was seen is believed for a while, and by all", async () => {
  const { clock, looked, looks } = slow(100);
  const first = looks.live(undefined, ["resize"]);
  await clock.advance(100);
  await first;
  await looks.live(undefined, ["resize"]);
  expect(looked).toHaveLength(1);
  await clock.advance(900);
  const later = looks.live(undefined, ["resize"]);
  await clock.advance(100);
  await later;
  expect(looked).toHaveLength(2);
});

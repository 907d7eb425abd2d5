import { expect, test } from "vitest";
import type { LiveLanes } from "../../store/port/claim/lanes.js";
import type { Store } from "../../store/port/index.js";
import { virtualClock } from "../../testing/clock.js";
import { LanePoll } from "./lane-poll.js";

/** A store whose polls take so long, and that has had enough after a few. */
function slow(ms: number) {
  const clock = virtualClock();
  const polls: (readonly string[])[] = [];
  const live = (_: unknown, tasks: readonly string[] = []) =>
    new Promise<LiveLanes>((resolve, reject) => {
      polls.push(tasks);
      if (polls.length > 5) reject(new Error("it polls for ever"));
      clock.after(ms, () => resolve({ lanes: [], suspects: false, version: `poll ${polls.length}` }));
    });
  const lanePoll = new LanePoll({ lanes: { live } as unknown as Store["lanes"], onWakeup: () => () => {} }, clock);
  return { clock, polls, lanePoll };
}

test("a poll that takes longer than it is believed answers those who asked for it", async () => {
  const { clock, polls, lanePoll } = slow(1_500);
  const answer = lanePoll.live(undefined, ["resize"]);
  await clock.advance(1_500);
  expect(await answer).toMatchObject({ version: "poll 1" });
  expect(polls).toHaveLength(1);
});

test("a poll that was under way when it was called answers nobody whose tasks it did not poll for", async () => {
  const { clock, polls, lanePoll } = slow(1_500);
  const first = lanePoll.live(undefined, ["resize"]);
  await clock.advance(100);
  const second = lanePoll.live(undefined, ["mail"]);
  await clock.advance(1_400);
  expect(await first).toMatchObject({ version: "poll 1" });
  await clock.advance(1_500);
  expect(await second).toMatchObject({ version: "poll 2" });
  expect(polls).toEqual([["resize"], ["resize", "mail"]]);
});

test("what was seen is believed for a while, and by all", async () => {
  const { clock, polls, lanePoll } = slow(100);
  const first = lanePoll.live(undefined, ["resize"]);
  await clock.advance(100);
  await first;
  await lanePoll.live(undefined, ["resize"]);
  expect(polls).toHaveLength(1);
  await clock.advance(900);
  const later = lanePoll.live(undefined, ["resize"]);
  await clock.advance(100);
  await later;
  expect(polls).toHaveLength(2);
});

import { expect } from "vitest";
import { dutiesOf } from "../duties.js";
import type { Test } from "../suite.js";
import { DAY, FAILED, HOUR, KILLED, MINUTE, SECOND, START, SUCCEEDED } from "../world.js";
import { account, catchUp, jobs, put, REF, tick } from "./world.js";

/** Ticks whose time passed unheeded, and those that find an earlier job unfinished. */
export function missedTickTests(test: Test): void {
  test("missed ticks are skipped where the schedule says so", async (w) => {
    await put(w, { missed: { policy: "skip" } });
    w.clock.advance(10 * MINUTE + 30 * SECOND);
    expect(await catchUp(w)).toBe(1);
    expect(await account(w)).toEqual(["1–9 (9) skipped: missed", "10 fired"]);
  });

  test("the latest missed tick stands for the others, unless it is too old", async (w) => {
    await put(w, { rule: { kind: "every", every: 10 * MINUTE } });
    w.clock.advance(35 * MINUTE);
    expect(await catchUp(w)).toBe(1);
    expect(await account(w)).toEqual(["10–20 (2) merged into 30", "30 late for 2 more"]);
    expect((await jobs(w))[0]?.options.tick).toEqual({ schedule: "s", at: START + 30 * MINUTE, way: "late", merged: 2 });
    await put(w, { rule: { kind: "every", every: DAY } });
    w.clock.advance(DAY);
    expect(await catchUp(w)).toBe(0);
    expect((await account(w)).at(-1)).toBe("720 skipped: window");
  });

  test("all missed ticks are made up for one by one, within a window, at most so many, at a pace", async (w) => {
    await put(w, { overlap: "allow", missed: { policy: "all", window: 30 * MINUTE, max: 3, pace: 10 * SECOND } });
    w.clock.advance(60 * MINUTE + SECOND);
    for (let n = 0; n < 3; n++) {
      expect(await catchUp(w), "one at a time").toBe(n === 2 ? 2 : 1);
      w.clock.advance(10 * SECOND);
    }
    expect(await account(w)).toEqual(["1–30 (30) skipped: window", "31–56 (26) skipped: max", "57 late", "58 late", "59 late", "60 fired"]);
  });

  test("while a missed tick's job is unfinished, the next one waits for it", async (w) => {
    await put(w, { missed: { policy: "all", window: HOUR } });
    w.clock.advance(3 * MINUTE + SECOND);
    expect(await catchUp(w)).toBe(1);
    w.clock.advance(SECOND);
    expect(await catchUp(w)).toBe(0);
    await w.settle(await w.hold(), SUCCEEDED);
    w.clock.advance(SECOND);
    expect(await catchUp(w)).toBe(1);
    expect(await account(w)).toEqual(["1 late", "2 late", "3 skipped: overlap"]);
  });

  test("a month of missed minutes is a bounded burst, and every tick is accounted for (D5)", async (w) => {
    await put(w);
    w.clock.advance(30 * DAY);
    let [steps, made] = [0, 0];
    for (;;) {
      const { schedules, jobs: some } = await dutiesOf(w.store).tick(10, () => w.idSuffix());
      if (schedules === 0) break;
      made += some;
      steps += 1;
    }
    expect(made).toBe(1);
    expect(steps).toBeLessThan(60);
    const entries = await w.store.schedules.ticks(REF, { limit: 1_000 });
    const counted = entries.reduce((sum, entry) => sum + ("at" in entry ? 1 : entry.count), 0);
    expect(counted).toBe(30 * 24 * 60);
  });

  test("a month of missed minutes, all of them made up for within the cap, is a paced trickle (D5)", async (w) => {
    const rule = { kind: "cron", expression: "* * * * *", zone: "Europe/Berlin", dst: { gap: "shift", overlap: "first" } } as const;
    await put(w, { rule, overlap: "allow", missed: { policy: "all", window: 60 * DAY, max: 20, pace: 2 * SECOND } });
    w.clock.advance(30 * DAY);
    const bursts: number[] = [];
    for (let n = 0; n < 25; n++) {
      bursts.push(await catchUp(w));
      w.clock.advance(2 * SECOND);
    }
    // The twenty, and the two that were on time when it began.
    expect(bursts).toEqual(Array.from({ length: 25 }, (_, n) => (n < 20 ? 1 : n === 20 ? 2 : 0)));
    const entries = await w.store.schedules.ticks(REF, { limit: 1_000 });
    expect(entries.reduce((sum, entry) => sum + ("at" in entry ? 1 : entry.count), 0)).toBe(30 * 24 * 60);
  });

  test("a tick is skipped while the last job is unfinished, and not when it is done", async (w) => {
    await put(w);
    w.clock.advance(MINUTE);
    await tick(w);
    const held = await w.hold({ duration: HOUR });
    w.clock.advance(MINUTE);
    expect(await tick(w)).toBe(0);
    await w.settle(held, FAILED, [HOUR]);
    w.clock.advance(MINUTE);
    expect(await tick(w), "it waits for its retry").toBe(0);
    await w.store.jobs.promote("everyone", held.job.id);
    await w.settle(await w.hold({ duration: HOUR }), KILLED);
    w.clock.advance(MINUTE);
    expect(await tick(w), "it is dead").toBe(1);
    expect(await account(w)).toEqual(["1 fired", "2 skipped: overlap", "3 skipped: overlap", "4 fired"]);
  });

  test("where overlap is allowed, every tick has its job", async (w) => {
    await put(w, { overlap: "allow" });
    for (let n = 0; n < 3; n++) {
      w.clock.advance(MINUTE);
      expect(await tick(w)).toBe(1);
    }
    expect((await jobs(w)).map(({ state }) => state)).toEqual(["ready", "ready", "ready"]);
  });

  test("one tick may wait for the last one; a third is skipped", async (w) => {
    await put(w, { overlap: "wait" });
    w.clock.advance(MINUTE);
    await tick(w);
    const held = await w.hold({ duration: HOUR });
    for (let n = 0; n < 2; n++) {
      w.clock.advance(MINUTE);
      await tick(w);
    }
    expect((await jobs(w)).map(({ state }) => state)).toEqual(["running", "blocked"]);
    await w.settle(held, KILLED);
    await dutiesOf(w.store).unblock(10);
    expect(
      (await jobs(w)).map(({ state }) => state),
      "however it ended",
    ).toEqual(["dead", "ready"]);
    expect(await account(w)).toEqual(["1 fired", "2 fired", "3 skipped: overlap"]);
  });

  test("a tick cancels what it finds: at once if it waits, through its worker if it runs", async (w) => {
    await put(w, { overlap: "cancel" });
    for (let n = 0; n < 2; n++) {
      w.clock.advance(MINUTE);
      await tick(w);
    }
    expect((await jobs(w)).map(({ state }) => state)).toEqual(["cancelled", "ready"]);
    const held = await w.hold({ duration: HOUR });
    w.clock.advance(MINUTE);
    await tick(w);
    expect((await jobs(w)).map(({ state, intent }) => [state, intent])).toEqual([
      ["cancelled", undefined],
      ["running", "cancel"],
      ["blocked", undefined],
    ]);
    await w.settle(held, { kind: "cancelled", reason: "asked" });
    await dutiesOf(w.store).unblock(10);
    expect((await jobs(w)).map(({ state }) => state)).toEqual(["cancelled", "cancelled", "ready"]);
  });
}

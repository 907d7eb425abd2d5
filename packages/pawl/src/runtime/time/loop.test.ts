import { describe, expect, test } from "vitest";
import { barrier } from "../../../../../test/support/fixtures/memory-fixture.js";
import { virtualClock } from "../../testing/clock.js";
import { loop } from "./loop.js";

const quiet = { onError: () => {} };

describe("a loop", () => {
  test("runs its step, waits as long as the step says, and runs it again", async () => {
    const clock = virtualClock();
    const at: number[] = [];
    const running = loop({ clock, ...quiet, step: async () => at.push(clock.monotonic()) && 100 });
    await clock.advance(350);
    expect(at).toEqual([0, 100, 200, 300]);
    await running.stop();
  });

  test("that wants nothing waits until it is woken", async () => {
    const clock = virtualClock();
    let runs = 0;
    const running = loop({
      clock,
      ...quiet,
      async step() {
        runs++;
        return undefined;
      },
    });
    await clock.advance(10_000);
    expect(runs).toBe(1);
    running.wake();
    await clock.quiet();
    expect(runs).toBe(2);
    await running.stop();
  });

  test("woken while it runs, runs once more; never two steps at a time", async () => {
    const clock = virtualClock();
    const barriers = [barrier(), barrier(), barrier()];
    let runs = 0;
    let inside = 0;
    const running = loop({
      clock,
      ...quiet,
      async step() {
        expect(++inside).toBe(1);
        await barriers[runs++]?.opened;
        inside--;
        return undefined;
      },
    });
    running.wake();
    running.wake();
    barriers[0]?.open();
    await clock.quiet();
    expect(runs).toBe(2);
    barriers[1]?.open();
    await clock.quiet();
    expect(runs).toBe(2);
    await running.stop();
  });

  test("never dies of its step; it backs off up to its limit, and says so at most once a second", async () => {
    const clock = virtualClock();
    const at: number[] = [];
    const said: number[] = [];
    const running = loop({
      clock,
      async step() {
        at.push(clock.monotonic());
        throw undefined;
      },
      onError: (_, unsaid) => void said.push(unsaid),
    });
    running.wake();
    await clock.advance(60_000);
    const gaps = at.slice(1).map((time, i) => time - (at[i] as number));
    expect(Math.max(...gaps)).toBeLessThanOrEqual(5_000);
    expect(Math.min(...gaps)).toBeGreaterThan(0);
    expect(at.length).toBeGreaterThan(12);
    expect(at.length).toBeLessThan(80);
    expect(said.length).toBeLessThanOrEqual(60);
    expect(said.length + said.reduce((sum, unsaid) => sum + unsaid, 0)).toBeLessThanOrEqual(at.length);
    await running.stop();
  });

  test("waking does not cut a back-off short: wakeups during an outage must not become a flood", async () => {
    const clock = virtualClock();
    let runs = 0;
    const running = loop({
      clock,
      ...quiet,
      async step() {
        runs++;
        throw new Error("away");
      },
    });
    await clock.quiet();
    for (let i = 0; i < 100; i++) running.wake();
    await clock.quiet();
    expect(runs).toBe(1);
    await running.stop();
  });

  test("gives up on a step that does not end, and goes on", async () => {
    const clock = virtualClock();
    let runs = 0;
    const running = loop({
      clock,
      ...quiet,
      patience: 1_000,
      step: () => (++runs === 1 ? new Promise<never>(() => {}) : Promise.resolve(undefined)),
    });
    await clock.advance(1_500);
    expect(runs).toBe(2);
    await running.stop();
  });

  test("stopped, it starts no step, and its end waits for the one that runs", async () => {
    const clock = virtualClock();
    const end = barrier();
    let runs = 0;
    const running = loop({
      clock,
      ...quiet,
      async step() {
        runs++;
        await end.opened;
        return 0;
      },
    });
    let stopped = false;
    const stopping = running.stop().then(() => {
      stopped = true;
    });
    await clock.quiet();
    expect(stopped).toBe(false);
    end.open();
    await stopping;
    running.wake();
    await clock.advance(1_000);
    expect(runs).toBe(1);
  });
});

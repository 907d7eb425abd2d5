import { afterEach, beforeEach, expect, type MockInstance, test, vi } from "vitest";
import { gate, World } from "../../../../test/support/world.js";
import { Household } from "./household.js";
import { task } from "./task.js";

let world: World;
let exit: MockInstance;
beforeEach(() => {
  exit = vi.spyOn(process, "exit").mockImplementation(() => undefined as never);
});
afterEach(async () => {
  exit.mockRestore();
  await world.close();
});

const end = gate();
const deaf = task("deaf", { timeout: "1s", retry: 0 }, () => end.opened);

async function home(signals: boolean) {
  world = new World({ tasks: [deaf] });
  const household = new Household(async () => {});
  await household.work({ concurrency: 1, signals }, (options) => world.worker(options));
  await world.enqueue(deaf);
  await world.clock.quiet();
  return household;
}

test("a process that lives for its worker closes and exits with 75 once that is stuck", async () => {
  const household = await home(true);
  await world.clock.advance(30_000);
  expect(household.workers).toHaveLength(1);
  await world.clock.advance(10_000);
  expect(household.workers).toEqual([]);
  expect(exit.mock.calls).toEqual([[75]]);
});

test("a process with a life of its own does not: it is told, and decides", async () => {
  const household = await home(false);
  await world.clock.advance(60_000);
  expect(world.heard("worker.stuck")).toHaveLength(1);
  await world.whilePassing(household.close());
  expect(await world.whilePassing(household.unended())).toBe(1);
  expect(exit).not.toHaveBeenCalled();
});

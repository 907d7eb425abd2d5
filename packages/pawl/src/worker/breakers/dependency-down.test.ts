import { afterEach, describe, expect, test } from "vitest";
import { task } from "../../core/jobs/task.js";
import { DEFAULTS } from "../../core/values/defaults.js";
import { openTest, type TestPawl } from "../../testing/open.js";

let world: TestPawl;
afterEach(() => world.close());

const MINUTE = 60;
const PAIR = { tenant: "default", task: "call" };

/** A task of which nothing is said but its name, a worker alike, and a dependency that is up, then down, then up again. */
async function opened() {
  const dependency = { up: true, calls: 0, most: 0 };
  const call = task("call", (_: number, { attempt }) => {
    dependency.calls++;
    dependency.most = Math.max(dependency.most, attempt);
    if (!dependency.up) throw new Error("connection refused");
  });
  world = await openTest({ tasks: [call], work: {} });
  let owed = 0;
  let made = 0;
  /** Lets seconds pass, with so many jobs a second; answers when the breaker first was open. */
  const pass = async (seconds: number, rate: number): Promise<number | undefined> => {
    let since: number | undefined;
    for (let second = 0; second < seconds; second++) {
      owed += rate;
      const due = Math.floor(owed + 1e-9);
      owed -= due;
      made += due;
      if (due > 0) await world.pawl.enqueueMany(call, Array.from({ length: due }).fill(0) as number[]);
      await world.advance("1s");
      if (since === undefined && (await world.pawl.breakers.get(PAIR))?.state === "open") since = second;
    }
    return since;
  };
  return { dependency, pass, made: () => made };
}

describe("what a task depends on is down for ten minutes, with everything by default", () => {
  test.each([
    // The successes of five minutes before it outnumber the failures for a while.
    ["at a hundred jobs a second", 100, 5, MINUTE],
    ["at a job a minute", 1 / MINUTE, 5, 4 * MINUTE],
  ])("%s no job dies, its breaker opens in time, and all are done when it is up again", { timeout: 240_000 }, async (_, rate, before, soon) => {
    const { dependency, pass, made } = await opened();
    await pass(before * MINUTE, rate);
    dependency.up = false;
    const openSince = await pass(10 * MINUTE, rate);
    expect(await world.pawl.counts()).toMatchObject({ dead: 0 });
    expect(openSince, "s until it opened").toBeLessThanOrEqual(soon);
    expect(dependency.most, "attempts of the job that spent most").toBeLessThanOrEqual(DEFAULTS.job.retries);
    dependency.up = true;
    await pass(5 * MINUTE, 0);
    expect(await world.pawl.counts()).toMatchObject({ succeeded: made(), dead: 0, ready: 0, scheduled: 0 });
  });

  test("a job that is alone, whom no breaker helps, is done as well", async () => {
    const { dependency, pass } = await opened();
    dependency.up = false;
    await pass(1, 1);
    await pass(10 * MINUTE, 0);
    expect((await world.pawl.breakers.list({ state: "open" })).items).toEqual([]);
    expect(await world.pawl.counts()).toMatchObject({ dead: 0, scheduled: 1 });
    dependency.up = true;
    await pass(5 * MINUTE, 0);
    expect(await world.pawl.counts()).toMatchObject({ succeeded: 1 });
  });
});

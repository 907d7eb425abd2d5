import type { Scenario } from "../../contract/scenario.js";
import { outcomeOf } from "../../harness/figures.js";
import { drained, filled, shareOf } from "../steps.js";
import { ALL } from "../systems.js";

export const drain: Scenario = {
  name: "drain",
  measures: "no-op jobs through real handlers, history kept, one worker process: until a second connection sees all of them recorded",
  systems: ALL,
  jobs: 100_000,
  // A turn takes a second, and the machine's speed changes by half within minutes.
  runs: 5,
  async run(bench) {
    const samples = await bench.turns(async (turn) => {
      const count = shareOf(turn.system, bench.jobs);
      await filled(turn, { count });
      return { perSecond: await drained(turn, count) };
    });
    return outcomeOf(samples);
  },
};

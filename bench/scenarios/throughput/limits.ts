import type { Scenario } from "../../contract/scenario.js";
import { partsOf } from "../../harness/figures.js";
import { type Case, caseRows, inCases, over } from "../cases.js";
import { drainedWarm } from "../warm.js";

/** parked in front of a drain of the scenario's size */
const PARKED = 1;

export const limits: Scenario = {
  name: "limits",
  measures:
    "drain by a warm worker, once the server has nothing left to write or to vacuum: without limits, with a concurrency limit on one key of a hundred, and beside as many jobs that a limit keeps parked",
  systems: ["pawl"],
  jobs: 100_000,
  // A drain takes a second, and a machine has better and worse ones: nine of each tell more than three.
  runs: 9,
  async run(bench) {
    const { jobs } = bench;
    const measured = (name: string, backlog: Parameters<typeof drainedWarm>[1]): Case => ({
      name,
      async measure(turn) {
        // In every case: a checkpoint makes the first look at what was stored dearer, whatever it is, and a worker that has met
        // limits has made the plans for them.
        const { perSecond, twice } = await drainedWarm(turn, backlog, { calm: true, limited: true });
        return { perSecond, twice };
      },
    });
    const parked = Math.round(jobs * PARKED);
    const figures = await inCases(bench, [
      measured("no limit", [{ count: jobs }]),
      measured("one key", [{ count: jobs, limited: "one key" }]),
      measured("parked", [
        // The one of them that is let in has the last of the numbers that are counted.
        { from: jobs, count: parked, limited: "parked" },
        { count: jobs },
      ]),
    ]);
    return {
      results: caseRows(figures),
      ratio: over(figures, "perSecond", "one key", "no limit"),
      parts: partsOf({ parked: over(figures, "perSecond", "parked", "no limit") }),
    };
  },
};

import type { Scenario } from "../../contract/scenario.js";
import { figureOf, partsOf, rounded, rowsOf } from "../../harness/figures.js";
import { drained, filled } from "../steps.js";

export const telemetry: Scenario = {
  name: "telemetry",
  measures: "drain, as in the scenario of that name, without telemetry, with metrics, logs and events, and with one job of a hundred traced as well",
  systems: ["pawl", "pawl-observed", "pawl-traced"],
  jobs: 100_000,
  // A drain takes half a second, and a machine has better and worse ones.
  runs: 9,
  async run(bench) {
    const samples = await bench.turns(async (turn) => {
      await filled(turn, { count: bench.jobs });
      return { perSecond: await drained(turn, bench.jobs) };
    });
    const rate = (system: string) => figureOf(system, "perSecond", samples.get(system) ?? []);
    const over = (system: string) => rate(system) / rate("pawl");
    const ratio = over("pawl-observed");
    return {
      results: rowsOf(samples),
      ratio: Number.isFinite(ratio) ? rounded(ratio) : null,
      parts: partsOf({ traced: over("pawl-traced") }),
    };
  },
};

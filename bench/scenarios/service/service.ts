import type { Scenario } from "../../contract/scenario.js";
import { figureOf, partsOf, rounded, rowsOf } from "../../harness/figures.js";
import { drained } from "../steps.js";

export const service: Scenario = {
  name: "service",
  measures:
    "enqueueMany, and a drain as in the scenario of that name, by the library on its store and by its client over HTTP: client, service and server share the machine",
  systems: ["pawl", "pawl-http"],
  jobs: 100_000,
  runs: 3,
  async run(bench) {
    const samples = await bench.turns(async (turn) => {
      const producer = await turn.start();
      const { count, ms } = await producer.enqueueMany({ count: bench.jobs });
      await producer.stop();
      return { bulkPerSecond: (count / ms) * 1_000, perSecond: await drained(turn, bench.jobs) };
    });
    const over = (figure: string) => {
      const [local, remote] = ["pawl", "pawl-http"].map((system) => figureOf(system, figure, samples.get(system) ?? []));
      return (remote as number) / (local as number);
    };
    const ratio = over("perSecond");
    return {
      results: rowsOf(samples),
      ratio: Number.isFinite(ratio) ? rounded(ratio) : null,
      parts: partsOf({ enqueue: over("bulkPerSecond") }),
    };
  },
};

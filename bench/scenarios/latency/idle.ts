import { setTimeout as pause } from "node:timers/promises";
import type { Scenario } from "../../contract/scenario.js";
import { figureOf, partsOf, rowsOf } from "../../harness/figures.js";
import { NODE_SYSTEMS } from "../systems.js";

/** as long as it takes to meet the first look of every duty, whenever that is */
const SECONDS = 60;
/** Starting up is not idling. */
const SETTLE_MS = 3_000;
const JOBS_FIRST = 100;

export const idle: Scenario = {
  name: "idle",
  measures: `an idle worker for ${SECONDS} s: statements (or Redis commands) per second, CPU of the worker and of its server`,
  systems: NODE_SYSTEMS,
  jobs: JOBS_FIRST,
  runs: 1,
  async run(bench) {
    const samples = await bench.turns(
      async (turn) => {
        const worker = await turn.start();
        await worker.work({ upTo: bench.jobs });
        await worker.enqueueMany({ count: bench.jobs }); // it has had something to do, and has nothing now
        await worker.ran(bench.jobs);
        await turn.recorded(bench.jobs);
        await pause(SETTLE_MS);

        const own = await turn.inspect.usage();
        const before = await turn.inspect.usage();
        const clientBefore = await worker.usage();
        turn.say(`idle for ${SECONDS} s`);
        await pause(SECONDS * 1_000);
        const clientAfter = await worker.usage();
        const after = await turn.inspect.usage();
        await worker.stop();
        // What one look costs is known from two in a row.
        const ours = before.statements - own.statements;
        return {
          queriesPerSecond: (after.statements - before.statements - ours) / SECONDS,
          clientCpuPercent: (clientAfter.cpuMs - clientBefore.cpuMs) / SECONDS / 10,
          serverCpuPercent: (after.cpuMs - before.cpuMs) / SECONDS / 10,
        };
      },
      { aim: "latency", countStatements: true },
    );
    const queriesPerSecond = figureOf("pawl", "queriesPerSecond", samples.get("pawl") ?? []);
    return { results: rowsOf(samples), ratio: null, parts: partsOf({ queriesPerSecond }) };
  },
};

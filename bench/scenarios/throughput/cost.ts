import type { ServerUsage } from "../../contract/inspector.js";
import type { Scenario, Turn } from "../../contract/scenario.js";
import { figureOf, overBestPeer, partsOf, rowsOf } from "../../harness/figures.js";
import { analyzed } from "../steps.js";
import { NODE_SYSTEMS } from "../systems.js";

export const cost: Scenario = {
  name: "cost",
  measures: "what a job costs from enqueue to recorded: WAL, disk, commits, statements, CPU of clients and server, memory of the worker",
  systems: NODE_SYSTEMS,
  jobs: 100_000,
  runs: 1,
  async run(bench) {
    const samples = await bench.turns(async (turn) => measured(turn, bench.jobs), { countStatements: true });
    const pawl = samples.get("pawl") ?? [];
    const cpu = overBestPeer(samples, "cpuPer100kSeconds");
    return {
      results: rowsOf(samples),
      ratio: cpu,
      parts: partsOf({
        walKB: figureOf("pawl", "walKB", pawl),
        diskKB: figureOf("pawl", "diskKB", pawl),
        cpuOfBestPeer: cpu === null ? null : 1 / cpu,
      }),
    };
  },
};

async function measured(turn: Turn, jobs: number) {
  const producer = await turn.start();
  const worker = await turn.start();
  const before = await turn.inspect.usage();
  const clientsBefore = [await producer.usage(), await worker.usage()];

  await producer.enqueueMany({ count: jobs });
  await analyzed(turn);
  await worker.work({ upTo: jobs });
  await worker.ran(jobs);
  await turn.recorded(jobs);

  const clientsAfter = [await producer.usage(), await worker.usage()];
  // Counters of a connection are complete when it is closed; what the CPU did by then is the server's.
  await producer.stop();
  await worker.stop();
  const after = await turn.inspect.usage();
  await turn.verify(jobs);

  const spent = (figure: keyof ServerUsage) => after[figure] - before[figure];
  const client = clientsAfter.reduce((sum, { cpuMs }, index) => sum + cpuMs - (clientsBefore[index]?.cpuMs ?? 0), 0);
  const per100k = (ms: number) => (ms / jobs) * 100;
  return {
    cpuPer100kSeconds: per100k(client + spent("cpuMs")),
    clientCpuPer100kSeconds: per100k(client),
    serverCpuPer100kSeconds: per100k(spent("cpuMs")),
    walKB: spent("logBytes") / jobs / 1_024,
    diskKB: spent("dataBytes") / jobs / 1_024,
    commitsPerJob: spent("commits") / jobs,
    statementsPerJob: spent("statements") / jobs,
    workerRssMB: (clientsAfter[1]?.peakRssBytes ?? Number.NaN) / 2 ** 20,
  };
}

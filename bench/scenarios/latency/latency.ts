import type { Figures, Scenario, Turn } from "../../contract/scenario.js";
import { overBestPeer, partsOf, rowsOf } from "../../harness/figures.js";
import { ALL, isPostgresPeer } from "../systems.js";

const PER_SECOND = 50;
/** The first ones open connections and compile code. */
const WARM_UP = 500;

export const latency: Scenario = {
  name: "latency",
  measures: `from the call of enqueue in one process to the start of the handler in another, at ${PER_SECOND} jobs per second`,
  systems: ALL,
  // A hundredth of them is what p99 goes by: twenty, since the disk's bad moments come as five or ten jobs in a row.
  jobs: 2_000,
  runs: 3,
  async run(bench) {
    const measure = (turn: Turn) => measured(turn, bench.jobs);
    const onPostgres = bench.systems.filter(({ store }) => store === "postgres");
    const onRedis = bench.systems.filter(({ store }) => store === "redis");
    const samples = new Map([
      ...(await bench.turns(measure, { aim: "latency", systems: onPostgres })),
      // Those on Redis are no part of the ratio: one look at each is enough.
      ...(await bench.turns(measure, { aim: "latency", systems: onRedis, runs: 1 })),
    ]);
    const p50 = overBestPeer(samples, "p50Ms", isPostgresPeer);
    const p99 = overBestPeer(samples, "p99Ms", isPostgresPeer);
    return { results: rowsOf(samples), ratio: p50 === null || p99 === null ? null : Math.min(p50, p99), parts: partsOf({ p50, p99 }) };
  },
};

async function measured(turn: Turn, jobs: number): Promise<Figures> {
  const total = WARM_UP + jobs;
  const producer = await turn.start();
  const worker = await turn.start();
  await worker.work({ upTo: total });
  await producer.enqueueEach({ count: WARM_UP, inFlight: 1 });
  await worker.ran(WARM_UP);
  await producer.enqueuePaced({ from: WARM_UP, count: jobs, perSecond: PER_SECOND });
  const { latency: spread, twice } = await worker.ran(total);
  if (twice > 0) throw new Error(`${turn.system.label} ran ${twice} jobs twice`);
  await turn.recorded(total);
  await worker.stop();
  await producer.stop();
  await turn.verify(total);
  return { p50Ms: spread.p50, p99Ms: spread.p99, maxMs: spread.max };
}

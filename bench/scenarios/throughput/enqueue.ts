import type { Child } from "../../contract/child.js";
import type { Scenario, Turn } from "../../contract/scenario.js";
import { overBestPeer, partsOf, rowsOf } from "../../harness/figures.js";
import { shareOf } from "../steps.js";
import { ALL, isPostgresPeer } from "../systems.js";

/** Of the jobs in bulk: the other two ways are slower by far. */
const SINGLES = 1 / 20;
const IN_FLIGHT_SHARE = 1 / 5;
const IN_FLIGHT = 64;

export const enqueue: Scenario = {
  name: "enqueue",
  measures: "jobs in bulk; also single ones awaited one by one, and with 64 in flight; all counted by a second connection",
  systems: ALL,
  jobs: 100_000,
  runs: 3,
  async run(bench) {
    const samples = await bench.turns(async (turn) => {
      const jobs = shareOf(turn.system, bench.jobs);
      const singles = Math.ceil(jobs * SINGLES);
      const inFlight = Math.ceil(jobs * IN_FLIGHT_SHARE);
      const producer = await warm(turn);
      const bulk = await producer.enqueueMany({ from: WARM_UP, count: jobs });
      await stored(turn, WARM_UP + jobs);
      const one = await producer.enqueueEach({ from: 0, count: singles, inFlight: 1 });
      const many = await producer.enqueueEach({ from: 0, count: inFlight, inFlight: IN_FLIGHT });
      await stored(turn, WARM_UP + jobs + singles + inFlight);
      await producer.stop();
      const rate = ({ count, ms }: { count: number; ms: number }) => (count / ms) * 1_000;
      return { bulkPerSecond: rate(bulk), singlePerSecond: rate(one), inFlight64PerSecond: rate(many), singleP99Ms: one.latency.p99 };
    });
    const over = (figure: string) => overBestPeer(samples, figure, isPostgresPeer);
    return {
      results: rowsOf(samples).map((row) => ({ ...row, perSecond: row.bulkPerSecond })),
      ratio: over("bulkPerSecond"),
      parts: partsOf({ single: over("singlePerSecond"), inFlight64: over("inFlight64PerSecond") }),
    };
  },
};

const WARM_UP = 1_000;

/** Connections are open and code is compiled: a producer lives longer than the first call. */
async function warm(turn: Turn): Promise<Child> {
  const producer = await turn.start();
  await producer.enqueueMany({ count: WARM_UP / 2 });
  await producer.enqueueEach({ from: WARM_UP / 2, count: WARM_UP / 2, inFlight: IN_FLIGHT });
  return producer;
}

async function stored(turn: Turn, count: number): Promise<void> {
  const found = await turn.inspect.unfinished();
  if (found !== count) throw new Error(`${turn.system.label} has stored ${found} of ${count} jobs`);
}

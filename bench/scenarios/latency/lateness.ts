import type { Child, Jobs } from "../../contract/child.js";
import type { Figures, Scenario, Turn } from "../../contract/scenario.js";
import type { SystemAbout } from "../../contract/system.js";
import { figureOf, overBestPeer, partsOf, rowsOf } from "../../harness/figures.js";
import { ALL } from "../systems.js";

const OVER_MS = 30_000;

export const lateness: Scenario = {
  name: "lateness",
  measures: "jobs due at scattered instants in 30 s: the start of the handler minus the due time",
  systems: ALL,
  jobs: 20_000,
  runs: 2,
  async run(bench) {
    const samples = await bench.turns((turn) => measured(turn, bench.jobs), { aim: "latency" });
    const ours = samples.get("pawl");
    const parts = ours === undefined ? {} : { p50Ms: figureOf("pawl", "p50Ms", ours), p99Ms: figureOf("pawl", "p99Ms", ours) };
    return { results: rowsOf(samples), ratio: overBestPeer(samples, "p99Ms"), parts: partsOf(parts) };
  },
};

async function measured(turn: Turn, count: number): Promise<Figures> {
  const worker = await turn.start();
  await worker.work({ upTo: count });
  const producer = await turn.start();
  const start = Date.now() + leadMs(turn.system, count);
  await storedBefore(start, producer, [{ count, due: { start, over: OVER_MS } }]);
  return ranLate(turn, worker, count);
}

/** Time to enqueue them before the first is due. */
function leadMs({ slow }: SystemAbout, count: number): number {
  return 5_000 + count * (slow ? 2 : 0.5);
}

/** Enqueues in a process that is gone before the first job is due: nobody shall be late for being asked late. */
export async function storedBefore(start: number, producer: Child, batches: Iterable<Jobs>): Promise<void> {
  for (const jobs of batches) await producer.enqueueMany(jobs);
  await producer.stop();
  if (Date.now() > start) throw new Error(`${producer.system.label} took ${Date.now() - start} ms too long to enqueue`);
}

/** Waits for all of them; how late their handlers started, as the handlers saw it. */
export async function ranLate(turn: Turn, worker: Child, count: number): Promise<Figures> {
  const { lateness: late, twice } = await worker.ran(count);
  await turn.recorded(count);
  await worker.stop();
  if (twice > 0) throw new Error(`${turn.system.label} ran ${twice} jobs twice`);
  await turn.verify(count);
  return { p50Ms: late.p50, p90Ms: late.p90, p99Ms: late.p99, p999Ms: late.p999, maxMs: late.max };
}

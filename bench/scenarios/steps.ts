import type { Jobs } from "../contract/child.js";
import type { Turn } from "../contract/scenario.js";
import type { SystemAbout } from "../contract/system.js";

/** How many jobs a system is given where only their rate counts. */
export function shareOf({ slow }: SystemAbout, jobs: number): number {
  return slow ? Math.ceil(jobs / 10) : jobs;
}

/** Enqueues jobs in a process of its own, which is gone when they are stored. */
export async function filled(turn: Turn, jobs: Jobs): Promise<void> {
  const producer = await turn.start();
  await producer.enqueueMany(jobs);
  await producer.stop();
  await analyzed(turn);
}

/**
 * A server that has been up for a minute knows its tables, and some plan by that: graphile-worker drains 15,000 jobs a second
 * before autovacuum's first look, and three to four times as many after it. Left to chance, that look comes in one turn of five.
 */
export async function analyzed(turn: Turn): Promise<void> {
  if (turn.location.kind === "postgres") await turn.inspect.query("analyze");
}

/**
 * Runs what is there in one new worker process; answers jobs per second, from the start of the worker until a second
 * connection sees everything recorded. `finished`: how many jobs the store has then seen in all, if more than these.
 */
export async function drained(turn: Turn, jobs: number, finished = jobs): Promise<number> {
  const worker = await turn.start();
  const { began } = await worker.work({ upTo: finished });
  await worker.ran(jobs);
  const ended = await turn.recorded(finished);
  const { twice } = await worker.report();
  await worker.stop();
  if (twice > 0) throw new Error(`${turn.system.label} ran ${twice} jobs twice`);
  await turn.verify(finished);
  return (jobs / (ended - began)) * 1_000;
}

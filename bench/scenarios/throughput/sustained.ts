import type { Scenario } from "../../contract/scenario.js";
import { outcomeOf } from "../../harness/figures.js";
import { NODE_SYSTEMS } from "../systems.js";

/** Jobs the producer may be ahead: enough that no worker runs dry, not so many that the backlog is what is measured. */
const BACKLOG = 20_000;
const CHUNK = 2_000;
/** What fits into 30 s, with room to spare: --jobs says how long, at this many per second. */
const JOBS_PER_SECOND = 100_000;

export const sustained: Scenario = {
  name: "sustained",
  measures: "one process enqueueing and another draining at once, for 30 s (--jobs: 100,000 for each second): jobs run per second of that time",
  systems: NODE_SYSTEMS,
  jobs: 30 * JOBS_PER_SECOND,
  runs: 3,
  async run(bench) {
    const ms = (bench.jobs / JOBS_PER_SECOND) * 1_000;
    const samples = await bench.turns(async (turn) => {
      const producer = await turn.start();
      const worker = await turn.start();
      worker.onProgress((count) => producer.done(count));
      // Numbers may go beyond what anybody expects: each is a byte of the worker's memory.
      await worker.work({ upTo: 4 * bench.jobs + BACKLOG });
      const enqueued = await producer.enqueueFor({ ms, chunk: CHUNK, backlog: BACKLOG });
      const during = await worker.report();
      turn.say("draining what is left");
      await worker.ran(enqueued.count);
      await turn.recorded(enqueued.count);
      const { twice } = await worker.report();
      if (twice > 0) throw new Error(`${turn.system.label} ran ${twice} jobs twice`);
      await worker.stop();
      await producer.stop();
      await turn.verify(enqueued.count);
      return { perSecond: (during.count / enqueued.ms) * 1_000, enqueuedPerSecond: (enqueued.count / enqueued.ms) * 1_000 };
    });
    return outcomeOf(samples);
  },
};

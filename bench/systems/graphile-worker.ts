import { Logger, makeWorkerUtils, type Runner, run } from "graphile-worker";
import { chunked, inParallel } from "../child/jobs.ts";
import type { Aim, Input, PlannedJob, Session, StoreLocation } from "../contract/system.ts";
import { postgresAt } from "./store-location.ts";

const TASK = "noop";
const CHUNK = 10_000;
const POOL = 10;

export async function connect(location: StoreLocation, aim: Aim): Promise<Session> {
  const { url } = postgresAt(location);
  const logger = new Logger(() => () => {});
  const utils = await makeWorkerUtils({ preset: { worker: { connectionString: url, maxPoolSize: POOL, logger } } });
  let runner: Runner | undefined;
  const specOf = ({ input: { due } }: PlannedJob) => (due === undefined ? {} : { runAt: new Date(due) });
  const batching = aim === "throughput" ? { localQueue: { size: 500 }, completeJobBatchDelay: 1, failJobBatchDelay: 1 } : {};

  return {
    prepare: () => utils.migrate(),
    async enqueue(job) {
      await utils.addJob(TASK, job.input, specOf(job));
    },
    enqueueMany: (jobs) =>
      inParallel(chunked(jobs, CHUNK), 2, (chunk) => utils.addJobs(chunk.map((job) => ({ identifier: TASK, payload: job.input, ...specOf(job) })))),
    async work(handle, { concurrency = 100 }) {
      runner = await run({
        preset: { worker: { connectionString: url, concurrentJobs: concurrency, maxPoolSize: POOL, logger, ...batching } },
        noHandleSignals: true,
        taskList: { [TASK]: async (input) => handle(input as Input) },
      });
    },
    async stop() {
      await runner?.stop();
      await utils.release();
    },
  };
}

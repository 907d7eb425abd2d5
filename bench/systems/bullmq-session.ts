import type { Queue, Worker } from "bullmq";
import { chunked, inParallel } from "../child/jobs.ts";
import type { Input, PlannedJob, Session } from "../contract/system.ts";

const CHUNK = 1_000;
const IN_FLIGHT = 4;

export const QUEUE = "bench";
const JOB = "noop";

export interface SessionDeps {
  openQueue(): Queue<Input>;
  migrate(): Promise<void>;
  worker(handler: (job: { readonly data: Input }) => Promise<void>, concurrency: number | undefined): Worker;
}

/** BullMQ is used the same way on both its stores. */
export function bullmqSession({ openQueue, migrate, worker }: SessionDeps): Session {
  let opened: Queue<Input> | undefined;
  let working: Worker | undefined;
  // When first used: it looks for its tables at once, and they are not there before `prepare`.
  const queue = () => {
    opened ??= openQueue();
    return opened;
  };
  const optionsOf = ({ input: { due } }: PlannedJob) => (due === undefined ? {} : { delay: Math.max(0, due - Date.now()) });
  return {
    prepare: migrate,
    async enqueue(job) {
      await queue().add(JOB, job.input, optionsOf(job));
    },
    enqueueMany: (jobs) =>
      inParallel(chunked(jobs, CHUNK), IN_FLIGHT, (chunk) =>
        queue().addBulk(chunk.map((job) => ({ name: JOB, data: job.input, opts: optionsOf(job) }))),
      ),
    async work(handle, { concurrency }) {
      working = worker(async ({ data }) => handle(data), concurrency);
      working.on("error", (error) => console.error(error));
      await working.waitUntilReady();
    },
    async stop() {
      await working?.close();
      await opened?.close();
    },
  };
}

import BeeQueue from "bee-queue";
import { chunked, inParallel } from "../child/jobs.ts";
import type { Input, PlannedJob, Session, StoreLocation } from "../contract/system.ts";
import { redisAt } from "./store-location.ts";

const CHUNK = 1_000;
const CONCURRENCY = 100;

export async function connect(location: StoreLocation): Promise<Session> {
  const redis = { socket: redisAt(location).socket };
  const quiet = { redis, getEvents: false, sendEvents: false, storeJobs: false };
  const producer = new BeeQueue<Input>("bench", { ...quiet, isWorker: false });
  await producer.ready();
  let worker: BeeQueue<Input> | undefined;
  const jobOf = ({ input }: PlannedJob) => {
    const job = producer.createJob(input);
    return input.due === undefined ? job : job.delayUntil(new Date(input.due));
  };

  return {
    async prepare() {},
    async enqueue(job) {
      await jobOf(job).save();
    },
    enqueueMany: (jobs) =>
      inParallel(chunked(jobs, CHUNK), 1, async (chunk) => {
        const errors = await producer.saveAll(chunk.map(jobOf));
        for (const error of errors.values()) throw error;
      }),
    async work(handle, { concurrency = CONCURRENCY }) {
      worker = new BeeQueue<Input>("bench", { ...quiet, activateDelayedJobs: true, delayedDebounce: 1 });
      await worker.ready();
      worker.process(concurrency, async ({ data }) => handle(data));
    },
    async stop() {
      await worker?.close();
      await producer.close();
    },
  };
}

import { PgBoss } from "pg-boss";
import { chunked, inParallel } from "../child/jobs.ts";
import type { Aim, Input, PlannedJob, Session, StoreLocation } from "../contract/system.ts";
import { postgresAt } from "./store-location.ts";

const QUEUE = "bench";
const INSERT = 10_000;
const BATCH = 1_000;
const WORKERS = 2;
const POOL = 25;

export async function connect(location: StoreLocation, aim: Aim): Promise<Session> {
  const { host, port, user, database } = postgresAt(location);
  const notify = aim === "latency";
  const boss = new PgBoss({ host, port, user, database, max: POOL, useListenNotify: notify });
  boss.on("error", (error) => console.error(error));
  await boss.start();
  const optionsOf = ({ input: { due } }: PlannedJob) => (due === undefined ? {} : { startAfter: new Date(due) });

  return {
    async prepare() {
      await boss.createQueue(QUEUE, { notify });
    },
    async enqueue(job) {
      await boss.send(QUEUE, job.input, optionsOf(job));
    },
    enqueueMany: (jobs) =>
      inParallel(chunked(jobs, INSERT), 2, (chunk) =>
        boss.insert(
          QUEUE,
          chunk.map((job) => ({ data: job.input, ...optionsOf(job) })),
        ),
      ),
    async work(handle, { concurrency = WORKERS }) {
      const polling = { pollingIntervalSeconds: 0.5, burstWhenBatchFull: true };
      await boss.work<Input>(QUEUE, { batchSize: BATCH, localConcurrency: concurrency, ...polling }, async (jobs) => {
        for (const { data } of jobs) handle(data);
      });
    },
    stop: () => boss.stop({ graceful: true }),
  };
}

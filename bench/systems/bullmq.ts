import { Queue, Worker } from "bullmq";
import type { Input, Session, StoreLocation } from "../contract/system.ts";
import { bullmqSession, QUEUE } from "./bullmq-session.ts";
import { redisAt } from "./store-location.ts";

export async function connect(location: StoreLocation): Promise<Session> {
  const connection = { path: redisAt(location).socket, maxRetriesPerRequest: null };
  return bullmqSession({
    openQueue: () => new Queue<Input>(QUEUE, { connection }),
    async migrate() {},
    worker: (handler, concurrency = 100) => new Worker<Input>(QUEUE, handler, { connection, concurrency }),
  });
}

import { Queue, Worker } from "bullmq";
import type { Input, Place, Session } from "../contract/system.ts";
import { bullmqSession, QUEUE } from "./bullmq-session.ts";
import { redisAt } from "./place.ts";

export async function connect(place: Place): Promise<Session> {
  const connection = { path: redisAt(place).socket, maxRetriesPerRequest: null };
  return bullmqSession({
    openQueue: () => new Queue<Input>(QUEUE, { connection }),
    async migrate() {},
    worker: (handler, concurrency = 100) => new Worker<Input>(QUEUE, handler, { connection, concurrency }),
  });
}

import { createPostgresBackend, Queue, runMigrations, Worker } from "bullmq";
import pg from "pg";
import type { Input, Place, Session } from "../contract/system.ts";
import { bullmqSession, QUEUE } from "./bullmq-session.ts";
import { postgresAt } from "./place.ts";

const CONCURRENCY = 32;

export async function connect(place: Place): Promise<Session> {
  const { host, port, user, database } = postgresAt(place);
  const address = { host, port, user, database };
  return bullmqSession({
    openQueue: () => new Queue<Input>(QUEUE, { connection: { ...address, max: CONCURRENCY } }, createPostgresBackend),
    async migrate() {
      const client = new pg.Client(address);
      await client.connect();
      await runMigrations(client);
      await client.end();
    },
    worker: (handler, concurrency = CONCURRENCY) =>
      new Worker<Input>(QUEUE, handler, { connection: { ...address, max: concurrency }, concurrency }, createPostgresBackend),
  });
}

import { createPostgresBackend, Queue, runMigrations, Worker } from "bullmq";
import pg from "pg";
import type { Input, Session, StoreLocation } from "../contract/system.ts";
import { bullmqSession, QUEUE } from "./bullmq-session.ts";
import { postgresAt } from "./store-location.ts";

const CONCURRENCY = 32;

export async function connect(location: StoreLocation): Promise<Session> {
  const { host, port, user, database } = postgresAt(location);
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

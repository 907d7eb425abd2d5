import type { AddressInfo } from "node:net";
import { open, task } from "pawl";
import { serviceOf } from "pawl/service";
import { expect, test } from "vitest";
import { parseEvents } from "../../packages/pawl/src/remote/views/events.js";
import { createApp } from "../../packages/server/src/http/app.js";
import { onceOrAgain } from "../support/again.js";
import { type Database, describeOn, migratedDatabase, type ServerName } from "../support/servers/servers.js";

/** A process that serves the API, and nothing else. */
async function node(database: Database) {
  const pawl = await open(database.url, { maintenance: false, allowUnknownTasks: true });
  const app = createApp({ pawl });
  await app.listen({ host: "127.0.0.1", port: 0 });
  const address = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}/v1/events`;
  return {
    address,
    pawl,
    async [Symbol.asyncDispose]() {
      await app.close();
      await pawl.close();
    },
  };
}

interface StreamedEvent {
  readonly id?: string | undefined;
  readonly event: string | undefined;
  readonly data: string;
}

/** Reads a stream until something is told, and answers with all that was. */
async function readEvents(address: string, last: string | undefined, isLast: (event: StreamedEvent) => boolean, meanwhile?: () => Promise<void>) {
  const disconnect = new AbortController();
  const response = await fetch(address, { headers: last === undefined ? {} : { "last-event-id": last }, signal: disconnect.signal });
  const events: StreamedEvent[] = [];
  await meanwhile?.();
  for await (const event of parseEvents(response.body as unknown as AsyncIterable<Uint8Array>)) {
    events.push(event);
    if (isLast(event)) break;
  }
  disconnect.abort();
  return events;
}

for (const server of onceOrAgain<ServerName>(["embedded18", "debian15"])) {
  describeOn(server, () => {
    test("60 streams that come at once are all answered, and ask the store no more than one does", { timeout: 120_000 }, async () => {
      await using database = await migratedDatabase(server);
      await using many = await node(database);
      const { events } = serviceOf(many.pawl);
      let tails = 0;
      const follow = events.follow.bind(events);
      Object.assign(events, {
        follow: (...args: Parameters<typeof follow>) => {
          tails++;
          return follow(...args);
        },
      });
      const disconnect = new AbortController();
      const answers = await Promise.all(Array.from({ length: 60 }, () => fetch(many.address, { signal: disconnect.signal })));
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
      expect(tails).toBe(1);
      disconnect.abort();
    });

    test("a stream tells of the work of other processes, and goes on at another node where it was at the first", { timeout: 120_000 }, async () => {
      await using database = await migratedDatabase(server);
      await using elsewhere = await open(database.url, { tasks: [task("hello", async () => {})] });
      await elsewhere.work();
      let last: string | undefined;
      const settled =
        (job: string) =>
        ({ event, data }: StreamedEvent) =>
          event === "attempt.settled" && data.includes(job);
      const run = async () => {
        const { id } = await elsewhere.enqueue("hello");
        await elsewhere.jobs.wait(id);
        return id;
      };
      {
        await using first = await node(database);
        let seen = "";
        // The other process begins to tell within a second of the first stream: until then there is nothing to hear of it.
        const events = await readEvents(
          first.address,
          undefined,
          ({ event }) => event === "attempt.settled",
          async () => {
            for (let tries = 0; tries < 40 && seen === ""; tries++) {
              await run();
              if ((await serviceOf(first.pawl).events.since({ epoch: "", batch: 0 })).batches.length > 0) seen = "yes";
            }
          },
        );
        expect(seen).toBe("yes");
        last = events.at(-1)?.id;
      }
      const missed = await run();
      await using second = await node(database);
      const after = await readEvents(second.address, last, settled(missed));
      expect(after.filter(({ event }) => event === "gap")).toEqual([]);
      expect(after.filter(settled(missed))).toHaveLength(1);
      const unknownEpoch = await readEvents(second.address, "ffffffffffff-1", settled(missed));
      expect(unknownEpoch[0]?.event).toBe("gap");
    });
  });
}

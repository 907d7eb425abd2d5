import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { nativePostgres } from "../../packages/pawl/src/store/postgres/embedded/index.js";
import { eventually } from "../support/eventually.js";
import { type PrivateServer, startPrivateServer } from "../support/private-server.js";
import { STEADY, Stage } from "../support/stage.js";
import { Standstill } from "../support/standstill.js";

const native = nativePostgres();

describe.skipIf(!native.ok)(`a Postgres of our own${native.ok ? "" : ` (${native.reason})`}`, () => {
  let server: PrivateServer;
  beforeAll(async () => {
    server = await startPrivateServer();
  });
  afterAll(() => server?.close());

  for (const [how, signal] of [
    ["killed with -9", "SIGKILL"],
    ["restarted fast", "SIGINT"],
  ] as const) {
    it(`${how}: claims resume within 3 s of it accepting connections, no process exits, nothing is lost (C3, C5)`, async () => {
      await using database = await server.database();
      await using stage = await Stage.open({ url: database.url });
      await stage.enqueueMany("counter", 400, { ms: 100 });
      const workers = [
        await stage.worker({ ...STEADY.work, concurrency: 5 }, STEADY.open),
        await stage.worker({ ...STEADY.work, concurrency: 5 }, STEADY.open),
      ];
      await eventually("work is under way", () => stage.sink.lines("end").length >= 10);

      using still = new Standstill();
      const { acceptedAt } = await server.restart(signal);
      const resumed = await eventually("claims resume", () => stage.sink.lines("start").find(({ at }) => at > acceptedAt));
      expect(resumed.at - acceptedAt).toBeLessThanOrEqual(3_000 + still.ms);

      await stage.reconnect();
      const more = await eventually("enqueueing works", () => stage.enqueue("counter").catch(() => undefined));
      await stage.drained();
      expect(await more.get()).toMatchObject({ state: "succeeded" });
      for (const worker of workers) expect(worker.exit, worker.describe()).toBeUndefined();
      await stage.check({ attempted: await stage.everyId() });
    });
  }
});

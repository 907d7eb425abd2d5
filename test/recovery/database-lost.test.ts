import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { nativePostgres } from "../../packages/pawl/src/store/postgres/embedded/index.js";
import { eventually } from "../support/eventually.js";
import { ProcessFixture, STEADY_LEASES } from "../support/fixtures/process-fixture.js";
import { Standstill } from "../support/processes/standstill.js";
import { type PrivateServer, startPrivateServer } from "../support/servers/private-server.js";

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
      await using fixture = await ProcessFixture.open({ url: database.url });
      await fixture.enqueueMany("counter", 400, { ms: 100 });
      const workers = [
        await fixture.worker({ ...STEADY_LEASES.work, concurrency: 5 }, STEADY_LEASES.open),
        await fixture.worker({ ...STEADY_LEASES.work, concurrency: 5 }, STEADY_LEASES.open),
      ];
      await eventually("work is under way", () => fixture.handlerLog.lines("end").length >= 10);

      using still = new Standstill();
      const { acceptedAt } = await server.restart(signal);
      const resumed = await eventually("claims resume", () => fixture.handlerLog.lines("start").find(({ at }) => at > acceptedAt));
      expect(resumed.at - acceptedAt).toBeLessThanOrEqual(3_000 + still.ms);

      await fixture.reconnect();
      const more = await eventually("enqueueing works", () => fixture.enqueue("counter").catch(() => undefined));
      await fixture.drained();
      expect(await more.get()).toMatchObject({ state: "succeeded" });
      for (const worker of workers) expect(worker.exit, worker.describe()).toBeUndefined();
      await fixture.check({ attempted: await fixture.storedIds() });
    });
  }
});

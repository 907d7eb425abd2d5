import { expect } from "vitest";
import type { Serves } from "../../src/core/limits/capacity.js";
import type { Test } from "../suite.js";
import { ANA, ANA_REBORN, BOB, MINUTE, SECOND, START } from "../world.js";

const MAILER: Serves = { tasks: ["mail"], provides: { capabilities: [], resources: {} }, concurrency: { total: 10 } };
const CODER: Serves = {
  tasks: ["encode", `a "quoted" \\ {task}, ü`],
  queues: ["films"],
  priorities: [5, 9],
  tenants: ["acme"],
  provides: { capabilities: ["gpu", "region:eu"], resources: { cpu: 0.5, memory: 8_192 } },
  concurrency: { total: 4, queues: { films: 2 }, tasks: { encode: 1 } },
  slots: {
    total: 4,
    inUse: 3,
    overrun: 1,
    tasks: [{ task: "encode", running: 2, since: START, took: 1.5, longest: 9, overrun: 1, overdue: START + SECOND }],
    ends: [START + SECOND, START + MINUTE, null],
  },
};

export function workerTests(test: Test): void {
  test("a worker that says what it serves is live for as long as it said", async (w) => {
    expect(await w.store.workers.live()).toEqual([]);
    await w.store.workers.publish(BOB, MAILER, 30 * SECOND);
    await w.store.workers.publish(ANA, CODER, 45 * SECOND);
    expect(await w.store.workers.live()).toEqual([
      { ...ANA, serves: CODER, since: START, until: START + 45 * SECOND },
      { ...BOB, serves: MAILER, since: START, until: START + 30 * SECOND },
    ]);
    w.clock.advance(30 * SECOND);
    expect((await w.store.workers.live()).map(({ name }) => name)).toEqual(["ana"]);
    w.clock.advance(15 * SECOND);
    expect(await w.store.workers.live()).toEqual([]);
  });

  test("a worker that says so again goes on, with what it serves now", async (w) => {
    await w.store.workers.publish(ANA, MAILER, 30 * SECOND);
    w.clock.advance(20 * SECOND);
    await w.store.workers.publish(ANA, CODER, 30 * SECOND);
    w.clock.advance(29 * SECOND);
    expect(await w.store.workers.live()).toEqual([{ ...ANA, serves: CODER, since: START, until: START + 50 * SECOND }]);
  });

  test("a worker that was silent for too long begins anew", async (w) => {
    await w.store.workers.publish(ANA, MAILER, SECOND);
    w.clock.advance(2 * SECOND);
    await w.store.workers.publish(ANA, MAILER, SECOND);
    expect((await w.store.workers.live()).map(({ since }) => since)).toEqual([START + 2 * SECOND]);
  });

  test("a worker that retires is gone at once, and its next life is another worker", async (w) => {
    await w.store.workers.retire(ANA);
    await w.store.workers.publish(ANA, MAILER, 30 * SECOND);
    await w.store.workers.publish(ANA_REBORN, CODER, 30 * SECOND);
    expect((await w.store.workers.live()).map(({ instance }) => instance)).toEqual([ANA.instance, ANA_REBORN.instance]);
    await w.store.workers.retire(ANA);
    await w.store.workers.retire(ANA);
    expect((await w.store.workers.live()).map(({ instance }) => instance)).toEqual([ANA_REBORN.instance]);
  });
}

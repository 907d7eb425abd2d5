import { task } from "pawl";
import { openTest } from "pawl/testing";
import { expect, test } from "vitest";
import { logTo } from "../telemetry/logs/log.js";
import { Readiness } from "./ready.js";

test("a process is not ready while a worker of its is stuck, and says so as an error with a code", async () => {
  const ends: (() => void)[] = [];
  const endless = task("deaf", { timeout: "1s", retry: 0 }, () => new Promise<void>((resolve) => ends.push(resolve)));
  await using world = await openTest({ tasks: [endless], work: { concurrency: 2, name: "w" } });
  const lines: string[] = [];
  logTo({ write: (line) => void lines.push(line) }).follow(world.pawl);
  const stuck = () => lines.map((line) => JSON.parse(line) as { event: string }).filter(({ event }) => event.endsWith("stuck"));
  const readiness = new Readiness(world.pawl);
  await world.pawl.enqueueMany(endless, [undefined, undefined]);
  await world.advance("20s");
  await readiness.check();
  expect(stuck()).toEqual([]);
  await world.advance("20s");
  await expect(readiness.check()).rejects.toMatchObject({ code: "worker_stuck", details: { worker: "w", overrun: 2 } });
  expect(stuck()).toMatchObject([{ level: "error", code: "worker_stuck", worker: "w", overrun: 2 }]);
  for (const end of ends) end();
  await world.idle();
  await readiness.check();
  expect(stuck()).toMatchObject([{ event: "worker.stuck" }, { event: "worker.unstuck", level: "info" }]);
});

import { afterEach, beforeEach, expect, type MockInstance, test, vi } from "vitest";
import { barrier, MemoryFixture } from "../../../../test/support/fixtures/memory-fixture.js";
import { task } from "../core/jobs/task.js";
import { WorkerGroup } from "./worker-group.js";

let fixture: MemoryFixture;
let exit: MockInstance;
beforeEach(() => {
  exit = vi.spyOn(process, "exit").mockImplementation(() => undefined as never);
});
afterEach(async () => {
  exit.mockRestore();
  await fixture.close();
});

const end = barrier();
const deaf = task("deaf", { timeout: "1s", retry: 0 }, () => end.opened);

async function home({ closeOnSignal }: { readonly closeOnSignal: boolean }) {
  fixture = new MemoryFixture({ tasks: [deaf] });
  const workerGroup = new WorkerGroup(async () => {});
  await workerGroup.work({ concurrency: 1 }, (options) => fixture.worker(options));
  if (closeOnSignal) void workerGroup.closeOnSignal();
  await fixture.enqueue(deaf);
  await fixture.clock.quiet();
  return workerGroup;
}

test("a process that lives for its worker closes and exits with 75 once that is stuck", async () => {
  const workerGroup = await home({ closeOnSignal: true });
  await fixture.clock.advance(30_000);
  expect(workerGroup.workers).toHaveLength(1);
  await fixture.clock.advance(10_000);
  expect(workerGroup.workers).toEqual([]);
  expect(exit.mock.calls).toEqual([[75]]);
});

test("a process with a life of its own does not: it is told, and decides", async () => {
  const workerGroup = await home({ closeOnSignal: false });
  await fixture.clock.advance(60_000);
  expect(fixture.eventsNamed("worker.stuck")).toHaveLength(1);
  await fixture.whileTimePasses(workerGroup.close());
  expect(await fixture.whileTimePasses(workerGroup.unended())).toBe(1);
  expect(exit).not.toHaveBeenCalled();
});

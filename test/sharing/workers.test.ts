import { expect, it } from "vitest";
import type { WorkerOptions } from "../../packages/pawl/src/worker.js";
import { eventually } from "../support/eventually.js";
import { freshFixture } from "../support/fixtures/fresh-fixture.js";
import { type ProcessFixture, STEADY_LEASES } from "../support/fixtures/process-fixture.js";
import { describeOn } from "../support/servers/servers.js";

/** ms: longer than the test takes */
const LONG = 300_000;
/** Of four slots, others than urgent jobs and those of acme may take two. */
const KEPT: WorkerOptions = {
  name: "kept",
  reserve: [
    { priority: 9, slots: 1 },
    { tenant: "acme", slots: 1 },
  ],
};

/** When each of these was started, after its enqueue (ms). */
async function waits(fixture: ProcessFixture, of: readonly { readonly tenant: string; readonly priority: number }[]): Promise<readonly number[]> {
  const took: number[] = [];
  for (const [no, options] of of.entries()) {
    const from = Date.now();
    const { id } = await fixture.enqueue("slow", { ms: 10 + ((no * 37) % 50) }, options);
    await fixture.started(id);
    took.push((fixture.handlerLog.of(id, "start")[0]?.at as number) - from);
  }
  return took;
}

describeOn("embedded18", () => {
  it("slots that are kept are there when all others are taken, though a worker is killed, and workers for some take nothing else", async () => {
    await using fixture = await freshFixture();
    const start = (work: WorkerOptions) => fixture.worker({ ...STEADY_LEASES.work, concurrency: 4, ...work }, STEADY_LEASES.open);
    const kept = await Promise.all([start(KEPT), start(KEPT)]);
    const others = new Set([
      ...(await fixture.enqueueMany("slow", 10, { ms: LONG }, { tenant: "one" })),
      ...(await fixture.enqueueMany("slow", 10, { ms: LONG + 1 }, { tenant: "two" })),
    ]);
    const taken = (pid: number | undefined) => fixture.handlerLog.lines("start").filter((line) => line.pid === pid && others.has(line.job)).length;
    await eventually("others have taken all the slots they may", () => kept.every(({ pid }) => taken(pid) === 2));

    const few = Array.from({ length: 8 }, (_, no) => (no % 2 === 0 ? { tenant: "one", priority: 9 } : { tenant: "acme", priority: 5 }));
    expect(Math.max(...(await waits(fixture, few))), "the longest wait").toBeLessThan(2_000);

    const some = await Promise.all([start({ name: "urgent only", priorities: [8, 9] }), start({ name: "acme only", tenants: ["acme"] })]);
    await kept[0]?.kill();
    const fresh = await start(KEPT);
    await eventually("others have taken what they may of the new one", () => taken(fresh.pid) === 2);
    expect(Math.max(...(await waits(fixture, few))), "the longest wait").toBeLessThan(2_000);

    expect(
      [kept[1], fresh].map((worker) => taken(worker?.pid)),
      "others in slots that are kept",
    ).toEqual([2, 2]);
    expect(
      some.map(({ pid }) => taken(pid)),
      "others where only some are served",
    ).toEqual([0, 0]);
  }, 150_000);
});

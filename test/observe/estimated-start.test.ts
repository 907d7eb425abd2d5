import { describe, expect, it } from "vitest";
import { eventually } from "../support/eventually.js";
import { freshFixture } from "../support/fixtures/fresh-fixture.js";
import { type ProcessFixture, STEADY_LEASES } from "../support/fixtures/process-fixture.js";
import { describeOn } from "../support/servers/servers.js";

const BACKLOG = 2_000;
/** ms from the first estimate on */
const STEADY_AFTER = 4_000;
/** ms by which a start may be off whatever was said: other tests run on these cores, and a queue beside them is not quite steady */
const NOISE = 1_500;

/** Explains a job until it has run, and holds what was said of its start against when that was. */
async function judged(fixture: ProcessFixture, job: string): Promise<readonly Estimates[]> {
  const told: { readonly at: number; readonly ahead: number; readonly start: number }[] = [];
  await eventually(
    "it is explained all the way to its start",
    async () => {
      const at = Date.now();
      const { state, reasons, estimatedStart } = await fixture.pawl.jobs.explain(job);
      const reason = reasons.find(({ kind }) => kind === "queued_behind");
      if (reason?.kind === "queued_behind" && estimatedStart !== undefined) told.push({ at, ahead: reason.ahead, start: estimatedStart.getTime() });
      return state === "succeeded";
    },
    120_000,
  );
  const [attempt] = (await fixture.pawl.jobs.history(job)).items;
  const started = attempt?.startedAt.getTime() ?? 0;
  // From when the queue is steady (its workers take seconds to come up), to when no more than noise is left to wait for.
  return told
    .filter(({ at }) => at > (told[0]?.at ?? 0) + STEADY_AFTER && started - at > NOISE)
    .map(({ at, ahead, start }) => ({ ahead, left: started - at, factor: (start - at) / (started - at) }));
}

interface Estimates {
  readonly ahead: number;
  /** ms before its start */
  readonly left: number;
  readonly factor: number;
}

function expectWithinTwo(told: readonly Estimates[]): void {
  expect(told.length).toBeGreaterThan(3);
  for (const { left, factor } of told) {
    expect(factor * left, `${left} ms before its start`).toBeGreaterThan(0.5 * left - NOISE);
    expect(factor * left, `${left} ms before its start`).toBeLessThan(2 * left + NOISE);
  }
}

describeOn("embedded18", () => {
  describe("the estimated start of a job on a steady queue of two worker processes", () => {
    it("is right within a factor of two, and its place in line counts down", async () => {
      await using fixture = await freshFixture();
      const last = (await fixture.enqueueMany("slow", BACKLOG, { ms: 50 })).at(-1) as string;
      expect((await fixture.pawl.jobs.explain(last)).reasons[0]).toMatchObject({ kind: "unserved" });
      await Promise.all([1, 2].map(() => fixture.worker({ ...STEADY_LEASES.work, concurrency: 4 }, STEADY_LEASES.open)));

      const told = await judged(fixture, last);
      expectWithinTwo(told);
      const places = told.map(({ ahead }) => ahead);
      expect(places).toEqual([...places].sort((a, b) => b - a));
    }, 150_000);

    it("is so for each of two tenants of whom one has jobs five times as long", async () => {
      await using fixture = await freshFixture();
      const lastOf = async (tenant: string, count: number, ms: number) =>
        (await fixture.enqueueMany("slow", count, { ms }, { tenant })).at(-1) as string;
      // As much work of either: they share the workers to the end. Long enough that what a busy machine adds to each is little.
      const jobs = [await lastOf("long", 120, 500), await lastOf("short", 600, 100)];
      await Promise.all([1, 2].map(() => fixture.worker({ ...STEADY_LEASES.work, concurrency: 4 }, STEADY_LEASES.open)));

      for (const told of await Promise.all(jobs.map((job) => judged(fixture, job)))) expectWithinTwo(told);
    }, 150_000);
  });
});

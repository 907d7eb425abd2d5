import { describe, expect, it } from "vitest";
import { eventually } from "../support/eventually.js";
import { freshStage } from "../support/fresh-stage.js";
import { describeOn } from "../support/servers.js";
import { STEADY } from "../support/stage.js";

const BACKLOG = 2_000;

describeOn("embedded18", () => {
  describe("the estimated start of a job on a steady queue of two worker processes", () => {
    it("is right within a factor of two, and its place in line counts down", async () => {
      await using stage = await freshStage();
      const last = (await stage.enqueueMany("slow", BACKLOG, { ms: 50 })).at(-1) as string;
      expect((await stage.pawl.jobs.explain(last)).reasons[0]).toMatchObject({ kind: "unserved" });
      await Promise.all([1, 2].map(() => stage.worker({ ...STEADY.work, concurrency: 4 }, STEADY.open)));

      const told: { readonly at: number; readonly ahead: number; readonly start: number }[] = [];
      await eventually(
        "it is explained all the way to its start",
        async () => {
          const at = Date.now();
          const { state, reasons, estimatedStart } = await stage.pawl.jobs.explain(last);
          const [reason] = reasons;
          if (reason?.kind === "behind" && estimatedStart !== undefined) told.push({ at, ahead: reason.ahead, start: estimatedStart.getTime() });
          return state === "succeeded";
        },
        120_000,
      );
      const [attempt] = await stage.pawl.jobs.history(last);
      const started = attempt?.startedAt.getTime() ?? 0;

      // From when the queue is steady (its workers take seconds to come up), to when no more than noise is left to wait for.
      const judged = told.filter(({ at }) => at > (told[0]?.at ?? 0) + 4_000 && started - at > 1_000);
      expect(judged.length).toBeGreaterThan(3);
      for (const { at, start } of judged) {
        const factor = (start - at) / (started - at);
        expect(factor, `${started - at} ms before its start`).toBeGreaterThan(0.5);
        expect(factor, `${started - at} ms before its start`).toBeLessThan(2);
      }
      const places = told.map(({ ahead }) => ahead);
      expect(places).toEqual([...places].sort((a, b) => b - a));
    }, 150_000);
  });
});

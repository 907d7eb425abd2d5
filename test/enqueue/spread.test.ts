import { open, type Pawl, task } from "pawl";
import { expect, test } from "vitest";
import { describeOn, migratedDatabase } from "../support/servers/servers.js";

const COUNT = 1_500;
const SECONDS = 5;

describeOn("embedded18", () => {
  test("jobs due at one instant with a spread are started at a flat rate, each about when it is due", async () => {
    await using database = await migratedDatabase();
    let pawl: Pawl | undefined;
    try {
      const starts: number[] = [];
      let all = () => {};
      const done = new Promise<void>((resolve) => {
        all = resolve;
      });
      const work = task("work", { spread: `${SECONDS}s` }, () => {
        if (starts.push(Date.now()) === COUNT) all();
      });
      pawl = await open(database.url, { tasks: [work] });
      await pawl.work({ concurrency: 20 });
      const runAt = Date.now() + 3_000;
      await pawl.enqueueMany(
        work,
        Array.from({ length: COUNT }, () => undefined),
        { runAt },
      );
      await done;
      const perSecond = new Array<number>(SECONDS + 5).fill(0);
      for (const at of starts) {
        expect(at).toBeGreaterThanOrEqual(runAt - 50);
        (perSecond[Math.min(perSecond.length - 1, Math.floor((at - runAt) / 1_000))] as number)++;
      }
      // A busy machine may be late by some tenths of a second, which moves a part of one second's to the next.
      for (const started of perSecond.slice(0, SECONDS)) {
        expect(started).toBeGreaterThan((0.5 * COUNT) / SECONDS);
        expect(started).toBeLessThan((1.5 * COUNT) / SECONDS);
      }
    } finally {
      await pawl?.close();
    }
  });
});

import { test, vi } from "vitest";
import { dutiesOf } from "../../packages/pawl/conformance/duties.js";
import { HOUR } from "../../packages/pawl/conformance/world.js";
import { RaceRunner } from "../support/races/race.js";
import { describeOn } from "../support/servers/servers.js";
import { PROMOTE_SNAPSHOT, TAKE_SNAPSHOT } from "./statement-splits.js";

// judgeKeyed as if it looked once: a clause of the code, not of a statement, so it is taken out here by itself.
vi.mock("../../packages/pawl/src/store/postgres/jobs/control.js", async (original) => ({ ...(await original<object>()), MAX_TRIES: 1 }));

const unique = { key: "k", hold: "unfinished", onConflict: "replace" } as const;

describeOn("embedded18", () => {
  test("a job that replaces the holder of its key, and the promotion of that: not without judgeKeyed looking again", async () => {
    const runner = await RaceRunner.open("embedded18");
    try {
      await runner.failsWithout(
        {
          async setup(w) {
            await w.add({ unique, delay: HOUR });
            w.clock.advance(HOUR);
          },
          racers: [
            { run: (w) => w.enqueue({ unique }), stops: ["lock_keys", "facts", "commit"], splits: [TAKE_SNAPSHOT] },
            { run: async (w) => (await dutiesOf(w.store).promote(10)).count, splits: [PROMOTE_SNAPSHOT] },
          ],
        },
        [],
        /no order of the whole verbs ends like\n {2}\[\[\[{"kind":"rejected"/,
      );
    } finally {
      await runner.close();
    }
  });
});

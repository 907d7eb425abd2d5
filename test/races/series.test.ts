import { dutiesOf } from "../../packages/pawl/conformance/duties.js";
import type { World } from "../../packages/pawl/conformance/world.js";
import { races } from "../support/races/race.js";
import type { VerbPieces } from "../support/races/racing-session.js";

/** Between its snapshot and its locks. */
const FOLD: VerbPieces = { splits: [{ at: "fold-snapshot" }] };
const fold = async (w: World) => {
  await dutiesOf(w.store).fold(100);
  return "folded";
};

races((race) => {
  race(
    "two processes fold the same deltas",
    {
      setup: async (w) => {
        for (let n = 0; n < 3; n++) await w.add();
      },
      racers: [
        { run: fold, ...FOLD },
        { run: fold, ...FOLD },
      ],
      holds: async (w) => {
        await dutiesOf(w.store).fold(100);
        const { series } = await w.store.series.read({ last: 60_000, step: 1, limit: 1 });
        const [counted, standing] = [series[0]?.sums[0]?.activities.enqueued, series[0]?.now.ready];
        if (counted !== 3 || standing !== 3) throw new Error(`not counted once: ${counted} enqueued, ${standing} ready`);
      },
    },
    [
      {
        clause: "FOLD counts the rows that it has locked and deleted, and no others",
        without: [
          { guard: "deltas-locked" },
          {
            guard: "folded-were-deleted",
            becomes:
              "select d.* from pawl.counter_delta d join batch on d.id = batch.id), emptied as (delete from pawl.counter_delta d using batch where d.id = batch.id",
          },
        ],
        because: /counts say 6 ready/,
      },
    ],
  );
});

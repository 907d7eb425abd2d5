import { expect } from "vitest";
import { DAY, FAILED, type Held, SUCCEEDED, type World } from "../../packages/pawl/src/store/conformance/world.js";
import type { ExportedJob } from "../../packages/pawl/src/store/port.js";
import type { Pieces } from "../support/interleave.js";
import { races } from "../support/race.js";
import { SETTLE_SNAPSHOT, SETTLE_WRITTEN } from "./pieces.js";

const RULES = { finished: 30 * DAY, dead: 90 * DAY, limit: 100 };
/** So that January, in which every test begins, is past its time, and February is not. */
const SPRING = 55 * DAY;
const prune = async (w: World) => void (await w.store.duties.prune(RULES));
const PRUNE: Pieces = { stops: ["raise_floor", "tally_2026_01"] };

/** Two jobs of January under one lease, both still held in March. */
async function oldHeld(w: World): Promise<readonly [Held, Held]> {
  await w.add();
  await w.add();
  const held = await w.holdAll({ duration: 100 * DAY });
  w.clock.advance(SPRING);
  return held as unknown as readonly [Held, Held];
}

/** Finished jobs that were shown to an export, by whichever process. */
interface Archive {
  readonly seen: string[];
}
const pruneInto = async (w: World, { seen }: Archive) => {
  const exportFinished = async (batch: readonly ExportedJob[]) => void seen.push(...batch.map(({ job }) => job.id));
  await w.store.duties.prune({ ...RULES, exportFinished });
};
const EXPORT: Pieces = { stops: ["take_duty", "export_2026_01"] };

races((race) => {
  race(
    "two prunes that export what goes",
    {
      async setup(w): Promise<Archive> {
        await w.run(await w.add());
        w.clock.advance(SPRING);
        return { seen: [] };
      },
      racers: [
        { run: pruneInto, ...EXPORT },
        { run: pruneInto, ...EXPORT },
      ],
      holds: async (_, { seen }) => expect(seen, "exported").toHaveLength(1),
      notSerial: "the model knows nothing of who exports; what goes is compared by the race with one prune",
    },
    [
      {
        clause: "a duty that somebody holds is not taken (TAKE of exclusive.ts)",
        without: [{ statement: "take_duty", from: "where d.holder is null or", to: "where true or" }],
        because: /exported/,
      },
    ],
  );

  // Guarded by WATCH_HOLDERS, and by keepSome under the lock of detach; each alone is enough here, see below.
  race(
    "a prune of the month and a failure of one of its jobs",
    {
      setup: oldHeld,
      racers: [
        { run: prune, ...PRUNE },
        { run: (w, [first]) => w.settle(first, FAILED), splits: [SETTLE_SNAPSHOT, SETTLE_WRITTEN] },
      ],
      afterwards: prune,
    },
    [],
  );

  race(
    "a prune of the month and the success of one of its jobs",
    {
      setup: oldHeld,
      racers: [
        { run: prune, stops: ["tally_2026_01"] },
        { run: (w, [first]) => w.settle(first, SUCCEEDED), splits: [SETTLE_SNAPSHOT] },
      ],
      afterwards: prune,
    },
    [],
  );

  race(
    "a prune of the month and a settlement whose answer was lost",
    {
      async setup(w) {
        const held = await oldHeld(w);
        await w.settle(held[0], FAILED);
        return held;
      },
      racers: [
        { run: prune, ...PRUNE },
        { run: (w, [first]) => w.settle(first, FAILED), splits: [SETTLE_SNAPSHOT] },
      ],
      afterwards: prune,
    },
    // A settlement whose row is there already goes the long way, watched or not: `isUnfit` of settle.ts.
    [],
  );

  race(
    "a prune of the month, a settlement, and the same again, which began before both",
    {
      // The repeated one waits in front of another lease all the while, as a batch over two leases may.
      setup: oldHeld,
      racers: [
        { run: (w, [first]) => w.settle(first, FAILED), splits: [SETTLE_SNAPSHOT] },
        { run: (w, [first]) => w.settle(first, FAILED) },
        { run: prune, stops: ["tally_2026_01"] },
      ],
      begin: [0],
      afterwards: prune,
    },
    // A settlement whose row is there already goes the long way, watched or not: `isUnfit` of settle.ts.
    [],
  );

  race(
    "a prune of the month and the cancel of one of its jobs",
    {
      async setup(w) {
        const id = await w.add();
        w.clock.advance(SPRING);
        return id;
      },
      racers: [
        { run: prune, ...PRUNE },
        { run: (w, id) => w.store.jobs.cancel("everyone", id, "no need"), stops: ["mark"] },
      ],
      afterwards: prune,
    },
    [
      {
        clause: "what was written of kept jobs by who saw the old floor is kept, too",
        without: [{ statement: "unfinished_2026_01", from: "_01 a where not exists", to: "_01 a where false and not exists" }],
        because: /is nowhere|counts say/,
      },
    ],
  );

  race(
    "a prune of the month and the drop of one of its finished jobs",
    {
      async setup(w) {
        const id = await w.add();
        await w.run(id);
        w.clock.advance(SPRING);
        return id;
      },
      racers: [
        { run: prune, ...PRUNE },
        { run: (w, id) => w.store.jobs.drop("everyone", id), stops: ["facts"] },
      ],
      afterwards: prune,
      notSerial: "a drop that comes while the month goes may find the job or not",
      circles: "the detach gives up after 50 ms, and the next prune tries again",
    },
    [
      {
        clause: "a month is locked before it is counted",
        without: [{ statement: "", from: "in share mode", to: "in access share mode" }],
        because: /counts say -1 succeeded/,
      },
    ],
  );
});

import { expect } from "vitest";
import { dutiesOf } from "../../packages/pawl/conformance/duties.js";
import { DAY, FAILED, type HeldJob, SUCCEEDED, type World } from "../../packages/pawl/conformance/world.js";
import type { ExportedJob } from "../../packages/pawl/src/store/port/duties/duties.js";
import { races } from "../support/races/race.js";
import type { StatementMutation, VerbPieces } from "../support/races/racing-session.js";
import { SETTLE_LOCKED, SETTLE_SNAPSHOT } from "./statement-splits.js";

const RULES = { finished: 30 * DAY, dead: 90 * DAY, limit: 100 };
/** So that January, in which every test begins, is past its time, and February is not. */
const SPRING = 55 * DAY;
const prune = async (w: World) => void (await dutiesOf(w.store).prune(RULES));
/** After `lock_duty` what is kept has moved, and the month is not locked yet. */
const PRUNE: VerbPieces = { stops: ["raise_floor", "lock_duty", "counter_2026_01"] };

/** A settlement is not told that its job was moved. */
const UNWATCHED: StatementMutation = { guard: "change-is-noted", becomes: "set changed_by = null" };
const UNWATCHED_CIRCLE = "it is one, too, and the worse is to be seen: the detach gives up after 50 ms";
/** What was written into the month after its jobs were moved goes with it. */
const ORPHANS_GO: StatementMutation = { guard: "late-history-is-kept", becomes: "and false" };
/** Others write into the month while it is looked through for the last time. */
const UNLOCKED: StatementMutation = { guard: "month-locked", becomes: "in access share mode" };
/** The second of them is counted, and lowers the lease, like the first. */
const SETTLED_TWICE = /was settled twice|open jobs and has|counts say/;

/** Two jobs of January under one lease, both still held in March. */
async function oldHeld(w: World): Promise<readonly [HeldJob, HeldJob]> {
  await w.add();
  await w.add();
  const held = await w.holdAll({ duration: 100 * DAY });
  w.clock.advance(SPRING);
  return held as unknown as readonly [HeldJob, HeldJob];
}

/** Finished jobs that were shown to an export, by whichever process. */
interface Archive {
  readonly seen: string[];
}
const pruneInto = async (w: World, { seen }: Archive) => {
  const exportFinished = async (batch: readonly ExportedJob[]) => void seen.push(...batch.map(({ job }) => job.id));
  await dutiesOf(w.store).prune({ ...RULES, exportFinished });
};
const EXPORT: VerbPieces = { stops: ["take_duty", "export_2026_01"] };

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
        clause: "a duty that somebody holds is not taken (TAKE of exclusive-duty.ts)",
        without: [{ guard: "duty-is-free" }],
        because: /exported/,
      },
    ],
  );

  // Either of two clauses is enough here: without both, the attempt is written into the month and goes with it.
  race(
    "a prune of the month and a failure of one of its jobs",
    {
      setup: oldHeld,
      racers: [
        { run: prune, ...PRUNE },
        { run: (w, [first]) => w.settle(first, FAILED), splits: [SETTLE_SNAPSHOT, SETTLE_LOCKED] },
      ],
      afterwards: prune,
    },
    [
      {
        clause: "holders of what is kept are changed_by, or what they wrote of it is kept, too",
        without: [UNWATCHED, ORPHANS_GO],
        instead: { deadlocks: UNWATCHED_CIRCLE },
        because: /is nowhere|not in history|counts say|no order/,
      },
    ],
  );

  race(
    "a prune of the month and the success of one of its jobs",
    {
      setup: oldHeld,
      racers: [
        { run: prune, stops: ["counter_2026_01"] },
        { run: (w, [first]) => w.settle(first, SUCCEEDED), splits: [SETTLE_SNAPSHOT] },
      ],
      afterwards: prune,
    },
    [
      {
        clause: "holders of what is kept are changed_by, or nobody writes into a month that goes",
        without: [UNWATCHED, UNLOCKED],
        because: /is nowhere|not in history|counts say|no order/,
      },
    ],
  );

  // Of successes: a failure's place among the scheduled can be taken once only, and would tell by itself.
  race(
    "a prune of the month and a settlement whose answer was lost",
    {
      async setup(w) {
        const held = await oldHeld(w);
        await w.settle(held[0], SUCCEEDED);
        return held;
      },
      racers: [
        { run: prune, ...PRUNE },
        { run: (w, [first]) => w.settle(first, SUCCEEDED), splits: [SETTLE_SNAPSHOT] },
      ],
      afterwards: prune,
    },
    [
      {
        clause: "a place that is settled is not settled again, wherever its attempt was moved to",
        without: [{ guard: "settled-once" }],
        because: SETTLED_TWICE,
      },
    ],
  );

  race(
    "a prune of the month, a settlement, and the same again, which began before both",
    {
      // The repeated one waits in front of another lease all the while, as a batch over two leases may.
      setup: oldHeld,
      racers: [
        { run: (w, [first]) => w.settle(first, SUCCEEDED), splits: [SETTLE_SNAPSHOT] },
        { run: (w, [first]) => w.settle(first, SUCCEEDED) },
        { run: prune, stops: ["lock_duty", "counter_2026_01"] },
      ],
      begin: [0],
      afterwards: prune,
    },
    [
      {
        clause: "a settlement that does not see where its attempt was moved to is told (changed_by)",
        without: [UNWATCHED],
        instead: { deadlocks: UNWATCHED_CIRCLE },
        because: SETTLED_TWICE,
      },
    ],
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
        { run: (w, id) => w.store.jobs.cancel("everyone", id, "no need"), stops: ["add_history"] },
      ],
      afterwards: prune,
    },
    [
      {
        clause: "what was written of kept jobs by who saw the old floor is kept, too",
        without: [ORPHANS_GO],
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
        { run: (w, id) => w.store.jobs.delete("everyone", id), stops: ["facts"] },
      ],
      afterwards: prune,
      notSerial: "a drop that comes while the month goes may find the job or not",
      deadlocks: "the detach gives up after 50 ms, and the next prune tries again",
    },
    [
      {
        clause: "a month is locked before it is counted",
        without: [UNLOCKED],
        because: /counts say -1 succeeded/,
      },
    ],
  );
});

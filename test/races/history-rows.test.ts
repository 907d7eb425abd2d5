import { dutiesOf } from "../../packages/pawl/conformance/duties.js";
import { DAY, FAILED, type HeldJob, LEASE, SUCCEEDED, type World } from "../../packages/pawl/conformance/world.js";
import type { JobId } from "../../packages/pawl/src/core/jobs/id.js";
import { ALL_SERVERS, races } from "../support/races/race.js";
import type { VerbPieces } from "../support/races/racing-session.js";
import { REAP, SETTLE_LOCKED, SETTLE_SNAPSHOT } from "./statement-splits.js";

const SIX = 6;
const SPRING = 55 * DAY;
const RULES = { finished: 30 * DAY, dead: 90 * DAY, limit: 100 };
const PRUNE: VerbPieces = { stops: ["raise_floor", "touch_leases", "take_out_of_history", "counter_2026_01"] };
const DROP: VerbPieces = { stops: ["facts", "take_out_of_history", "commit"] };

/** Jobs that came in one ready row, under one lease. */
async function together(w: World): Promise<readonly HeldJob[]> {
  await w.store.jobs.enqueue(Array.from({ length: SIX }, () => w.newJob()));
  return w.holdAll();
}

const prune = async (w: World) => void (await dutiesOf(w.store).prune(RULES));
const some = (from: number, to: number) => (w: World, held: readonly HeldJob[]) => w.settleAll(held.slice(from, to), SUCCEEDED);

races((race) => {
  race(
    "two settlements of the same jobs in different portions",
    {
      setup: together,
      racers: [
        { run: some(0, 4), splits: [SETTLE_SNAPSHOT] },
        { run: some(2, SIX), splits: [SETTLE_SNAPSHOT] },
      ],
    },
    [
      {
        clause: "a place that is settled is not settled again",
        without: [{ guard: "settled-once" }],
        because: /settled twice under lease|open jobs and has/,
      },
      {
        clause: "settled is read after the lock (own … for update)",
        without: [{ guard: "lease-locked" }],
        because: /settled twice under lease|open jobs and has/,
      },
    ],
    ALL_SERVERS,
  );

  race(
    "a settlement of many and another of one of them alone",
    {
      setup: together,
      racers: [
        { run: some(0, 4), splits: [SETTLE_SNAPSHOT] },
        { run: some(1, 2), splits: [SETTLE_SNAPSHOT] },
      ],
    },
    [
      {
        clause: "the places of a run are added to those that were settled after the lock (lowered)",
        without: [{ guard: "settled-adds-up" }],
        instead: { racers: [{ run: some(0, 2) }, { run: some(2, 4), splits: [SETTLE_SNAPSHOT] }] },
        because: /settled twice under lease|open jobs and has|not settled/,
      },
    ],
    ALL_SERVERS,
  );

  race(
    "a settlement of many and a failure of one of them that goes the long way",
    {
      async setup(w) {
        const held = await together(w);
        await w.store.jobs.pause("everyone", (held[1] as HeldJob).job.id);
        return held;
      },
      racers: [
        { run: some(2, SIX), splits: [SETTLE_SNAPSHOT] },
        { run: (w, held) => w.settle(held[1] as HeldJob, FAILED), stops: ["lock_leases", "intents_of", "commit"] },
      ],
    },
    [],
  );

  race(
    "a settlement of many and a reap of their lease",
    {
      async setup(w) {
        const held = await together(w);
        w.clock.advance(LEASE);
        return held;
      },
      racers: [
        { run: some(0, 4), splits: [SETTLE_SNAPSHOT] },
        { run: (w) => dutiesOf(w.store).reap(10), ...REAP },
      ],
    },
    [],
    ALL_SERVERS,
  );

  race(
    // A drop leaves the lease alone: places do not move, and one that is settled stays settled.
    "a settlement of many and a drop of one that was settled before",
    {
      async setup(w) {
        const held = await together(w);
        await some(0, 2)(w, held);
        return held;
      },
      racers: [
        { run: some(2, SIX - 1), splits: [SETTLE_SNAPSHOT] },
        { run: (w, held) => w.store.jobs.delete("everyone", (held[0] as HeldJob).job.id), ...DROP },
      ],
    },
    [],
    ALL_SERVERS,
  );

  race(
    "a settlement of many and a job that begins to wait for one of them",
    {
      setup: together,
      racers: [
        { run: some(0, SIX), splits: [SETTLE_SNAPSHOT, SETTLE_LOCKED] },
        {
          run: async (w, held) => (await w.enqueue({ after: [(held[3] as HeldJob).job.id as JobId] })).map(({ kind }) => kind),
          stops: ["tie", "commit", "touch_leases"],
        },
      ],
    },
    [
      {
        clause: "a settlement is made again where somebody wrote to the lease after its snapshot (changed_by)",
        without: [{ guard: "changes-are-visible" }],
        because: /waits for|no order/,
      },
    ],
  );

  race(
    "a settlement of many and a prune of their month, in which some of them ended late",
    {
      async setup(w) {
        await w.store.jobs.enqueue(Array.from({ length: SIX }, () => w.newJob()));
        w.clock.advance(SPRING);
        const held = await w.holdAll();
        await some(0, 3)(w, held);
        return held;
      },
      racers: [
        { run: some(3, 5), splits: [SETTLE_SNAPSHOT, SETTLE_LOCKED] },
        { run: prune, ...PRUNE },
      ],
    },
    [
      {
        clause: "what is kept takes its attempts along (TAKE_OUT in keepSome)",
        without: [{ guard: "history-goes-along", becomes: "where false" }],
        because: /nowhere|open jobs and has|no order/,
      },
    ],
  );

  race(
    "a claim and settlement of many and a prune of their month",
    {
      async setup(w) {
        await w.store.jobs.enqueue(Array.from({ length: SIX }, () => w.newJob()));
        w.clock.advance(SPRING);
      },
      racers: [
        { run: async (w) => some(0, SIX)(w, await w.holdAll()), splits: [SETTLE_SNAPSHOT] },
        { run: prune, stops: ["raise_floor", "touch_leases", "counter_2026_01"] },
      ],
    },
    [
      {
        clause: "attempts of jobs below the floor are not written into their month",
        without: [{ guard: "month-stays" }],
        instead: { deadlocks: "it is one, too, and the worse is to be seen: the detach gives up after 50 ms" },
        because: /nowhere|open jobs and has|no order/,
      },
    ],
  );
});

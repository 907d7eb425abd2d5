import type { JobId } from "../../packages/pawl/src/core/id.js";
import { DAY, FAILED, type Held, LEASE, SUCCEEDED, type World } from "../../packages/pawl/src/store/conformance/world.js";
import { EVERYWHERE, races } from "../support/race.js";
import type { Pieces } from "../support/racing-session.js";
import { BUNDLE_SNAPSHOT, BUNDLE_WRITTEN, REAP, SETTLE_SNAPSHOT } from "./pieces.js";

const SIX = 6;
const SPRING = 55 * DAY;
const RULES = { finished: 30 * DAY, dead: 90 * DAY, limit: 100 };
const PRUNE: Pieces = { stops: ["raise_floor", "watch_holders", "open_bundles", "tally_2026_01"] };
const DROP: Pieces = { stops: ["facts", "leave_leases", "open_bundles", "commit"] };

/** Jobs that came in one parcel, under one lease. */
async function together(w: World): Promise<readonly Held[]> {
  await w.store.jobs.enqueue(Array.from({ length: SIX }, () => w.newJob()));
  return w.holdAll();
}

const prune = async (w: World) => void (await w.store.duties.prune(RULES));
const some = (from: number, to: number) => (w: World, held: readonly Held[]) => w.settleAll(held.slice(from, to), SUCCEEDED);

races((race) => {
  race(
    "two settlements of the same jobs in different portions",
    {
      setup: together,
      racers: [
        { run: some(0, 4), splits: [BUNDLE_SNAPSHOT] },
        { run: some(2, SIX), splits: [BUNDLE_SNAPSHOT] },
      ],
    },
    [
      {
        clause: "a place that is settled is not settled again (own.settled && c.places)",
        without: [{ statement: "settle_bundled", from: "and not own.settled && c.places", to: "" }],
        because: /settled twice under lease|is in two bundles|open jobs and has/,
      },
      {
        clause: "settled is read after the lock (own … for update)",
        without: [{ statement: "settle_bundled", from: "order by id for update", to: "order by id" }],
        because: /settled twice under lease|is in two bundles|open jobs and has|duplicate key/,
      },
    ],
    EVERYWHERE,
  );

  race(
    "a settlement of many and another of one of them alone",
    {
      setup: together,
      racers: [
        { run: some(0, 4), splits: [BUNDLE_SNAPSHOT] },
        { run: some(1, 2), splits: [SETTLE_SNAPSHOT] },
      ],
    },
    [
      {
        clause: "a row is not written for a place that a bundle has (u.place <@ o.settled)",
        without: [{ statement: "settle", from: "where o.settled is null or not u.place::int <@ o.settled", to: "" }],
        because: /settled twice under lease/,
      },
      {
        clause: "a row takes its place out of what can be bundled (lowered … settled)",
        without: [
          {
            statement: "settle",
            from: "range_agg(int4range(u.place::int, u.place::int, '[]'))",
            to: "coalesce(range_agg(int4range(u.place::int, u.place::int, '[]')) filter (where false), '{}')",
          },
        ],
        because: /settled twice under lease|is in two bundles|open jobs and has/,
      },
    ],
    EVERYWHERE,
  );

  race(
    "a settlement of many and a failure of one of them that goes the long way",
    {
      async setup(w) {
        const held = await together(w);
        await w.store.jobs.pause("everyone", (held[1] as Held).job.id);
        return held;
      },
      racers: [
        { run: some(2, SIX), splits: [BUNDLE_SNAPSHOT] },
        { run: (w, held) => w.settle(held[1] as Held, FAILED), stops: ["lock_leases", "settled_before", "commit"] },
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
        { run: some(0, 4), splits: [BUNDLE_SNAPSHOT] },
        { run: (w) => w.store.leases.reap(10), ...REAP },
      ],
    },
    [],
    EVERYWHERE,
  );

  race(
    "a settlement of many and a drop of one that was settled before",
    {
      async setup(w) {
        const held = await together(w);
        await some(0, 2)(w, held);
        return held;
      },
      racers: [
        { run: some(2, SIX - 1), splits: [BUNDLE_SNAPSHOT] },
        { run: (w, held) => w.store.jobs.drop("everyone", (held[0] as Held).job.id), ...DROP },
      ],
    },
    [
      {
        clause: "a lease whose places have moved is settled row by row (LEAVE_LEASES … watched)",
        without: [{ statement: "leave_leases", from: "watched = true, settled = null,", to: "" }],
        because: /nowhere|settled twice|no row|open jobs and has|no order/,
      },
    ],
    EVERYWHERE,
  );

  race(
    "a settlement of many and a job that begins to wait for one of them",
    {
      setup: together,
      racers: [
        { run: some(0, SIX), splits: [BUNDLE_SNAPSHOT, BUNDLE_WRITTEN] },
        {
          run: async (w, held) => (await w.enqueue({ after: [(held[3] as Held).job.id as JobId] })).map(({ kind }) => kind),
          stops: ["tie", "commit", "watch_holders"],
        },
      ],
    },
    [
      {
        clause: "a lease that is watched is settled row by row",
        without: [{ statement: "settle_bundled", from: "exists (select from own where watched)", to: "false" }],
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
        { run: some(3, 5), splits: [BUNDLE_SNAPSHOT, BUNDLE_WRITTEN] },
        { run: prune, ...PRUNE },
      ],
    },
    [
      {
        clause: "what is kept takes its attempts along (OPEN_BUNDLES in keepSome)",
        without: [{ statement: "open_bundles", from: "g.id = any(b.jobs)", to: "false" }],
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
        { run: async (w) => some(0, SIX)(w, await w.holdAll()), splits: [BUNDLE_SNAPSHOT] },
        { run: prune, stops: ["raise_floor", "watch_holders", "tally_2026_01"] },
      ],
    },
    [
      {
        clause: "jobs below the floor are not bundled",
        without: [{ statement: "settle_bundled", from: "f.jobs[g.first] >= (select floor from pawl.span) and", to: "" }],
        because: /nowhere|open jobs and has|no order/,
      },
    ],
  );
});

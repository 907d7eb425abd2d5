import { expect } from "vitest";
import type { JobId } from "../../packages/pawl/src/core/id.js";
import { BOB, LEASE, lane, type World } from "../../packages/pawl/src/store/conformance/world.js";
import type { Claimed } from "../../packages/pawl/src/store/port-leases.js";
import { PARCELS } from "../../packages/pawl/src/store/postgres/parcels.js";
import { EVERYWHERE, races } from "../support/race.js";
import { CLAIM_HOLDING, CLAIM_PARCELS, OPEN_SNAPSHOT } from "./pieces.js";

/** More than enough for one row. */
async function parcel(w: World, length = 20): Promise<readonly JobId[]> {
  const answers = await w.store.jobs.enqueue(Array.from({ length }, () => w.newJob()));
  return answers.map((answer) => (answer as { id: JobId }).id);
}

/** The parcel's jobs, and two of another lane. */
async function twoLanes(w: World): Promise<readonly JobId[]> {
  const ids = await parcel(w);
  for (let i = 0; i < 2; i++) await w.add({ task: "b" });
  return ids;
}

/** For two jobs of the parcel's lane, and so many of the other. */
function overBoth(w: World, others = 1): Promise<Claimed | undefined> {
  const quotas = [
    { lane: lane(), quota: 2 },
    { lane: lane({ task: "b" }), quota: others },
  ];
  return w.store.leases.claim({ worker: BOB, quotas, limit: 2 + others, duration: LEASE });
}

const LOCKED_OUT = "a claim passes by the parcels that another holds, and says that it did";

async function nobodyFails(_world: World, _ids: unknown, answers: readonly unknown[]): Promise<void> {
  expect(JSON.stringify(answers)).not.toContain("threw");
}

races((race) => {
  race(
    "two claims out of one parcel",
    {
      setup: (w) => parcel(w),
      racers: [
        { run: (w) => w.claimIds({ limit: 5 }), splits: [CLAIM_PARCELS] },
        { run: (w) => w.claimIds({ limit: 5, worker: BOB }), splits: [CLAIM_PARCELS] },
      ],
      notSerial: LOCKED_OUT,
      holds: nobodyFails,
    },
    [
      {
        clause: "a parcel is locked before it is opened",
        without: [{ statement: "claim", from: "for update skip locked", to: "" }],
        because: /is in lease \d+ and lease|to contain .threw./,
      },
      {
        clause: "what is put back is what was not taken",
        without: [{ statement: "claim", from: "jobs[given + 1 :]", to: "jobs" }],
        because: /is in lease .* and parcel/,
      },
    ],
    EVERYWHERE,
  );

  race(
    "two claims that empty one parcel",
    {
      setup: (w) => parcel(w),
      racers: [
        { run: (w) => w.claimIds({ limit: 15 }), splits: [CLAIM_PARCELS] },
        { run: (w) => w.claimIds({ limit: 15, worker: BOB }), splits: [CLAIM_PARCELS] },
      ],
      notSerial: LOCKED_OUT,
      holds: nobodyFails,
    },
    [],
    EVERYWHERE,
  );

  race(
    "a claim out of a parcel and a cancel of one of its jobs",
    {
      setup: (w) => parcel(w),
      racers: [
        { run: (w) => w.claimIds({ limit: 5 }), splits: [CLAIM_PARCELS] },
        {
          run: (w, ids) => w.store.jobs.cancel("everyone", ids[10] as JobId, "no need"),
          stops: ["facts", "open_parcels", "take", "commit"],
          splits: [OPEN_SNAPSHOT],
        },
      ],
      notSerial: LOCKED_OUT,
      holds: nobodyFails,
    },
    [
      {
        clause: "what becomes ready is what was really deleted",
        without: [
          {
            statement: "open_parcels",
            from: "from opened o cross join lateral",
            to: "from (select s.* from pawl.parcel s where s.ctid = any(array(select place from found))) o cross join lateral",
          },
        ],
        because: /is in lease \d+ and ready|to contain .threw./,
      },
    ],
    EVERYWHERE,
  );

  // Its turn is after every job of the parcels: also while another holds them all.
  race(
    "two claims out of a parcel with a single job behind it",
    {
      async setup(w) {
        await parcel(w);
        return w.add();
      },
      racers: [
        { run: (w) => w.claimIds({ limit: 5 }), splits: [CLAIM_PARCELS] },
        { run: (w) => w.claimIds({ limit: 5, worker: BOB }), splits: [CLAIM_HOLDING] },
      ],
      notSerial: LOCKED_OUT,
      async holds(_world, single, answers) {
        expect(answers.flat(), "claimed before its turn").not.toContain(single);
      },
    },
    [
      {
        clause: "rows behind a parcel that is not held here wait for it",
        without: [{ statement: "claim", from: ", ((select jsonb_object_agg(no, seq) from fence) ->> no::text)::bigint", to: "" }],
        because: /claimed before its turn/,
      },
    ],
    EVERYWHERE,
  );

  // A lane whose parcels another holds still has some: the next claim over several lanes may not pass them by either.
  race(
    "a claim out of a parcel, and two over its lane and another",
    {
      async setup(w) {
        await twoLanes(w);
        return w.add();
      },
      racers: [
        { run: (w) => w.claimIds({ limit: 5 }), splits: [CLAIM_HOLDING] },
        { run: async (w) => [...((await overBoth(w))?.jobs ?? []), ...((await overBoth(w))?.jobs ?? [])].map(({ id }) => id) },
      ],
      notSerial: LOCKED_OUT,
      async holds(_world, single, answers) {
        expect(answers.flat(), "claimed before its turn").not.toContain(single);
      },
    },
    [
      {
        clause: "a lane has parcels though another holds them",
        // It says so in two places: what has none, and what may have more.
        without: [
          { statement: "claim_lanes", from: " union all select no from fence", to: "" },
          { statement: "claim_lanes", from: "select no from fence where", to: "select no from fence where false and" },
        ],
        because: /claimed before its turn/,
      },
    ],
    EVERYWHERE,
  );

  race(
    "a claim out of a parcel, and one over its lane and one that runs dry",
    {
      setup: twoLanes,
      racers: [
        { run: (w) => w.claimIds({ limit: 5 }), splits: [CLAIM_HOLDING] },
        {
          async run(w) {
            const claimed = await overBoth(w, 5);
            const gave = claimed?.jobs.filter((job) => job.lane.task === lane().task).length;
            return { gave, more: claimed?.more?.map(({ task }) => task) ?? [] };
          },
        },
      ],
      notSerial: LOCKED_OUT,
      async holds(_world, _ids, answers) {
        const { gave, more } = answers[1] as { gave: number; more: readonly string[] };
        expect(more, "nobody is told of the jobs that another held").toEqual(gave === 2 ? [] : [lane().task]);
      },
    },
    [
      {
        clause: "a lane of which another holds parcels may have more, and no other",
        without: [{ statement: "claim_lanes", from: "select no from fence where", to: "select no from fence where false and" }],
        because: /nobody is told/,
      },
    ],
    EVERYWHERE,
  );

  race(
    "two claims at the head of a long line of parcels",
    {
      setup: (w) => parcel(w, 3_000),
      racers: [
        { run: (w) => w.claimIds({ limit: 50 }), splits: [CLAIM_HOLDING] },
        { run: (w) => w.claimIds({ limit: 50, worker: BOB }), splits: [CLAIM_HOLDING] },
      ],
      notSerial: LOCKED_OUT,
      async holds(_world, ids, answers) {
        const places = (answers as readonly (readonly JobId[])[]).flat().map((id) => ids.indexOf(id));
        // One has locked the parcels it needs and one more; the other takes of those that follow.
        expect(Math.max(...places), "far before its turn").toBeLessThan(4 * PARCELS.most);
      },
    },
    [],
    EVERYWHERE,
  );
});

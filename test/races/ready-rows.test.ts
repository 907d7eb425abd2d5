import { expect } from "vitest";
import { BOB, LEASE, lane, type World } from "../../packages/pawl/conformance/world.js";
import type { JobId } from "../../packages/pawl/src/core/jobs/id.js";
import type { Claimed } from "../../packages/pawl/src/store/port/settle/leases.js";
import { JOBS_PER_ROW } from "../../packages/pawl/src/store/postgres/enqueue/ready-rows.js";
import { ALL_SERVERS, races } from "../support/races/race.js";
import { CLAIM_LOCKED, CLAIM_SNAPSHOT, SPLIT_SNAPSHOT } from "./statement-splits.js";

/** Stored as ready rows of as many jobs as they hold. */
async function batch(w: World, length = 20): Promise<readonly JobId[]> {
  const answers = await w.store.jobs.enqueue(Array.from({ length }, () => w.newJob()));
  return answers.map((answer) => (answer as { id: JobId }).id);
}

/** The jobs of one row, and two of another lane. */
async function twoLanes(w: World): Promise<readonly JobId[]> {
  const ids = await batch(w);
  for (let i = 0; i < 2; i++) await w.add({ task: "b" });
  return ids;
}

/** For two jobs of the row's lane, and so many of the other. */
function overBoth(w: World, others = 1): Promise<Claimed | undefined> {
  const quotas = [
    { lane: lane(), quota: 2 },
    { lane: lane({ task: "b" }), quota: others },
  ];
  return w.store.leases.claim({ worker: BOB, quotas, duration: LEASE });
}

const LOCKED_OUT = "a claim passes by the rows that another holds, and says that it did";

async function nobodyFails(_world: World, _ids: unknown, answers: readonly unknown[]): Promise<void> {
  expect(JSON.stringify(answers)).not.toContain("threw");
}

races((race) => {
  race(
    "two claims out of one row",
    {
      setup: (w) => batch(w),
      racers: [
        { run: (w) => w.claimIds({ limit: 5 }), splits: [CLAIM_SNAPSHOT] },
        { run: (w) => w.claimIds({ limit: 5, worker: BOB }), splits: [CLAIM_SNAPSHOT] },
      ],
      notSerial: LOCKED_OUT,
      holds: nobodyFails,
    },
    [
      {
        clause: "a row is locked before its jobs are taken",
        without: [{ guard: "claimed-row-locked" }],
        because: /is in lease \d+ and lease|to contain .threw./,
      },
      {
        clause: "what is put back is what was not taken",
        without: [{ guard: "remainder-is-untaken" }],
        because: /is in lease .* and ready row/,
      },
    ],
    ALL_SERVERS,
  );

  race(
    "two claims that empty one row",
    {
      setup: (w) => batch(w),
      racers: [
        { run: (w) => w.claimIds({ limit: 15 }), splits: [CLAIM_SNAPSHOT] },
        { run: (w) => w.claimIds({ limit: 15, worker: BOB }), splits: [CLAIM_SNAPSHOT] },
      ],
      notSerial: LOCKED_OUT,
      holds: nobodyFails,
    },
    [],
    ALL_SERVERS,
  );

  race(
    "a claim out of a row and a cancel of one of its jobs",
    {
      setup: (w) => batch(w),
      racers: [
        { run: (w) => w.claimIds({ limit: 5 }), splits: [CLAIM_SNAPSHOT] },
        {
          run: (w, ids) => w.store.jobs.cancel("everyone", ids[10] as JobId, "no need"),
          stops: ["facts", "split_rows", "take_waiting", "commit"],
          splits: [SPLIT_SNAPSHOT],
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
            guard: "split-rows-were-deleted",
            becomes: "(select r.* from pawl.ready r where r.ctid = any(array(select address from found)))",
          },
        ],
        because: /is in lease \d+ and ready|duplicate|to contain .threw./,
      },
    ],
    ALL_SERVERS,
  );

  race(
    "a claim out of a row, and one over its lane and one that runs dry",
    {
      setup: twoLanes,
      racers: [
        { run: (w) => w.claimIds({ limit: 5 }), splits: [CLAIM_LOCKED] },
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
        clause: "a lane of which another holds a row of several jobs may have more, and no other",
        without: [{ guard: "locked-row-of-several", becomes: "and false" }],
        because: /nobody is told/,
      },
    ],
    ALL_SERVERS,
  );

  // What another holds is passed by, and with it what that one puts back: a part of one row.
  race(
    "two claims at the head of a long line of rows",
    {
      setup: (w) => batch(w, 3_000),
      racers: [
        { run: (w) => w.claimIds({ limit: 50 }), splits: [CLAIM_LOCKED] },
        { run: (w) => w.claimIds({ limit: 50, worker: BOB }), splits: [CLAIM_LOCKED] },
      ],
      notSerial: LOCKED_OUT,
      async holds(_world, ids, answers) {
        const places = (answers as readonly (readonly JobId[])[]).flat().map((id) => ids.indexOf(id));
        expect(Math.max(...places), "far before its turn").toBeLessThan(2 * JOBS_PER_ROW);
      },
    },
    [
      {
        clause: "no more rows are pulled than hold the jobs asked for",
        without: [{ guard: "rows-for-quota", becomes: "1" }],
        because: /does not say what it holds/,
      },
    ],
    ALL_SERVERS,
  );
});

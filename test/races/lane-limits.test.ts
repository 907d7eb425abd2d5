import { expect } from "vitest";
import { ANA, BOB, type HeldJob, LEASE, lane, SUCCEEDED, type World } from "../../packages/pawl/conformance/world.js";
import type { JobId } from "../../packages/pawl/src/core/jobs/id.js";
import type { Limits } from "../../packages/pawl/src/core/sharing/policy.js";
import { ALL_SERVERS, races } from "../support/races/race.js";
import type { VerbPieces } from "../support/races/racing-session.js";
import { SETTLE_SNAPSHOT } from "./statement-splits.js";

const QUEUE = { kind: "queue", name: "default" } as const;

async function limited(w: World, limits: Limits, jobs: number): Promise<void> {
  await w.store.policies.put(QUEUE, limits, 0);
  for (let n = 0; n < jobs; n++) await w.add();
}

async function claim(w: World, worker = ANA, count = 10): Promise<readonly JobId[]> {
  const quotas = [{ lane: lane(), quota: count }];
  const { claimed } = await w.store.leases.claimLimited({ worker, quotas, duration: LEASE });
  return claimed?.jobs.map(({ id }) => id) ?? [];
}

async function holdOne(w: World): Promise<HeldJob> {
  const quotas = [{ lane: lane(), quota: 1 }];
  const { claimed } = await w.store.leases.claimLimited({ worker: ANA, quotas, duration: LEASE });
  const job = claimed?.jobs[0];
  if (claimed === undefined || job === undefined) throw new Error("nothing to claim");
  return { worker: ANA, claimed, job };
}

const CLAIM: VerbPieces = { stops: ["lock_limits", "count_lane_slots", "commit"], splits: [{ at: "lock-limits-snapshot" }] };
const UNLOCKED = { guard: "lane-limit-locked" };

async function together(most: number, answers: readonly unknown[]): Promise<void> {
  const ids = answers.flatMap((answer) => (Array.isArray(answer) ? (answer as JobId[]) : []));
  expect(JSON.stringify(answers)).not.toContain("threw");
  expect(ids.length, "jobs that run at a time").toBeLessThanOrEqual(most);
}

races((race) => {
  for (const [sentence, limits] of [
    ["two claims under one limit", { concurrency: 3 }],
    ["two claims of one bucket of tokens", { rate: { limit: 1, per: 60_000, burst: 3 } }],
  ] as const) {
    race(
      sentence,
      {
        setup: (w) => limited(w, limits, 8),
        racers: [
          { run: (w) => claim(w, ANA, 2), ...CLAIM },
          { run: (w) => claim(w, BOB, 2), ...CLAIM },
        ],
        notSerial: "which jobs each gets is a matter of who locks first",
        holds: (_w, _c, answers) => together(3, answers),
      },
      [{ clause: "LOCK locks the limits (for update)", without: [UNLOCKED], because: /jobs that run at a time/ }],
      ALL_SERVERS,
    );
  }

  race(
    "a claim under a limit and the end of a job that holds its slot",
    {
      setup: async (w) => {
        await limited(w, { concurrency: 1 }, 3);
        return holdOne(w);
      },
      racers: [
        { run: (w) => claim(w, BOB, 2), ...CLAIM },
        { run: (w, held) => w.settle(held, SUCCEEDED), splits: [SETTLE_SNAPSHOT] },
      ],
      afterwards: (w) => claim(w, BOB, 2),
      notSerial: "who comes first decides whether the slot is free",
      holds: async (w, _held, answers) => {
        await together(1, answers);
        expect((await w.store.records.counts())[0]?.counts, "one runs, and the slot of the other is free").toMatchObject({
          running: 1,
          succeeded: 1,
        });
      },
    },
    [],
    ALL_SERVERS,
  );
});

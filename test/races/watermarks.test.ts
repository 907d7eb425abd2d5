import { type HeldJob, lane, SUCCEEDED, type World } from "../../packages/pawl/conformance/world.js";
import type { JobId } from "../../packages/pawl/src/core/jobs/id.js";
import type { JobOptions } from "../../packages/pawl/src/core/jobs/job.js";
import { races } from "../support/races/race.js";
import { PASS_ON_DRAWN } from "./statement-splits.js";

/** Claims as a worker does that found nothing: it looks again. */
async function claimAll(w: World): Promise<readonly JobId[]> {
  return [...(await w.claimIds()), ...(await w.claimIds())].sort();
}

/** Looks for work, as a worker does. */
async function look(w: World): Promise<void> {
  await w.store.lanes.live(undefined, [lane().task]);
}

const BOUND = {
  clause: "a bound waits for the transactions that may still write below it (pg_snapshot_xmin)",
  without: [{ guard: "horizon-is-xmin", becomes: "pg_snapshot_xmax(s)::text," }],
  because: /no order/,
};

const under = (key: string): JobOptions => ({ limits: [{ limit: "per key", key, rule: { concurrency: 1 } }] });

/** One of each key runs, under a lease of its own, and another one waits. */
async function bothRun(w: World): Promise<{ readonly a: HeldJob; readonly b: HeldJob; claimer: World | undefined }> {
  await w.add({ options: under("a") });
  const a = await w.hold();
  await w.add({ options: under("b") });
  const b = await w.hold();
  await w.add({ options: under("a") });
  await w.add({ options: under("b") });
  return { a, b, claimer: undefined };
}

races((race) => {
  // Its number in the lane is drawn before that of the other, and seen after it.
  race(
    "an enqueue that takes its time, and a process that claims what was enqueued later",
    {
      setup: async () => ({ claimer: undefined as World | undefined }),
      racers: [
        { run: (w) => w.enqueue({ idempotencyKey: "slow" }), stops: ["put_waiting"] },
        {
          async run(w, context) {
            context.claimer = w;
            await w.add();
            const claimed = await w.claimIds();
            for (let look = 0; look < 4; look++) await w.store.lanes.live(undefined, [lane().task]);
            return claimed;
          },
          stops: ["live"],
        },
      ],
      afterwards: (_, { claimer }) => claimAll(claimer as World),
    },
    [BOUND],
  );

  // The same of the admitted section: its number is drawn before that of the other, and seen after it.
  race(
    "a job that waited and is let in slowly, and a process that claims what was let in later",
    {
      setup: bothRun,
      racers: [
        { run: (w, { a }) => w.settle(a, SUCCEEDED), splits: [PASS_ON_DRAWN] },
        {
          async run(w, context) {
            context.claimer = w;
            await w.settle(context.b, SUCCEEDED);
            const claimed = await w.claimIds();
            for (let looks = 0; looks < 4; looks++) await look(w);
            return claimed;
          },
          stops: ["live"],
        },
      ],
      async afterwards(_, { claimer }) {
        await look(claimer as World);
        return claimAll(claimer as World);
      },
    },
    [BOUND],
  );
});

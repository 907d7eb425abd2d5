import type { JobId } from "../../packages/pawl/src/core/id.js";
import { lane, type World } from "../../packages/pawl/src/store/conformance/world.js";
import { races } from "../support/race.js";

/** Claims as a worker does that found nothing: it looks again. */
async function claimAll(w: World): Promise<readonly JobId[]> {
  return [...(await w.claimIds()), ...(await w.claimIds())].sort();
}

races((race) => {
  // Its number in the lane is drawn before that of the other, and seen after it.
  race(
    "an enqueue that takes its time, and a process that claims what was enqueued later",
    {
      setup: async () => ({ claimer: undefined as World | undefined }),
      racers: [
        { run: (w) => w.enqueue({ request: "slow" }), stops: ["put"] },
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
    [
      {
        clause: "a bound waits for the transactions that may still write below it (pg_snapshot_xmin)",
        without: [{ statement: "live", from: "pg_snapshot_xmin(s)", to: "pg_snapshot_xmax(s)" }],
        because: /no order/,
      },
    ],
  );
});

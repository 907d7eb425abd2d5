import type { Samples, Scenario } from "../../contract/scenario.js";
import { figureOf, isOurs, overBestPeer, partsOf, rounded, rowsOf } from "../../harness/figures.js";
import { drained, filled, shareOf } from "../steps.js";
import { NODE_SYSTEMS } from "../systems.js";

/** Of the jobs of one drain: how many more run between the first pinned drain and the second. */
const BETWEEN = 10 / 3;

export const pinned: Scenario = {
  name: "pinned",
  measures: "draining while another transaction holds an old snapshot; then again after a million more; and without it",
  systems: NODE_SYSTEMS,
  jobs: 300_000,
  runs: 1,
  async run(bench) {
    const { jobs } = bench;
    const ours = bench.systems.filter(({ name }) => name === "pawl");
    const unpinned = await bench.turns(
      async (turn) => {
        await filled(turn, { count: jobs });
        return { unpinnedPerSecond: await drained(turn, jobs) };
      },
      { title: "without a pin", systems: ours },
    );
    const samples = await bench.turns(
      async (turn) => {
        // Redis has no snapshots to hold, its peers just drain: they are rivals all the same.
        const release = await turn.inspect.pin();
        // Some slow down with every job of a pinned drain: a tenth of them flatters those, never us.
        const count = shareOf(turn.system, jobs);
        await filled(turn, { count });
        const perSecond = await drained(turn, count);
        if (!isOurs(turn.system.name)) {
          await release();
          return { perSecond };
        }
        const more = Math.round(jobs * BETWEEN);
        await filled(turn, { from: jobs, count: more });
        await drained(turn, more, jobs + more);
        await filled(turn, { from: jobs + more, count: jobs });
        const afterPerSecond = await drained(turn, jobs, jobs + more + jobs);
        await release();
        return { perSecond, afterPerSecond };
      },
      { title: "pinned" },
    );
    const figure = (of: Samples, name: string) => (of.has("pawl") ? figureOf("pawl", name, of.get("pawl") ?? []) : Number.NaN);
    const base = figure(unpinned, "unpinnedPerSecond");
    return {
      results: rowsOf(samples).map((row) => (row.system === "pawl" ? { ...row, unpinnedPerSecond: rounded(base) } : row)),
      ratio: overBestPeer(samples, "perSecond"),
      parts: partsOf({
        ofUnpinned: figure(samples, "perSecond") / base,
        ofUnpinnedAfter1M: figure(samples, "afterPerSecond") / base,
      }),
    };
  },
};

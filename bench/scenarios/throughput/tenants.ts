import type { Scenario } from "../../contract/scenario.js";
import { caseRows, inCases, over } from "../cases.js";
import { drainedWarm } from "../warm.js";

const TENANTS = [1, 100, 10_000] as const;
const nameOf = (tenants: number) => (tenants === 1 ? "1 tenant" : `${tenants.toLocaleString("en")} tenants`);

export const tenants: Scenario = {
  name: "tenants",
  measures: "drain by a warm worker of the jobs of 1, 100 and 10,000 tenants, half of all jobs in one of them",
  systems: ["pawl"],
  jobs: 100_000,
  runs: 3,
  async run(bench) {
    const figures = await inCases(
      bench,
      TENANTS.map((count) => ({
        name: nameOf(count),
        async measure(turn) {
          // Ten thousand tenants' jobs are more rows than one's, and the server writes and vacuums longer after storing them.
          const { perSecond, twice } = await drainedWarm(turn, [{ count: bench.jobs, tenants: count }], { calm: true });
          return { perSecond, twice };
        },
      })),
    );
    return { results: caseRows(figures), ratio: over(figures, "perSecond", nameOf(10_000), nameOf(1)), parts: {} };
  },
};

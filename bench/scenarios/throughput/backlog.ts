import type { Figures, Scenario, Turn } from "../../contract/scenario.js";
import { partsOf, rounded } from "../../harness/figures.js";
import { short } from "../../report/figures.js";
import { type Case, caseRows, inCases, over } from "../cases.js";
import { drainedWarm } from "../warm.js";

const HOUR = 3_600_000;

export const backlog: Scenario = {
  name: "backlog",
  measures:
    "drain by a warm worker, once the server has nothing left to write or to vacuum, of 1k, 100k and 1M ready jobs, and of 100k beside 1M and 10M delayed ones: rate, and how long its claims take; the ratio compares with the better of the two small backlogs",
  systems: ["pawl"],
  jobs: 1_000_000,
  runs: 3,
  async run(bench) {
    const few = Math.max(1, Math.round(bench.jobs / 1_000));
    const some = Math.max(1, Math.round(bench.jobs / 10));
    const ready = (count: number): Case => ({ name: `${short(count)} ready`, measure: (turn) => drained(turn, count, 0) });
    const delayed = (count: number): Case => ({
      name: `${short(some)} ready, ${short(count)} delayed`,
      measure: (turn) => drained(turn, some, count),
    });
    const [small, base, large] = [ready(few), ready(some), ready(bench.jobs)];
    const beside = delayed(bench.jobs);
    const besideTenfold = delayed(bench.jobs * 10);

    const figures = await inCases(bench, [small, base, large, beside, besideTenfold]);
    const rate = ({ name }: Case) => figures.get(name)?.perSecond;
    const best = Math.max(rate(small) ?? 0, rate(base) ?? 0);
    const atLarge = rate(large);
    return {
      results: caseRows(figures),
      ratio: atLarge === undefined || best === 0 ? null : rounded(atLarge / best),
      parts: partsOf({
        delayed: over(figures, "perSecond", beside.name, base.name),
        delayedTenfold: over(figures, "perSecond", besideTenfold.name, base.name),
      }),
    };
  },
};

/** The delayed ones are there first, through the public enqueueMany like the others, and due over a day from an hour on. */
async function drained(turn: Turn, ready: number, delayed: number): Promise<Figures> {
  const later = { from: ready, count: delayed, due: { start: Date.now() + HOUR, over: 24 * HOUR } };
  const { perSecond, twice, claims } = await drainedWarm(turn, [...(delayed === 0 ? [] : [later]), { count: ready }], { calm: true });
  return { perSecond, claimP50Ms: claims[0]?.p50 ?? Number.NaN, claimP99Ms: claims[0]?.p99 ?? Number.NaN, twice };
}

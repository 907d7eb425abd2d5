import type { Figures, Scenario, Turn } from "../../contract/scenario.js";
import { best, figureOf, isOurs, rounded, rowsOf } from "../../harness/figures.js";
import { drained, filled } from "../steps.js";
import { NODE_SYSTEMS } from "../systems.js";

const NATIVE = "pawl-embedded";

export const embedded: Scenario = {
  name: "embedded",
  measures: "drain, as in the scenario of that name, on the embedded store, from an empty folder; the peers on their own servers",
  systems: [NATIVE, "pawl-pglite", ...NODE_SYSTEMS.filter((name) => !isOurs(name))],
  jobs: 100_000,
  runs: 3,
  async run(bench) {
    const samples = await bench.turns((turn) => measured(turn, bench.jobs));
    const rates = [...samples]
      .filter(([, taken]) => taken.length > 0)
      .map(([system, taken]) => ({ system, rate: figureOf(system, "perSecond", taken) }));
    const native = rates.find(({ system }) => system === NATIVE)?.rate;
    const peers = rates.filter(({ system }) => !isOurs(system)).map(({ rate }) => rate);
    const comparable = native !== undefined && peers.length > 0;
    return { results: rowsOf(samples), ratio: comparable ? rounded(native / best("perSecond", peers)) : null, parts: {} };
  },
};

/** Also how long it took until the store was there and the process connected to it. */
async function measured(turn: Turn, count: number): Promise<Figures> {
  const asked = performance.now();
  const first = await turn.start();
  const startMs = performance.now() - asked;
  await first.stop();
  await filled(turn, { count });
  return { perSecond: await drained(turn, count), startMs };
}

import type { Jobs } from "../../contract/child.js";
import type { Curve, Figures, Scenario, Turn } from "../../contract/scenario.js";
import { figureOf, partsOf, rounded, rowsOf } from "../../harness/figures.js";
import { ranLate, storedBefore } from "./lateness.js";

const SECONDS = 60;

export const herd: Scenario = {
  name: "herd",
  measures: "10,000 jobs due at the same instant, every second for 60 s: the start of the handler minus the due time",
  systems: ["pawl"],
  jobs: 600_000,
  runs: 1,
  async run(bench) {
    let bySecond: readonly number[] = [];
    const samples = await bench.turns(
      async (turn) => {
        const figures = await measured(turn, Math.floor(bench.jobs / SECONDS));
        bySecond = await p99BySecond(turn);
        return figures;
      },
      { aim: "latency" },
    );
    const ours = samples.get("pawl");
    const part = (figure: string) => (ours === undefined ? null : figureOf("pawl", figure, ours));
    return {
      results: rowsOf(samples),
      ratio: null,
      parts: partsOf({ p50Ms: part("p50Ms"), p99Ms: part("p99Ms"), p999Ms: part("p999Ms"), maxMs: part("maxMs") }),
      ...(bySecond.length === 0 ? {} : { curves: [curve(bySecond)] }),
    };
  },
};

async function measured(turn: Turn, perSecond: number): Promise<Figures> {
  const count = perSecond * SECONDS;
  const worker = await turn.start();
  await worker.work({ upTo: count });
  const producer = await turn.start();
  // Time enough to store them all, at a slow 25,000 a second, before the first are due.
  const start = Date.now() + 5_000 + count / 25;
  await storedBefore(start, producer, herds(start, perSecond));
  return ranLate(turn, worker, count);
}

function* herds(start: number, perSecond: number): Generator<Jobs> {
  for (let second = 0; second < SECONDS; second++) {
    yield { from: second * perSecond, count: perSecond, due: { start: start + second * 1_000, over: 0 } };
  }
}

/** Of each second's jobs, as their attempts tell it: whether it falls behind. */
async function p99BySecond(turn: Turn): Promise<readonly number[]> {
  const rows = await turn.inspect.query<{ readonly late: number }>(
    `select percentile_cont(0.99) within group (order by extract(epoch from a.started_at - j.due_at) * 1000)::float8 as late
     from pawl.job j join pawl.any_attempt a on a.job = j.id group by j.due_at order by j.due_at`,
  );
  return rows.map(({ late }) => rounded(late));
}

function curve(bySecond: readonly number[]): Curve {
  return {
    head: "start minus due, p99 of each second's jobs",
    stops: bySecond.map((_, second) => String(second + 1)),
    lines: [{ name: "pawl", values: bySecond }],
    unit: " ms",
  };
}

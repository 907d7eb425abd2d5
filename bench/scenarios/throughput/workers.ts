import type { Curve, Scenario, Turn } from "../../contract/scenario.js";
import { partsOf, rounded } from "../../harness/figures.js";
import { type CaseFigures, caseRows, inCases } from "../cases.js";
import { drainedWarm } from "../warm.js";

const CASES = [
  { name: "1 process", processes: 1, workers: 1 },
  { name: "2 processes", processes: 2, workers: 1 },
  { name: "4 processes", processes: 4, workers: 1 },
  { name: "8 processes", processes: 8, workers: 1 },
  { name: "50 claimers", processes: 5, workers: 10 },
] as const;

export const workers: Scenario = {
  name: "workers",
  measures: "drain by 1, 2, 4 and 8 warm worker processes, and by 50 workers in 5 processes, on the same queue",
  systems: ["pawl"],
  jobs: 200_000,
  runs: 3,
  async run(bench) {
    const complaints: string[] = [];
    const figures = await inCases(
      bench,
      CASES.map(({ name, processes, workers }) => ({
        name,
        async measure(turn) {
          const drained = await drainedWarm(turn, [{ count: bench.jobs }], { processes, workers });
          complaints.push(...drained.complaints);
          return {
            perSecond: drained.perSecond,
            claimP99Ms: Math.max(...drained.claims.map(({ p99 }) => p99)),
            smallestShare: Math.min(...drained.ran.map(({ count }) => count)) / (bench.jobs / processes),
            errors: drained.errors + (await failures(turn)),
            // Either leaves a trace: a handler call too many, or two attempts at one job.
            twice: Math.max(drained.twice, await attemptedTwice(turn)),
          };
        },
      })),
    );
    const totals = CASES.flatMap(({ name }) => figures.get(name)?.perSecond ?? []);
    const atEight = figures.get("8 processes")?.perSecond;
    const sum = (figure: string) => (figures.size === 0 ? null : [...figures.values()].reduce((total, of) => total + (of[figure] ?? 0), 0));
    return {
      results: caseRows(figures).map((row) => (complaints[0] === undefined ? row : { ...row, firstError: complaints[0] })),
      ratio: atEight === undefined ? null : rounded(atEight / Math.max(...totals)),
      parts: partsOf({ errors: sum("errors"), twice: sum("twice") }),
      ...(figures.size === 0 ? {} : { curves: [curve(figures)] }),
    };
  },
};

/** A job that was given back unstarted has an attempt `released` (3) and was neither run nor harmed. */
async function failures(turn: Turn): Promise<number> {
  return counted(turn, "select count(*) from pawl.any_attempt where outcome not in (0, 3)");
}

async function attemptedTwice(turn: Turn): Promise<number> {
  return counted(turn, "select count(*) from (select from pawl.any_attempt where outcome <> 3 group by job having count(*) > 1) twice");
}

async function counted(turn: Turn, sql: string): Promise<number> {
  const [row] = await turn.inspect.query<{ readonly count: string }>(sql);
  return Number(row?.count);
}

function curve(figures: CaseFigures): Curve {
  return {
    head: "jobs run per second, all processes together",
    stops: [...figures.keys()],
    lines: [{ name: "pawl", values: [...figures.values()].map(({ perSecond }) => perSecond ?? null) }],
  };
}

import { setTimeout as sleep } from "node:timers/promises";
import type { Child } from "../../contract/child.js";
import type { Figures, Scenario, Turn } from "../../contract/scenario.js";
import { rounded } from "../../harness/figures.js";
import { caseRows, inCases } from "../cases.js";

const PROCESSES = 4;
const SLOTS = 10;
const NEWCOMERS = 99;
/** jobs of newcomers, and how fast they come */
const ASKED = 10 * NEWCOMERS;
const PER_SECOND = 50;
/** ms that jobs take: the backlog's and the newcomers' */
const LONG = 50;
const SHORT = 10;
const WARM_UP = 100;
/** ms that nobody need better, whatever the latency of an empty system */
const SOON = 1_000;

/** ms */
const LOOK_EVERY = 50;

const EMPTY = "empty";
const BESIDE = "beside a backlog";

export const newcomers: Scenario = {
  name: "newcomers",
  measures: `four processes of ten slots; from the enqueue to the start of jobs of ${NEWCOMERS} small tenants, on an empty system and beside one tenant's backlog of jobs of ${LONG} ms`,
  systems: ["pawl"],
  jobs: 1_000_000,
  runs: 1,
  async run(bench) {
    const figures = await inCases(bench, [
      { name: EMPTY, measure: (turn) => meet(turn, 0) },
      { name: BESIDE, measure: (turn) => meet(turn, bench.jobs) },
    ]);
    const [empty, beside] = [figures.get(EMPTY)?.maxMs, figures.get(BESIDE)?.maxMs];
    const due = empty === undefined || beside === undefined ? null : rounded(beside / Math.max(2 * empty, SOON));
    return { results: caseRows(figures), ratio: due, parts: {} };
  },
};

/** How long the jobs of newcomers wait while all slots are busy with one tenant. */
async function meet(turn: Turn, backlog: number): Promise<Figures> {
  const producer = await turn.start();
  const children: Child[] = [];
  for (let i = 0; i < PROCESSES; i++) children.push(await turn.start());
  if (backlog > 0) await producer.enqueueMany({ from: WARM_UP + ASKED, count: backlog, tenant: "big", ms: LONG });
  for (const child of children) await child.work({ upTo: WARM_UP + ASKED + backlog, concurrency: SLOTS });
  // The first ones open connections and compile code; they carry no time of their enqueue, so they do not count.
  await producer.enqueueEach({ count: WARM_UP, inFlight: 4, newcomers: NEWCOMERS, ms: SHORT });
  turn.say(`${NEWCOMERS} newcomers ask for ${ASKED} jobs`);
  await producer.enqueuePaced({ from: WARM_UP, count: ASKED, perSecond: PER_SECOND, newcomers: NEWCOMERS, ms: SHORT });
  const waits = await started(children);
  for (const child of children) await child.stop();
  await producer.stop();
  const worst = (of: (wait: (typeof waits)[number]) => number) => Math.max(...waits.map(of));
  return { p50Ms: rounded(worst(({ p50 }) => p50)), p99Ms: rounded(worst(({ p99 }) => p99)), maxMs: rounded(worst(({ max }) => max)) };
}

/** What each process has seen of them, once all have been started somewhere. */
async function started(children: readonly Child[]) {
  for (;;) {
    const waits = (await Promise.all(children.map((child) => child.report()))).map(({ latency }) => latency).filter(({ count }) => count > 0);
    if (waits.reduce((sum, { count }) => sum + count, 0) >= ASKED) return waits;
    await sleep(LOOK_EVERY);
  }
}

/** `npm run bench`: see README.md beside this file. */
import { resolve } from "node:path";
import type { Report } from "./contract/report.js";
import type { Result, Scenario } from "./contract/scenario.js";
import { type BenchArguments, help, parseArguments } from "./harness/arguments.js";
import { type Built, built } from "./harness/before.js";
import { buildIfStale } from "./harness/build.js";
import type { Started } from "./harness/children.js";
import { isOurs } from "./harness/figures.js";
import { install } from "./harness/install.js";
import { childNode } from "./harness/node.js";
import { compared, type Pair } from "./harness/paired.js";
import { progressOn } from "./harness/progress.js";
import { Servers } from "./harness/servers.js";
import { benchOf } from "./harness/turns.js";
import { COLOURED, printed, printedPairs, savePairs, saveReport } from "./report/index.js";
import { SCENARIOS } from "./scenarios/index.js";

const progress = progressOn(process.stderr);

async function main(): Promise<void> {
  const wanted = parseArguments(process.argv.slice(2), SCENARIOS);
  if (wanted.help) return console.log(help(SCENARIOS));

  buildIfStale(progress.note);
  const before = wanted.before === undefined ? undefined : built(wanted.before, progress.note);
  const stopping = new AbortController();
  const context: BenchContext = { servers: new Servers(), running: new Set(), stopping: stopping.signal };
  const stop = async () => {
    stopping.abort();
    await Promise.all([...context.running].map((child) => child.kill()));
    await context.servers.stop();
  };
  process.once("SIGINT", () => void stop().finally(() => process.exit(130)));
  process.once("SIGTERM", () => void stop().finally(() => process.exit(143)));

  for (const scenario of wanted.scenarios) {
    // One that fails does not take the others with it.
    await (before === undefined ? runScenario(scenario, wanted, context) : runPaired(scenario, wanted, before, context)).catch(failed);
    if (context.stopping.aborted) return;
  }
  await stop();
}

function failed(error: unknown): void {
  process.exitCode = 1;
  progress.note(error instanceof Error ? error.message : String(error));
}

/** What all scenarios of a run share. */
interface BenchContext {
  readonly servers: Servers;
  readonly running: Set<Started>;
  readonly stopping: AbortSignal;
}

/** Fewer pairs say little of a machine whose speed changes from minute to minute. */
const PAIRS = 9;

/** Pawl beside an earlier commit of itself. Peers take no part. */
async function runPaired(
  scenario: Scenario,
  { jobs = scenario.jobs, runs = PAIRS, only, json }: BenchArguments,
  before: Built,
  context: BenchContext,
): Promise<void> {
  const names = scenario.systems.filter((name) => isOurs(name) && (only?.includes(name) ?? true));
  if (names.length === 0) return progress.note(`${scenario.name}: Pawl takes no part`);
  const { systems } = install(names, progress.note);
  const pairs: Pair[] = [];
  const pairing = { bench: before.bench, taken: pairs };
  const node = childNode(import.meta.dirname);
  await scenario.run(benchOf({ scenario, jobs, runs, systems, node, progress, skipped: {}, taken: [], pairing, ...context }));
  if (context.stopping.aborted) return;
  progress.clear();
  const rows = compared(pairs);
  console.log(printedPairs(scenario.name, before.commit, rows, process.stdout.isTTY ? COLOURED : undefined));
  const whole = jobs === scenario.jobs && runs >= PAIRS && only === undefined;
  savePairs(resolve(import.meta.dirname, whole ? "results/paired" : "results/trials/paired"), scenario.name, before.commit, rows);
  if (json) console.log(JSON.stringify({ scenario: scenario.name, before: before.commit, compared: rows }));
}

async function runScenario(
  scenario: Scenario,
  { jobs = scenario.jobs, runs = scenario.runs, only, json }: BenchArguments,
  context: BenchContext,
): Promise<void> {
  const names = scenario.systems.filter((name) => only?.includes(name) ?? true);
  if (names.length === 0) return progress.note(`${scenario.name}: none of the systems asked for takes part`);
  const installed = install(names, progress.note);
  const { systems } = installed;
  const skipped = { ...installed.skipped };
  for (const [name, why] of Object.entries(skipped)) progress.note(`${name} takes no part: ${why}`);

  const node = childNode(import.meta.dirname);
  const began = performance.now();
  const turns: Result[] = [];
  const outcome = await scenario.run(benchOf({ scenario, jobs, runs, systems, node, progress, skipped, taken: turns, ...context }));
  if (context.stopping.aborted) return;
  progress.clear();
  const made: Report = {
    scenario: scenario.name,
    measures: scenario.measures,
    jobs,
    runs,
    ...outcome,
    systems: systems.map(({ origin: _, file: __, ...about }) => about),
    servers: { node: `${node.version}, the same for every Node system`, ...context.servers.about },
    skipped,
    turns,
    took: { ms: Math.round(performance.now() - began) },
  };
  // Only what was measured in full may stand for the product, and be held against its bars; trials are kept apart.
  const whole = jobs === scenario.jobs && runs >= scenario.runs && only === undefined;
  console.log(printed(made, { whole, ...(process.stdout.isTTY ? { paint: COLOURED } : {}) }));
  saveReport(resolve(import.meta.dirname, whole ? "results" : "results/trials"), made);
  if (json) console.log(JSON.stringify({ scenario: made.scenario, results: made.results, ratio: made.ratio, parts: made.parts }));
}

main().catch(failed);

import { setTimeout as pause } from "node:timers/promises";
import { monotonic } from "../child/clock.ts";
import type { Bench, Figures, Result, Samples, Scenario, Turn, TurnOptions } from "../contract/scenario.js";
import type { SystemAbout } from "../contract/system.js";
import type { SystemEntry } from "../systems/about.ts";
import { type Started, startChild } from "./children.js";
import { isOurs, partsOf } from "./figures.js";
import type { NodeRuntime } from "./node.js";
import { beginsNow, type Pair } from "./paired.js";
import type { Progress } from "./progress.js";
import type { EmptyStore, Servers } from "./servers.js";

const LOOK_MS = 2;
/** longer than any system takes to record what it has run */
const RECORDED_MS = 60_000;

/** A peer that takes longer than this for a turn, and is so far behind that no luck would bring it near, takes one. */
const LONG_TURN_MS = 30_000;
const FAR_BEHIND = 4;

export interface RunnableSystem extends SystemAbout, Omit<SystemEntry, keyof SystemAbout> {
  /** the folder of the benchmark that its children run from; absent: this one */
  readonly bench?: string;
}

/** Turns in pairs: each of Pawl's turns has one of an earlier commit beside it. */
export interface Pairing {
  /** its folder of the benchmark */
  readonly bench: string;
  /** hears of every pair that was taken */
  readonly taken: Pair[];
}

export interface BenchDeps {
  readonly scenario: Scenario;
  readonly jobs: number;
  readonly runs: number;
  readonly systems: readonly RunnableSystem[];
  readonly servers: Servers;
  readonly node: NodeRuntime;
  readonly progress: Progress;
  /** hears of peers that failed, and why: they take no further part */
  readonly skipped: Record<string, string>;
  /** hears of every turn that was taken */
  readonly taken: Result[];
  /** what is running now, to be ended when the benchmark is stopped */
  readonly running: Set<Started>;
  /** aborted when the benchmark is being stopped: what fails then says nothing of anybody */
  readonly stopping: AbortSignal;
  /** absent: nothing is measured beside it */
  readonly pairing?: Pairing;
}

export function benchOf(parts: BenchDeps): Bench {
  const { scenario, jobs, runs, systems, progress, skipped, taken, pairing } = parts;
  return {
    jobs,
    runs,
    systems,
    say: (text) => progress.say(`${scenario.name}: ${text}`),
    async turns<F extends Figures>(measure: (turn: Turn) => Promise<F>, options: TurnOptions = {}): Promise<Samples<F>> {
      const asked = new Set(options.systems?.map(({ name }) => name));
      const taking = options.systems === undefined ? systems : systems.filter(({ name }) => asked.has(name));
      const repetitions = options.runs ?? runs;
      const samples = new Map<string, F[]>(taking.map(({ name }) => [name, []]));
      const took = new Map<string, number>();
      for (let run = 1; run <= repetitions; run++) {
        for (const system of taking) {
          const title = [scenario.name, options.title, options.round ?? `run ${run} of ${repetitions}`, system.label].filter(Boolean).join(", ");
          if (system.name in skipped || isHopeless(system.name, samples, took)) continue;
          const began = monotonic();
          const take = pairing !== undefined && isOurs(system.name) ? pairedTurn : oneTurn;
          const figures = await take(parts, system, options, title, measure).catch((error: Error) => {
            if (isOurs(system.name) || parts.stopping.aborted) throw error;
            skipped[system.name] = error.message;
            progress.note(`${title}: takes no further part: ${error.message}`);
          });
          if (figures === undefined) continue;
          samples.get(system.name)?.push(figures);
          taken.push({ system: system.name, ...(options.title === undefined ? {} : { case: options.title }), ...partsOf(figures) });
          took.set(system.name, monotonic() - began);
          progress.note(`${title}: ${summary(figures)}`);
        }
      }
      for (const name of Object.keys(skipped)) samples.delete(name);
      return samples;
    },
  };
}

function isHopeless(name: string, samples: Samples<Figures>, took: ReadonlyMap<string, number>): boolean {
  const rate = (of: string) => Math.max(0, ...(samples.get(of) ?? []).map(({ perSecond = 0 }) => perSecond));
  if (isOurs(name) || (took.get(name) ?? 0) < LONG_TURN_MS || rate(name) === 0) return false;
  return [...samples.keys()].some((other) => !isOurs(other) && rate(other) > FAR_BEHIND * rate(name));
}

async function pairedTurn<F extends Figures>(
  parts: BenchDeps,
  system: RunnableSystem,
  options: TurnOptions,
  title: string,
  measure: (turn: Turn) => Promise<F>,
): Promise<F> {
  const { pairing, progress } = parts;
  if (pairing === undefined) throw new Error("there is nothing to pair this turn with");
  const earlier: RunnableSystem = { ...system, name: `${system.name}-before`, label: `${system.label}, before`, bench: pairing.bench };
  const of = { system: system.name, ...(options.title === undefined ? {} : { case: options.title }) };
  const sides = beginsNow(pairing.taken, of) ? [system, earlier] : [earlier, system];
  const figures = new Map<RunnableSystem, F>();
  for (const side of sides) {
    const taken = await oneTurn(parts, side, options, `${title}${side === earlier ? ", before" : ""}`, measure);
    if (side === earlier) progress.note(`${title}, before: ${summary(taken)}`);
    figures.set(side, taken);
  }
  const now = figures.get(system) as F;
  pairing.taken.push({ ...of, now, before: figures.get(earlier) as F });
  return now;
}

async function oneTurn<F extends Figures>(
  { servers, node, progress, running }: BenchDeps,
  system: RunnableSystem,
  { aim = "throughput", countStatements = false }: TurnOptions,
  title: string,
  measure: (turn: Turn) => Promise<F>,
): Promise<F> {
  const say = (text: string) => progress.say(`${title}: ${text}`);
  say("starting");
  const ground = await servers.emptyStore(system, { countStatements });
  const started: Started[] = [];
  try {
    return await measure({
      system,
      location: ground.location,
      inspect: ground.inspect,
      say,
      async start() {
        const child = await startChild(system, ground.location, aim, node);
        running.add(child);
        if (started.push(child) === 1) await child.prepare();
        child.onProgress((count) => say(`${count.toLocaleString("en")} jobs`));
        return child;
      },
      verify: (finished) => verify(system, ground, finished),
      recorded: (finished) => recorded(system, ground, finished),
    });
  } finally {
    for (const child of started) {
      await child.kill();
      running.delete(child);
    }
    await ground.clear();
  }
}

/** Looks until nothing is left. The time of the look that saw it is when it began: it cannot have seen later things. */
async function recorded(system: SystemAbout, { inspect }: EmptyStore, finished: number): Promise<number> {
  if (!inspect.shared) return monotonic();
  const began = monotonic();
  for (;;) {
    const looked = monotonic();
    const left = await inspect.unfinished();
    if (left === 0) return looked;
    if (looked - began > RECORDED_MS) throw new Error(`${system.label} has ${left} of ${finished} jobs not recorded after a minute`);
    await pause(LOOK_MS);
  }
}

async function verify(system: SystemAbout, { inspect }: EmptyStore, finished: number): Promise<void> {
  const counts = await inspect.counts();
  if (counts.unfinished > 0) throw new Error(`${system.label} left ${counts.unfinished} jobs unfinished`);
  if (counts.finished !== undefined && counts.finished !== finished) {
    throw new Error(`${system.label} recorded ${counts.finished} jobs of ${finished}`);
  }
}

function summary(figures: Figures): string {
  return Object.entries(figures)
    .map(([name, value]) => `${name} ${Math.abs(value) >= 100 ? Math.round(value).toLocaleString("en") : Number(value.toPrecision(3))}`)
    .join(", ");
}

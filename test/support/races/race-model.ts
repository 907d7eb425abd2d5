import { dutiesOf } from "../../../packages/pawl/conformance/duties.js";
import { everyJob } from "../../../packages/pawl/conformance/invariants.js";
import { TestClock, World } from "../../../packages/pawl/conformance/world.js";
import type { AttemptRecord, JobRecord } from "../../../packages/pawl/src/core/jobs/job.js";
import { memoryStore } from "../../../packages/pawl/src/store/memory/index.js";
import type { Store } from "../../../packages/pawl/src/store/port/index.js";
import type { VerbPieces } from "./racing-session.js";

/** What a race is, and how it may end: as the memory store does, in some order of the whole verbs. */

/** One of those who race: a verb (or a few in a row), and the pieces it is cut into. Answers plain data. */
export interface RacingVerb<C> extends VerbPieces {
  readonly run: (world: World, context: C) => Promise<unknown>;
}

export interface Race<C> {
  readonly setup: (world: World) => Promise<C>;
  readonly racers: readonly RacingVerb<C>[];
  /** What follows, in every order: by default the duties that look after what passed each other. */
  readonly afterwards?: (world: World, context: C) => Promise<unknown>;
  /** A property of this race alone. */
  readonly holds?: (world: World, context: C, answers: readonly unknown[]) => Promise<void>;
  /** The answers and the end are not compared with a serial order, and why. */
  readonly notSerial?: string;
  /** They may wait for each other, and why that is well. */
  readonly deadlocks?: string;
  readonly limit?: number;
  /** who takes the first steps, in every order */
  readonly begin?: readonly number[];
}

/** A fixture whose jobs are named apart from those of the others on the same clock. */
export class RaceFixture extends World {
  #made = 0;
  constructor(
    store: Store,
    clock: TestClock,
    readonly number: number,
  ) {
    super(store, clock);
  }
  override idSuffix(): ReturnType<World["idSuffix"]> {
    this.#made += 1;
    return `7000-800${this.number}-${this.#made.toString(16).padStart(12, "0")}` as ReturnType<World["idSuffix"]>;
  }
}

/** What is left undone where two verbs passed each other. */
export async function duties(world: World): Promise<undefined> {
  await dutiesOf(world.store).unblock(1_000);
  await dutiesOf(world.store).carryOut(1_000);
}

export interface SerialEnd {
  readonly order: readonly number[];
  readonly answers: readonly unknown[];
  readonly later: unknown;
  /** before the duties */
  readonly exact: unknown;
  /** after them */
  readonly rough: unknown;
}

/** How the memory store ends, for every order of the whole verbs. */
export async function serialEnds<C>(race: Race<C>): Promise<readonly SerialEnd[]> {
  if (race.notSerial !== undefined) return [];
  return Promise.all(
    permutations(race.racers.map((_, index) => index)).map(async (order) => {
      const clock = new TestClock();
      const store = memoryStore({ now: clock.now });
      const world = new World(store, clock);
      const context = await race.setup(world);
      const answers: unknown[] = [];
      for (const index of order) answers[index] = await race.racers[index]?.run(new RaceFixture(store, clock, index + 1), context);
      const { exact } = await storedState(store);
      const later = await (race.afterwards ?? duties)(world, context);
      return { order, answers, later, exact, rough: (await storedState(store)).rough };
    }),
  );
}

function permutations(items: readonly number[]): readonly (readonly number[])[] {
  if (items.length < 2) return [items];
  return items.flatMap((item) => permutations(items.filter((other) => other !== item)).map((rest) => [item, ...rest]));
}

/**
 * All that can be seen. Roughly: without the marks that duties leave in the history, since a cancel that is carried
 * out a moment later than it was asked for ends alike, with one more line.
 */
export async function storedState(store: Store): Promise<{ exact: unknown; rough: unknown }> {
  const jobs = await everyJob(store);
  const { due } = await store.duties.poll();
  const counted = (await store.records.counts()).map(({ task, counts }) => ({ task, ...counts }));
  const shared = {
    counts: counted.map((row) => Object.fromEntries(Object.entries(row).filter(([, n]) => n !== 0))),
    promoteIn: due.get("promote"),
    reapIn: due.get("reap"),
  };
  const exact: unknown[] = [];
  const rough: unknown[] = [];
  for (const job of jobs) {
    const history = await store.jobs.history("everyone", job.id);
    exact.push([plainJob(job), history.map(plainLine)]);
    const { state, attempts, crashes, runAt, waitsFor, intent, input, output } = job;
    const lines = history.filter(({ worker }) => worker !== undefined).map(({ outcome, worker }) => `${outcome} by ${worker}`);
    rough.push({ id: job.id.slice(-13), state, attempts, crashes, runAt, waitsFor, intent, input, output, lines });
  }
  return { exact: sorted({ ...shared, jobs: exact }), rough: sorted({ ...shared, jobs: rough }) };
}

/** Pawl words its own failures as it likes, in every store. */
function plainJob(job: JobRecord): object {
  const { failure, ...rest } = job;
  return failure === undefined ? rest : { ...rest, failure: failure.kind };
}

function plainLine({ outcome, worker, next, failure }: AttemptRecord): object {
  return { outcome, worker, next, failure: failure?.kind };
}

/** The same text for the same data, whatever order its fields were made in. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, one]) => one !== undefined)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, one]) => [key, sorted(one)]),
  );
}

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { TestClock, World } from "../../packages/pawl/src/store/conformance/world.js";
import type { Store } from "../../packages/pawl/src/store/port.js";
import { openDb } from "../../packages/pawl/src/store/postgres/db.js";
import type { Driver } from "../../packages/pawl/src/store/postgres/drivers/driver.js";
import { pgDriver } from "../../packages/pawl/src/store/postgres/drivers/pg.js";
import { postgresStore } from "../../packages/pawl/src/store/postgres/index.js";
import { emptiedStores } from "./emptied-store.js";
import { everyOrder, Interleaver, type Told } from "./interleave.js";
import { duties, look, type Race, RacingWorld, type SerialEnd, serialEnds } from "./race-model.js";
import type { Mutation } from "./racing-session.js";
import { describeOn, PLANNED_AS_WRITTEN, plannedOnce, type ServerName, testClockDatabase } from "./servers.js";
import { violations } from "./violations.js";

/** A clause of the store that a race depends on, and how it is known: without it, some order breaks something. */
export interface Guard<C> {
  readonly clause: string;
  /** the statements without it */
  readonly without?: readonly Mutation[];
  /** or the race without it, where the clause is a step of its own */
  readonly instead?: Partial<Race<C>>;
  /** what is seen to break */
  readonly because: RegExp;
}

type DefineRace = <C>(sentence: string, race: Race<C>, guards: readonly Guard<C>[], on?: readonly ServerName[]) => void;

/** ms; a race of many orders, each on a schema made anew, takes half a minute on a busy machine */
const LONGEST = 120_000;

/** Where it is not said otherwise. Without its clauses a race is run here only. */
const HOME: ServerName = "embedded18";
const AWAY: ServerName = "debian15";
export const EVERYWHERE: readonly ServerName[] = [HOME, AWAY];

let here: ServerName = HOME;
/** From here on, races are run again away from home, those that are for everywhere. */
export function raceAway(): void {
  here = AWAY;
}

/** Races as tests: every order of each, and at home also without each clause that guards it. */
export function races(define: (race: DefineRace) => void): void {
  const server = here;
  const tests: ((track: () => RaceTrack) => void)[] = [];
  define((sentence, race, guards, on = [HOME]) => {
    if (!on.includes(server)) return;
    tests.push((track) =>
      describe(sentence, () => {
        it("in every order of their pieces", () => track().holdsInEveryOrder(race), LONGEST);
        if (server !== HOME) return;
        for (const { clause, without = [], instead = {}, because } of guards) {
          it(`and not without: ${clause}`, () => track().failsWithout({ ...race, ...instead }, without, because), LONGEST);
        }
      }),
    );
  });
  if (tests.length > 0)
    describeOn(server, () =>
      onTrack(server, (track) => {
        for (const test of tests) test(track);
      }),
    );
}

function onTrack(server: ServerName, tests: (track: () => RaceTrack) => void): void {
  let track: RaceTrack | undefined;
  beforeAll(async () => {
    track = await RaceTrack.open(server);
  });
  afterAll(() => track?.close());
  tests(() => track as RaceTrack);
}

interface Failure {
  readonly story: readonly string[];
  readonly message: string;
}

export class RaceTrack {
  private constructor(
    readonly interleaver: Interleaver,
    readonly stores: ReturnType<typeof emptiedStores>,
    readonly drop: () => Promise<void>,
  ) {}

  static async open(server: ServerName): Promise<RaceTrack> {
    const database = await testClockDatabase(server, { ...plannedOnce(server), ...PLANNED_AS_WRITTEN });
    const stores = emptiedStores(
      pgDriver({ config: { ...database.config, max: 2, options: "-c synchronous_commit=off" }, prepare: "auto", statementTimeout: 20_000 }),
    );
    return new RaceTrack(await Interleaver.open(database), stores, database.drop);
  }

  async close(): Promise<void> {
    await this.interleaver.close();
    await this.stores.close();
    await this.drop();
  }

  /** Every order of the pieces ends as some order of the whole verbs would, and breaks nothing on the way. */
  async holdsInEveryOrder<C>(race: Race<C>): Promise<void> {
    const { failures, runs, overlaps } = await this.#explore(race, []);
    expect(failures.map(tell).join("\n"), "an order that broke something").toBe("");
    expect(overlaps, "orders in which the verbs overlap").toBeGreaterThan(0);
    expect(runs).toBeGreaterThan(race.racers.length);
  }

  /** The same race, with the clause taken out: some order breaks something, for the reason expected. */
  async failsWithout<C>(race: Race<C>, mutations: readonly Mutation[], because: RegExp): Promise<void> {
    const { failures } = await this.#explore(race, mutations);
    expect(failures.map(tell).join("\n"), "the clause was taken out, and something broke").toMatch(because);
  }

  /** One order of the pieces, chosen as they come, ends as some order of the whole verbs would. Answers whether they overlapped. */
  async holdsInOrder<C>(race: Race<C>, choose: (runnable: number) => number, mutations: readonly Mutation[] = []): Promise<boolean> {
    const { told, problems } = await this.#once(race, mutations, choose, await serialEnds(race));
    if (problems.length > 0) throw new Error(`an order that broke something: ${tell({ story: told.story, message: problems.join("; ") })}`);
    return !told.serial;
  }

  async #explore<C>(race: Race<C>, mutations: readonly Mutation[]): Promise<{ failures: readonly Failure[]; runs: number; overlaps: number }> {
    const expected = await serialEnds(race);
    const failures: Failure[] = [];
    let overlaps = 0;
    const runs = await everyOrder(race.limit ?? 150, async (choose) => {
      const { told, problems } = await this.#once(race, mutations, choose, expected);
      if (!told.serial) overlaps++;
      if (problems.length > 0) failures.push({ story: told.story, message: problems.join("; ") });
      return failures.length > 0 ? "stop" : "go on";
    });
    return { failures, runs, overlaps };
  }

  async #once<C>(race: Race<C>, mutations: readonly Mutation[], choose: (runnable: number) => number, expected: readonly SerialEnd[]) {
    const clock = new TestClock();
    const world = new World(await this.stores.make(clock.now), clock);
    const context = await race.setup(world);
    const told = await this.interleaver.run(
      race.racers.map((racer, index) => ({
        ...racer,
        mutations,
        run: (driver: Driver) => racer.run(new RacingWorld(storeOn(driver, clock), clock, index + 1), context),
      })),
      choose,
      race.begin,
    );
    const problems = [...(await violations(this.interleaver.control, "now"))];
    if (told.circle && race.circles === undefined) problems.push("they waited for each other in a circle");
    if (problems.length === 0) problems.push(...(await this.#judge(race, world, context, told, expected)));
    return { told, problems };
  }

  async #judge<C>(race: Race<C>, world: World, context: C, told: Told, expected: readonly SerialEnd[]): Promise<readonly string[]> {
    const { answers } = told;
    const problems: string[] = [];
    const same = expected.find(({ order }) => told.serial && String(order) === String(told.order));
    const exactly = same === undefined ? undefined : (await look(world.store)).exact;
    const later = await (race.afterwards ?? duties)(world, context);
    problems.push(...(await violations(this.interleaver.control, "quiet")));
    try {
      await race.holds?.(world, context, answers);
    } catch (error) {
      problems.push((error as Error).message);
    }
    if (race.notSerial !== undefined) return problems;
    const roughly = (await look(world.store)).rough;
    if (same !== undefined) {
      const [found, wanted] = [JSON.stringify([answers, exactly]), JSON.stringify([same.answers, same.exact])];
      if (found !== wanted) problems.push(`in a row, it ended like\n  ${found}\nand not like\n  ${wanted}`);
    }
    const mine = JSON.stringify([answers, later, roughly]);
    const theirs = expected.map((end) => JSON.stringify([end.answers, end.later, end.rough]));
    if (!theirs.includes(mine)) problems.push(`no order of the whole verbs ends like\n  ${mine}\nbut like\n  ${theirs.join("\n  ")}`);
    return problems;
  }
}

function tell({ story, message }: Failure): string {
  return `${story.join(", ")}: ${message}`;
}

export function storeOn(driver: Driver, clock: TestClock): Store {
  const db = openDb(driver, { place: "race", now: clock.now });
  const engine = { engine: "postgres", place: "race", version: "", durability: "process", schema: 1 } as const;
  return postgresStore({ db, engine, self: "race" });
}

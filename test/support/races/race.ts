import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { TestClock, World } from "../../../packages/pawl/conformance/world.js";
import type { Store } from "../../../packages/pawl/src/store/port/index.js";
import { openDb } from "../../../packages/pawl/src/store/postgres/connection/db.js";
import type { Driver } from "../../../packages/pawl/src/store/postgres/drivers/driver.js";
import { pgDriver } from "../../../packages/pawl/src/store/postgres/drivers/pg.js";
import { postgresStore } from "../../../packages/pawl/src/store/postgres/index.js";
import { emptiedStores } from "../servers/emptied-stores.js";
import { describeOn, PLANNED_AS_WRITTEN, plannedOnce, type ServerName, testClockDatabase } from "../servers/servers.js";
import { everyOrder, type InterleavedRun, Interleaver } from "./interleaver.js";
import { duties, type Race, RaceFixture, type SerialEnd, serialEnds, storedState } from "./race-model.js";
import type { StatementMutation } from "./racing-session.js";
import { violations } from "./violations.js";

/** A clause of the store that a race depends on, and how it is known: without it, some order breaks something. */
export interface RaceGuard<C> {
  readonly clause: string;
  /** the statements without it */
  readonly without?: readonly StatementMutation[];
  /** or the race without it, where the clause is a step of its own */
  readonly instead?: Partial<Race<C>>;
  /** what is seen to break */
  readonly because: RegExp;
}

type DefineRace = <C>(sentence: string, race: Race<C>, guards: readonly RaceGuard<C>[], on?: readonly ServerName[]) => void;

/** ms; a race of many orders, each on a schema made anew, takes half a minute on a busy machine */
const TEST_TIMEOUT_MS = 120_000;

/** Where it is not said otherwise. Without its clauses a race is run here only. */
const MAIN_SERVER: ServerName = "embedded18";
const OTHER_SERVER: ServerName = "debian15";
export const ALL_SERVERS: readonly ServerName[] = [MAIN_SERVER, OTHER_SERVER];

let currentServer: ServerName = MAIN_SERVER;
/** From here on, races are run again away from home, those that are for everywhere. */
export function raceOnOtherServer(): void {
  currentServer = OTHER_SERVER;
}

/** Races as tests: every order of each, and at home also without each clause that guards it. */
export function races(define: (race: DefineRace) => void): void {
  const server = currentServer;
  const tests: ((runner: () => RaceRunner) => void)[] = [];
  define((sentence, race, guards, on = [MAIN_SERVER]) => {
    if (!on.includes(server)) return;
    tests.push((runner) =>
      describe(sentence, () => {
        it("in every order of their pieces", () => runner().holdsInEveryOrder(race), TEST_TIMEOUT_MS);
        if (server !== MAIN_SERVER) return;
        for (const { clause, without = [], instead = {}, because } of guards) {
          it(`and not without: ${clause}`, () => runner().failsWithout({ ...race, ...instead }, without, because), TEST_TIMEOUT_MS);
        }
      }),
    );
  });
  if (tests.length > 0)
    describeOn(server, () =>
      withRunner(server, (runner) => {
        for (const test of tests) test(runner);
      }),
    );
}

function withRunner(server: ServerName, tests: (runner: () => RaceRunner) => void): void {
  let runner: RaceRunner | undefined;
  beforeAll(async () => {
    runner = await RaceRunner.open(server);
  });
  afterAll(() => runner?.close());
  tests(() => runner as RaceRunner);
}

interface RaceFailure {
  readonly story: readonly string[];
  readonly message: string;
}

export class RaceRunner {
  private constructor(
    readonly interleaver: Interleaver,
    readonly stores: ReturnType<typeof emptiedStores>,
    readonly drop: () => Promise<void>,
  ) {}

  static async open(server: ServerName): Promise<RaceRunner> {
    const database = await testClockDatabase(server, { ...plannedOnce(server), ...PLANNED_AS_WRITTEN });
    const stores = emptiedStores(
      pgDriver({ config: { ...database.config, max: 2, options: "-c synchronous_commit=off" }, prepare: "auto", statementTimeout: 20_000 }),
    );
    return new RaceRunner(await Interleaver.open(database), stores, database.drop);
  }

  async close(): Promise<void> {
    await this.interleaver.close();
    await this.stores.close();
    await this.drop();
  }

  /** Every order of the pieces ends as some order of the whole verbs would, and breaks nothing on the way. */
  async holdsInEveryOrder<C>(race: Race<C>): Promise<void> {
    const { failures, runs, overlaps } = await this.#explore(race, []);
    expect(failures.map(describeFailure).join("\n"), "an order that broke something").toBe("");
    this.#expectLabels(race.racers.flatMap(({ splits = [] }) => splits.map(({ at }) => `stop: ${at}`)));
    expect(overlaps, "orders in which the verbs overlap").toBeGreaterThan(0);
    expect(runs).toBeGreaterThan(race.racers.length);
  }

  /** The same race, with the clause taken out: some order breaks something, for the reason expected. */
  async failsWithout<C>(race: Race<C>, mutations: readonly StatementMutation[], because: RegExp): Promise<void> {
    const { failures } = await this.#explore(race, mutations);
    this.#expectLabels(mutations.map(({ guard }) => `guard: ${guard}`));
    expect(failures.map(describeFailure).join("\n"), "the clause was taken out, and something broke").toMatch(because);
  }

  /** One order of the pieces, chosen as they come, ends as some order of the whole verbs would. Answers whether they overlapped. */
  async holdsInOrder<C>(race: Race<C>, choose: (runnable: number) => number, mutations: readonly StatementMutation[] = []): Promise<boolean> {
    const { result, problems } = await this.#once(race, mutations, choose, await serialEnds(race));
    if (problems.length > 0)
      throw new Error(`an order that broke something: ${describeFailure({ story: result.story, message: problems.join("; ") })}`);
    return !result.serial;
  }

  async #explore<C>(
    race: Race<C>,
    mutations: readonly StatementMutation[],
  ): Promise<{ failures: readonly RaceFailure[]; runs: number; overlaps: number }> {
    const expected = await serialEnds(race);
    const { found, unusable } = this.interleaver.labels;
    found.clear();
    unusable.clear();
    const failures: RaceFailure[] = [];
    let overlaps = 0;
    const runs = await everyOrder(race.limit ?? 150, async (choose) => {
      const { result, problems } = await this.#once(race, mutations, choose, expected);
      if (!result.serial) overlaps++;
      if (problems.length > 0) failures.push({ story: result.story, message: problems.join("; ") });
      return failures.length > 0 ? "stop" : "go on";
    });
    expect([...unusable], "statements that lost a parameter").toEqual([]);
    return { failures, runs, overlaps };
  }

  /** A label that no statement has any more must be looked for, not passed over. */
  #expectLabels(labels: readonly string[]): void {
    const { found } = this.interleaver.labels;
    expect(
      labels.filter((label) => !found.has(label)),
      "labels that no statement of the race has",
    ).toEqual([]);
  }

  async #once<C>(race: Race<C>, mutations: readonly StatementMutation[], choose: (runnable: number) => number, expected: readonly SerialEnd[]) {
    const clock = new TestClock();
    const world = new World(await this.stores.make(clock.now), clock);
    const context = await race.setup(world);
    const result = await this.interleaver.run(
      race.racers.map((racer, index) => ({
        ...racer,
        mutations,
        run: (driver: Driver) => racer.run(new RaceFixture(storeOn(driver, clock), clock, index + 1), context),
      })),
      choose,
      race.begin,
    );
    const problems = [...(await violations(this.interleaver.control, "now"))];
    if (result.circle && race.deadlocks === undefined) problems.push("they waited for each other in a circle");
    if (problems.length === 0) problems.push(...(await this.#judge(race, world, context, result, expected)));
    return { result, problems };
  }

  async #judge<C>(race: Race<C>, world: World, context: C, result: InterleavedRun, expected: readonly SerialEnd[]): Promise<readonly string[]> {
    const { answers } = result;
    const problems: string[] = [];
    const same = expected.find(({ order }) => result.serial && String(order) === String(result.order));
    const exactly = same === undefined ? undefined : (await storedState(world.store)).exact;
    const later = await (race.afterwards ?? duties)(world, context);
    problems.push(...(await violations(this.interleaver.control, "quiet")));
    try {
      await race.holds?.(world, context, answers);
    } catch (error) {
      problems.push((error as Error).message);
    }
    if (race.notSerial !== undefined) return problems;
    const roughly = (await storedState(world.store)).rough;
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

function describeFailure({ story, message }: RaceFailure): string {
  return `${story.join(", ")}: ${message}`;
}

export function storeOn(driver: Driver, clock: TestClock): Store {
  const db = openDb(driver, { location: "race", now: clock.now });
  const engine = { engine: "postgres", place: "race", version: "", durability: "process", schema: 1 } as const;
  return postgresStore({ db, engine, self: "race" });
}

import fc from "fast-check";
import pg from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { dutiesOf } from "../../packages/pawl/conformance/duties.js";
import { everyJob } from "../../packages/pawl/conformance/invariants.js";
import {
  ANA,
  ANA_REBORN,
  BOB,
  DAY,
  FAILED,
  type HeldJob,
  HOUR,
  KILLED,
  LEASE,
  lane,
  MINUTE,
  RELEASED,
  SUCCEEDED,
  TestClock,
  World,
} from "../../packages/pawl/conformance/world.js";
import type { Driver } from "../../packages/pawl/src/store/postgres/drivers/driver.js";
import { pgDriver } from "../../packages/pawl/src/store/postgres/drivers/pg.js";
import { again } from "../support/again.js";
import { storeOn } from "../support/races/race.js";
import { RaceFixture } from "../support/races/race-model.js";
import { violations } from "../support/races/violations.js";
import { emptiedStores } from "../support/servers/emptied-stores.js";
import { type Database, describeOn, testClockDatabase } from "../support/servers/servers.js";

/** More runs, or others: RACE_RUNS=1000, RACE_SEED=… (the order of what happens at once is the servers' own). */
const { CI, RACE_RUNS = again() ? "30" : "10", RACE_SEED = CI ? "20261115" : String(Date.now() % 2 ** 31) } = process.env;

const VERBS = [
  "add",
  "delayed",
  "child",
  "keyed",
  "claim",
  "claim",
  "suspect",
  "succeed",
  "fail",
  "kill",
  "release",
  "renew",
  "reap",
  "promote",
  "cancel",
  "pause",
  "resume",
  "promote",
  "redrive",
  "delete",
  "expire",
  "unblock",
  "carryOut",
  "fold",
  "prune",
  "pass",
] as const;
interface Step {
  readonly do: (typeof VERBS)[number];
  readonly pick: number;
}

const steps = fc.array(fc.record<Step>({ do: fc.constantFrom(...VERBS), pick: fc.nat({ max: 20 }) }), { minLength: 4, maxLength: 12 });
const WORKERS = [ANA, BOB, ANA_REBORN] as const;
const TASKS = ["work", "child"];
const LANES = TASKS.map((task) => lane({ task }));

/** What the sessions of a run share: every session may meet every job and every lease. */
interface Shared {
  readonly jobs: string[];
  readonly held: HeldJob[];
}

async function act(w: World, shared: Shared, { do: verb, pick }: Step): Promise<void> {
  const id = shared.jobs[pick % shared.jobs.length] as HeldJob["job"]["id"];
  const held = shared.held[pick % Math.max(1, shared.held.length)];
  const worker = WORKERS[pick % WORKERS.length] as (typeof WORKERS)[number];
  const { jobs, leases } = w.store;
  const settle = async (outcome: Parameters<World["settle"]>[1]) => held && void (await w.settle(held, outcome, [0, MINUTE]));
  const enqueue = async (spec: Parameters<World["newJob"]>[0]) => {
    for (const answer of await w.enqueue(spec ?? {})) if (answer.kind === "created") shared.jobs.push(answer.id);
  };
  switch (verb) {
    case "add":
      return enqueue({});
    case "delayed":
      return enqueue({ delay: MINUTE, options: { finishWithin: HOUR, maxCrashes: 2 } });
    case "child":
      return enqueue({ task: "child", after: [id], onDependencyDeath: (["die", "run", "wait"] as const)[pick % 3] ?? "die" });
    case "keyed":
      return enqueue({
        unique: { key: "k", hold: "unfinished", onConflict: pick % 2 === 0 ? "replace" : "existing" },
        idempotencyKey: `r${pick % 3}`,
      });
    case "claim":
      return void shared.held.push(...(await w.holdAll({ worker, lanes: LANES, limit: 1 + (pick % 3) })));
    case "suspect": {
      const claimed = await w.claimSuspect({ worker, tasks: TASKS });
      return void shared.held.push(...(claimed?.jobs.map((job) => ({ worker, claimed, job })) ?? []));
    }
    case "succeed":
      return settle(SUCCEEDED);
    case "fail":
      return settle(FAILED);
    case "kill":
      return settle(KILLED);
    case "release":
      return settle(RELEASED);
    case "renew":
      return held && void (await leases.renew(held.worker, [held.claimed.lease], LEASE));
    case "reap":
      return void (await dutiesOf(w.store).reap(1 + (pick % 3)));
    case "cancel":
      return void (await jobs.cancel("everyone", id, "no need"));
    case "redrive":
      return void (await jobs.redrive("everyone", id, {}));
    case "pause":
    case "resume":
    case "promote":
    case "delete":
      return void (await jobs[verb]("everyone", id));
    case "prune":
      return void (await dutiesOf(w.store).prune({ finished: 300 * DAY, dead: 300 * DAY, limit: 2 }));
    case "pass":
      return w.clock.advance(pick % 2 === 0 ? LEASE : MINUTE);
    default:
      return void (await dutiesOf(w.store)[verb](1 + (pick % 4)));
  }
}

/** Whatever happened, everything can still be brought to its end, except what waits for what will never succeed. */
async function drain(w: World): Promise<void> {
  for (let round = 0; round < 4; round++) {
    w.clock.advance(DAY);
    await dutiesOf(w.store).unblock(1_000);
    await dutiesOf(w.store).carryOut(1_000);
    for (const job of await everyJob(w.store)) if (job.state === "parked") await w.store.jobs.resume("everyone", job.id);
    await dutiesOf(w.store).reap(1_000);
    await dutiesOf(w.store).promote(1_000);
    await w.store.lanes.live(undefined, TASKS);
    for (let held = await w.holdAll({ lanes: LANES }); held.length > 0; held = await w.holdAll({ lanes: LANES })) await w.settleAll(held, SUCCEEDED);
    for (let one = await w.claimSuspect({ tasks: TASKS }); one !== undefined; one = await w.claimSuspect({ tasks: TASKS })) {
      for (const job of one.jobs) await w.settle({ worker: ANA, claimed: one, job }, SUCCEEDED);
    }
  }
}

describeOn("embedded18", () => {
  let database: Database;
  let driver: Driver;
  let stores: ReturnType<typeof emptiedStores>;
  let control: pg.Client;
  beforeAll(async () => {
    database = await testClockDatabase("embedded18");
    driver = pgDriver({
      config: { ...database.config, max: 4, options: "-c deadlock_timeout=20ms -c synchronous_commit=off" },
      prepare: "auto",
      statementTimeout: 20_000,
    });
    stores = emptiedStores(driver);
    control = new pg.Client(database.directConfig);
    await control.connect();
  });
  afterAll(async () => {
    await control?.end();
    await stores?.close();
    await database?.drop();
  });

  it(`random verbs at once break nothing, and strand nothing (seed ${RACE_SEED})`, { timeout: 600_000 }, async () => {
    const property = fc.asyncProperty(fc.array(steps, { minLength: 4, maxLength: 4 }), async (sessions) => {
      const clock = new TestClock();
      const world = new World(await stores.make(clock.now), clock);
      const shared: Shared = { jobs: [], held: [] };
      for (const spec of [{}, {}, { task: "child" }, { delay: MINUTE }]) shared.jobs.push(await world.add(spec));
      await Promise.all(
        sessions.map(async (own, index) => {
          const w = new RaceFixture(storeOn(driver, clock), clock, index + 1);
          for (const step of own) await act(w, shared, step);
        }),
      );
      expect(await violations(control, "now"), "between the verbs").toEqual([]);
      await dutiesOf(world.store).unblock(1_000);
      await dutiesOf(world.store).carryOut(1_000);
      expect(await violations(control, "quiet"), "after the duties").toEqual([]);
      await drain(world);
      expect(await violations(control, "quiet"), "at the end").toEqual([]);
      const left = (await everyJob(world.store)).filter(({ state }) => !["succeeded", "dead", "cancelled", "blocked"].includes(state));
      expect(left, "jobs that cannot be finished").toEqual([]);
    });
    await fc.assert(property, { numRuns: Number(RACE_RUNS), seed: Number(RACE_SEED), endOnFailure: true });
  });
});

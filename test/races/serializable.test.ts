import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { dutiesOf } from "../../packages/pawl/conformance/duties.js";
import { BOB, FAILED, type HeldJob, KILLED, LEASE, MINUTE, RELEASED, SUCCEEDED, type World } from "../../packages/pawl/conformance/world.js";
import { again } from "../support/again.js";
import { RaceRunner } from "../support/races/race.js";
import type { Race, RacingVerb } from "../support/races/race-model.js";
import type { StatementMutation } from "../support/races/racing-session.js";
import { describeOn } from "../support/servers/servers.js";
import { CANCEL, CLAIM_SNAPSHOT, PROMOTE_SNAPSHOT, REAP, SETTLE_SNAPSHOT, takeWithoutCheck } from "./statement-splits.js";

/** More runs, or others: SERIAL_RUNS=1000, SERIAL_SEED=… */
const { CI, SERIAL_RUNS = again() ? "60" : "20", SERIAL_SEED = CI ? "20261115" : String(Date.now() % 2 ** 31) } = process.env;

type Id = HeldJob["job"]["id"];

/** A job in every state that a verb can find, two of them under a lease that has ended and that nobody has reaped. */
interface JobsByState {
  readonly ready: Id;
  readonly running: readonly [HeldJob, HeldJob];
  readonly due: Id;
  readonly blocked: Id;
  readonly parked: Id;
  readonly dead: Id;
}

async function storeJobs(w: World): Promise<JobsByState> {
  const dead = await w.add();
  await w.run(dead, KILLED);
  const parent = await w.add();
  await w.add();
  const running = (await w.holdAll()) as unknown as readonly [HeldJob, HeldJob];
  const blocked = await w.add({ after: [parent], onDependencyDeath: "run" });
  const due = await w.add({ delay: LEASE });
  const parked = await w.add();
  await w.store.jobs.pause("everyone", parked);
  const ready = await w.add();
  w.clock.advance(LEASE);
  return { ready, running, due, blocked, parked, dead };
}

type Verb = RacingVerb<JobsByState>;
const settles = (which: 0 | 1, outcome: Parameters<World["settle"]>[1]): Verb => ({
  run: (w, { running }) => w.settle(running[which], outcome, [0, MINUTE]),
  stops: "everywhere",
  splits: [SETTLE_SNAPSHOT],
});
const onJob = (verb: (w: World, id: Id) => Promise<unknown>, of: (at: JobsByState) => Id): Verb => ({
  run: (w, at) => verb(w, of(at)),
  stops: "everywhere",
  splits: CANCEL.splits ?? [],
});
const cancel = (w: World, id: Id) => w.store.jobs.cancel("everyone", id, "no need");

/** What passed each other, and what was locked when somebody looked for it. */
async function afterwards({ store }: World): Promise<void> {
  await dutiesOf(store).reap(10);
  await dutiesOf(store).unblock(1_000);
  await dutiesOf(store).carryOut(1_000);
}

const VERBS: Readonly<Record<string, Verb>> = {
  claim: { run: (w) => w.claimIds({ worker: BOB, limit: 2 }), stops: "everywhere", splits: [CLAIM_SNAPSHOT] },
  // What it finds locked it leaves to the next one: how much it took is a matter of who was there, and what is left is reaped after all.
  reap: {
    run: (w) =>
      dutiesOf(w.store)
        .reap(10)
        .then(() => undefined),
    stops: "everywhere",
    splits: REAP.splits ?? [],
  },
  renew: {
    run: async (w, { running: [{ worker, claimed }] }) => (await w.store.leases.renew(worker, [claimed.lease], LEASE)).held.length,
    stops: "everywhere",
  },
  promote: { run: async (w) => (await dutiesOf(w.store).promote(10)).count, stops: "everywhere", splits: [PROMOTE_SNAPSHOT] },
  "settle the parent as succeeded": settles(0, SUCCEEDED),
  "settle the parent as dead": settles(0, KILLED),
  "settle the parent to be retried": settles(0, FAILED),
  "settle the other as succeeded": settles(1, SUCCEEDED),
  "give the other back": settles(1, RELEASED),
  "cancel the ready one": onJob(cancel, ({ ready }) => ready),
  "cancel the one that is due": onJob(cancel, ({ due }) => due),
  "cancel the one that runs": onJob(cancel, ({ running: [{ job }] }) => job.id),
  "cancel the blocked one": onJob(cancel, ({ blocked }) => blocked),
  "pause the ready one": onJob(
    (w, id) => w.store.jobs.pause("everyone", id),
    ({ ready }) => ready,
  ),
  "resume the parked one": onJob(
    (w, id) => w.store.jobs.resume("everyone", id),
    ({ parked }) => parked,
  ),
  "retry the one that is due": onJob(
    (w, id) => w.store.jobs.promote("everyone", id),
    ({ due }) => due,
  ),
  "redrive the dead one": onJob(
    (w, id) => w.store.jobs.redrive("everyone", id, {}),
    ({ dead }) => dead,
  ),
  "delete the dead one": onJob(
    (w, id) => w.store.jobs.delete("everyone", id),
    ({ dead }) => dead,
  ),
};

describeOn("embedded18", () => {
  describe("random verbs at once, cut at every statement", () => {
    let runner: RaceRunner | undefined;
    beforeAll(async () => {
      runner = await RaceRunner.open("embedded18");
    });
    afterAll(() => runner?.close());

    /** Three of these verbs, in an order of their pieces that chance says. */
    function property(names: readonly string[], overlapped: () => void, without: readonly StatementMutation[] = []) {
      const three = fc.array(fc.constantFrom(...names), { minLength: 3, maxLength: 3 });
      return fc.asyncProperty(three, fc.array(fc.nat(), { minLength: 30, maxLength: 30 }), async (verbs, picks) => {
        const race: Race<JobsByState> = { setup: storeJobs, afterwards, racers: verbs.map((name) => VERBS[name] as Verb) };
        let at = 0;
        if (await (runner as RaceRunner).holdsInOrder(race, (runnable) => (picks[at++ % picks.length] ?? 0) % runnable, without)) overlapped();
      });
    }

    it(`end as some order of the whole verbs does (seed ${SERIAL_SEED})`, { timeout: 600_000 }, async () => {
      let overlaps = 0;
      const numRuns = Number(SERIAL_RUNS);
      await fc.assert(
        property(Object.keys(VERBS), () => void overlaps++),
        { seed: Number(SERIAL_SEED), numRuns },
      );
      expect(overlaps, "runs in which they overlapped").toBeGreaterThan(numRuns / 3);
    });

    it("and not without: take answers with what it deleted, not with what it saw", { timeout: 600_000 }, async () => {
      const found = await fc.check(
        property(["claim", "cancel the ready one"], () => {}, [takeWithoutCheck("ready")]),
        { seed: 20261115, numRuns: 100, endOnFailure: true },
      );
      expect(String(found.errorInstance)).toMatch(/is in history and lease/);
    });
  });
});

import { expect } from "vitest";
import type { JobId } from "../../src/core/jobs/id.js";
import type { JobLimit } from "../../src/core/limits/limit-rule.js";
import { dutiesOf } from "../duties.js";
import { addMany, states, under } from "../limits/limit-world.js";
import type { Test } from "../suite.js";
import { ANA, LEASE, lane, SECOND, type Spec, SUCCEEDED, type World } from "../world.js";

const ONE: Spec = { options: under({ concurrency: 1 }) };
const TWO: Spec = { options: under({ concurrency: 2 }) };

/** So many claims of one job each. */
async function oneByOne(w: World, count: number): Promise<readonly (JobId | undefined)[]> {
  const ids: (JobId | undefined)[] = [];
  for (let i = 0; i < count; i++) ids.push((await w.claimIds({ limit: 1 }))[0]);
  return ids;
}

/** Where jobs go that are let in, and who is claimed first. */
export function admittedSectionTests(test: Test): void {
  test("a job that waited at a limit key is put into the admitted section of its lane", async (w) => {
    const [first, waits] = (await addMany(w, 2, ONE)) as [JobId, JobId];
    const plain = await addMany(w, 3);
    await w.run(first);
    expect(await w.claimIds()).toEqual([waits, ...plain]);
  });

  test("one that finds its limit key open goes to the back, as all that become ready", async (w) => {
    const [first] = await addMany(w, 1, TWO);
    const [plain] = await addMany(w, 1);
    const [second] = await addMany(w, 1, TWO);
    expect(await w.claimIds()).toEqual([first, plain, second]);
  });

  test("one that comes when nobody is before its limit key any more has not waited", async (w) => {
    const [first] = await addMany(w, 1, ONE);
    await w.run(first as JobId);
    const [plain] = await addMany(w, 1);
    const [next] = await addMany(w, 1, ONE);
    expect(await w.claimIds()).toEqual([plain, next]);
  });

  test("those that waited are claimed in the order they were let in", async (w) => {
    const ids = await addMany(w, 4, TWO);
    await addMany(w, 1);
    const held = await w.holdAll({ limit: 2 });
    await w.settleAll(held, SUCCEEDED);
    expect(await w.claimIds({ limit: 2 })).toEqual(ids.slice(2));
  });

  test("claims of a lane take in turns from its admitted section and from the rest, so that neither keeps the other waiting", async (w) => {
    const ids = await addMany(w, 6, { options: under({ concurrency: 3 }) });
    const held = await w.holdAll({ limit: 3 });
    const plain = await addMany(w, 3);
    await w.settleAll(held, SUCCEEDED);
    expect(await oneByOne(w, 7)).toEqual([ids[3], plain[0], ids[4], plain[1], ids[5], plain[2], undefined]);
  });

  test("of a lane whose admitted section was passed over a claim says that it may have more, and of one that gave all it had that it has none", async (w) => {
    await addMany(w, 4, TWO);
    await w.enqueue({ task: "b" }, { task: "b" }, { task: "b" });
    await w.settleAll(await w.holdAll({ limit: 2 }), SUCCEEDED);
    const claim = (quota: number) => {
      const quotas = [lane(), lane({ task: "b" })].map((of) => ({ lane: of, quota }));
      return w.store.leases.claim({ worker: ANA, quotas, duration: LEASE });
    };
    expect((await claim(1))?.jobs.map((job) => job.lane.task)).toEqual([lane().task, "b"]);
    const second = await claim(5);
    expect(second?.jobs.map((job) => job.lane.task)).toEqual(["b", "b"]);
    expect(second?.more).toContainEqual(lane());
    expect((await claim(5))?.jobs.map((job) => job.lane.task)).toEqual([lane().task]);
    expect(await claim(5)).toBeUndefined();
  });

  test("where the rest has none, the admitted section is asked at every turn", async (w) => {
    const ids = await addMany(w, 4, TWO);
    await w.settleAll(await w.holdAll(), SUCCEEDED);
    expect(await oneByOne(w, 3)).toEqual([ids[2], ids[3], undefined]);
  });

  test("the admitted section is within the quota of its lane", async (w) => {
    const ids = await addMany(w, 4, TWO);
    const [other] = await w.enqueue({ task: "b" });
    const plain = await addMany(w, 2);
    await w.settleAll(await w.holdAll({ limit: 2 }), SUCCEEDED);
    const claim = async (quota: number) => {
      const quotas = [lane(), lane({ task: "b" })].map((of) => ({ lane: of, quota }));
      return (await w.store.leases.claim({ worker: ANA, quotas, duration: LEASE }))?.jobs.map(({ id }) => id);
    };
    expect(await claim(1)).toEqual([ids[2], (other as { id: JobId }).id]);
    expect(await claim(1), "the rest's turn").toEqual([plain[0]]);
    expect(await claim(2)).toEqual([ids[3], plain[1]]);
    expect(await claim(2)).toBeUndefined();
  });

  test("a job in the admitted section can be cancelled, paused and resumed", async (w) => {
    const [first, second, third] = (await addMany(w, 3, ONE)) as [JobId, JobId, JobId];
    const [plain] = await addMany(w, 1);
    await w.run(first);
    await w.store.jobs.cancel("everyone", second, "no need");
    await w.store.jobs.pause("everyone", third);
    expect(await w.claimIds()).toEqual([plain]);
    await w.store.jobs.resume("everyone", third);
    expect(await w.claimIds()).toEqual([third]);
  });

  test("one that waited for a token comes before those that came meanwhile", async (w) => {
    const [first, waits] = (await addMany(w, 2, { options: under({ rate: { limit: 1, per: SECOND, burst: 1 } }) })) as [JobId, JobId];
    await w.run(first);
    const [plain] = await addMany(w, 1);
    w.clock.advance(SECOND);
    await dutiesOf(w.store).admit(10);
    expect(await w.claimIds()).toEqual([waits, plain]);
  });

  // Of the limit keys of a job one is looked at before the other, by name.
  for (const limit of ["account", "zone"]) {
    test(`one that waits for a token has waited, whoever is let in meanwhile that needs one and waited for its ${limit}`, async (w) => {
      const own: JobLimit = { limit, key: "a", rule: { concurrency: 1 } };
      const rated: JobLimit = { limit: "per key", key: "k", rule: { rate: { limit: 1, per: SECOND, burst: 3 } } };
      const other = { lanes: [lane({ task: "other" })] };
      const holder = await w.add({ task: "other", options: { limits: [own] } });
      const both = await w.add({ options: { limits: [own, rated] } });
      await w.add({ options: { limits: [rated] } });
      const dear = await w.add({ options: { limits: [{ ...rated, cost: 3 }] } });
      await w.run(holder, SUCCEEDED, undefined, other);
      expect(await states(w, [both, dear])).toEqual(["ready", "parked"]);
      await w.holdAll();
      const [between] = await addMany(w, 1);
      expect(await w.claimIds(), "the rest's turn").toEqual([between]);
      const [plain] = await addMany(w, 1);
      w.clock.advance(3 * SECOND);
      await dutiesOf(w.store).admit(10);
      expect(await w.claimIds()).toEqual([dear, plain]);
    });
  }

  test("a lane that has an admitted section and nothing else has work, and says how many are ahead", async (w) => {
    const ids = await addMany(w, 4, TWO);
    await w.settleAll(await w.holdAll(), SUCCEEDED);
    expect((await w.store.lanes.live(undefined, ["work"])).lanes).toEqual([lane()]);
    const [plain] = await addMany(w, 1);
    const ahead = async (id: JobId | undefined) => (await w.store.explain.look("everyone", id as JobId))?.ahead;
    expect([await ahead(ids[3]), await ahead(plain)]).toEqual([1, 2]);
  });
}

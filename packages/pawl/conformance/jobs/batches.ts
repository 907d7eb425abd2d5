import { expect } from "vitest";
import type { Enqueued } from "../../src/core/jobs/job.js";
import { DEFAULTS } from "../../src/core/values/defaults.js";
import type { BatchRequest } from "../../src/store/port/enqueue/batches.js";
import { dutiesOf } from "../duties.js";
import type { Test } from "../suite.js";
import { DAY, HOUR, NOBODY, type Spec, type World } from "../world.js";

const REQUEST: BatchRequest = { tenant: "acme", id: "r1", digest: "d1" };
/** Enough for rows of several jobs, on any store. */
const MANY = Array.from({ length: 600 }, (_, n): Spec => ({ input: String(n) }));

/** Every time with id suffixes of their own, as if the caller had forgotten the first. */
const store = (w: World, specs: readonly Spec[], request: Partial<BatchRequest> = {}) => {
  // Those of one lane share it, as a plan gives it to them.
  const jobs = specs.map((spec) => w.newJob(spec));
  const [first] = jobs;
  const plain = specs.every((spec) => Object.keys(spec).every((key) => key === "input"));
  return w.store.batches.enqueue({ ...REQUEST, ...request }, plain && first !== undefined ? jobs.map((job) => ({ ...job, lane: first.lane })) : jobs);
};
const stored = async (w: World, specs: readonly Spec[], request: Partial<BatchRequest> = {}): Promise<readonly Enqueued[]> => {
  const once = await store(w, specs, request);
  if (once.kind !== "stored") throw new Error(`expected it to be stored, got ${once.kind}`);
  return once.answers;
};
const count = async (w: World) => (await w.store.jobs.list("everyone", {}, { limit: 1_000 })).jobs.length;

export function batchTests(test: Test): void {
  for (const [what, specs] of [
    ["one job", [{}]],
    ["a few jobs", [{ input: "1" }, { task: "else" }]],
    ["many jobs of one lane", MANY],
    ["jobs that are due later", [{ delay: HOUR }, {}]],
  ] as const)
    test(`${what}: repeated, they are answered as they were stored, and nothing is stored again`, async (w) => {
      const answers = await stored(w, specs);
      expect(answers.every(({ kind }) => kind === "created")).toBe(true);
      expect(await count(w)).toBe(specs.length);
      expect(await store(w, specs)).toEqual({ kind: "repeated", answers });
      expect(await w.store.batches.get(REQUEST)).toEqual({ kind: "repeated", answers });
      expect(await count(w)).toBe(specs.length);
    });

  test("what became of each is remembered: created, there before, turned away, without its parent, with the idempotency key of another", async (w) => {
    const key = (onConflict: "reject" | "existing" | "replace", name: string) => ({ unique: { key: name, hold: "unfinished", onConflict } }) as const;
    const [held, old] = [await w.add(key("reject", "held")), await w.add(key("replace", "old"))];
    const other = await w.add({ idempotencyKey: "of one", input: "1" });
    const answers = await stored(w, [
      {},
      key("reject", "held"),
      key("existing", "held"),
      key("replace", "old"),
      { after: [NOBODY] },
      { idempotencyKey: "of one" },
    ]);
    expect(answers).toMatchObject([
      { kind: "created" },
      { kind: "rejected", holder: held },
      { kind: "existing", id: held },
      { kind: "created", replaced: old },
      { kind: "dependencyUnknown", parent: NOBODY },
      { kind: "idempotencyKeyReused", first: other },
    ]);
    expect(await store(w, [{}, {}, {}, {}, {}, {}])).toEqual({ kind: "repeated", answers });
  });

  test("a note is kept with it, and answered with it", async (w) => {
    const answers = await stored(w, [{}], { note: '{"0":"ü"}' });
    expect(await store(w, [{}], { note: "another" })).toEqual({ kind: "repeated", answers, note: '{"0":"ü"}' });
  });

  test("an idempotency key that was used for something else is told apart, and nothing is stored", async (w) => {
    await stored(w, [{}]);
    expect(await store(w, [{}], { digest: "d2" })).toEqual({ kind: "different" });
    expect(await store(w, MANY, { digest: "d2" })).toEqual({ kind: "different" });
    expect(await w.store.batches.get({ ...REQUEST, digest: "d2" })).toEqual({ kind: "different" });
    expect(await count(w)).toBe(1);
  });

  test("idempotency keys of other tenants, and those of single jobs, are others", async (w) => {
    await stored(w, [{}]);
    await stored(w, [{}], { tenant: "umbrella" });
    await stored(w, [{}], { tenant: "" });
    expect(await w.enqueue({ idempotencyKey: "r1" })).toMatchObject([{ kind: "created" }]);
    expect(await w.store.batches.get({ ...REQUEST, tenant: "nobody" })).toBeUndefined();
  });

  test("it is known for a day, then free, and forgotten", async (w) => {
    await stored(w, MANY);
    await stored(w, [{}], { id: "r2" });
    w.clock.advance(DEFAULTS.keep.idempotencyKey - 1);
    expect(await store(w, MANY)).toMatchObject({ kind: "repeated" });
    w.clock.advance(1);
    expect(await w.store.batches.get(REQUEST)).toBeUndefined();
    await stored(w, MANY, { digest: "d2" });
    await stored(w, [{}], { id: "r2", digest: "d2" });
    expect(await store(w, MANY)).toEqual({ kind: "different" });
    w.clock.advance(DEFAULTS.keep.idempotencyKey);
    expect((await dutiesOf(w.store).prune({ finished: 30 * DAY, dead: 90 * DAY, limit: 1_000 })).forgotten).toBe(2);
  });

  test("it is answered after its jobs are gone", async (w) => {
    const [answer] = (await stored(w, [{}])) as readonly [Extract<Enqueued, { kind: "created" }>];
    await w.store.jobs.cancel("everyone", answer.id, "");
    await w.store.jobs.delete("everyone", answer.id);
    expect(await store(w, [{}])).toEqual({ kind: "repeated", answers: [answer] });
  });
}

import { expect } from "vitest";
import type { UniqueRule } from "../../src/core/jobs/unique-key.js";
import type { Test } from "../suite.js";
import { FAILED, HOUR, KILLED, MINUTE, NOBODY, START, SUCCEEDED } from "../world.js";

type Hold = UniqueRule["hold"];
const reject = (hold: Hold = "unfinished"): UniqueRule => ({ key: "k", hold, onConflict: "reject" });
const existing = (hold: Hold = "unfinished"): UniqueRule => ({ key: "k", hold, onConflict: "existing" });
const replace = (hold: Hold = "unfinished"): UniqueRule => ({ key: "k", hold, onConflict: "replace" });

export function uniqueTests(test: Test): void {
  test("a key held while pending is taken in every pending state", async (w) => {
    const holder = await w.add({ unique: reject("unstarted"), delay: MINUTE });
    const refused = [{ kind: "rejected", holder }];
    expect(await w.enqueue({ unique: reject() }), "scheduled").toEqual(refused);
    await w.store.jobs.promote("everyone", holder);
    expect(await w.enqueue({ unique: reject() }), "ready").toEqual(refused);
    await w.store.jobs.pause("everyone", holder);
    expect(await w.enqueue({ unique: reject() }), "parked").toEqual(refused);
  });

  test("a key held while pending is taken while the holder is blocked", async (w) => {
    const parent = await w.add({ task: "other" });
    const holder = await w.add({ unique: reject("unstarted"), after: [parent] });
    expect(await w.enqueue({ unique: reject() })).toEqual([{ kind: "rejected", holder }]);
  });

  test("a key held while pending is free once the holder has started", async (w) => {
    await w.add({ unique: reject("unstarted") });
    await w.hold();
    expect(await w.enqueue({ unique: reject("unstarted") })).toMatchObject([{ kind: "created" }]);
  });

  test("a key held while pending stays free when the holder waits for a retry", async (w) => {
    const id = await w.add({ unique: reject("unstarted") });
    await w.run(id, FAILED);
    expect(await w.state(id)).toBe("scheduled");
    expect(await w.enqueue({ unique: reject("unstarted") })).toMatchObject([{ kind: "created" }]);
  });

  test("a key held while unfinished is taken while the holder runs and while it waits for a retry", async (w) => {
    const holder = await w.add({ unique: reject() });
    const held = await w.hold();
    expect(await w.enqueue({ unique: reject() })).toEqual([{ kind: "rejected", holder }]);
    await w.settle(held, FAILED);
    expect(await w.enqueue({ unique: reject() })).toEqual([{ kind: "rejected", holder }]);
  });

  for (const [end, outcome] of [
    ["succeeded", SUCCEEDED],
    ["dead", KILLED],
    ["cancelled", { kind: "cancelled" }],
  ] as const) {
    test(`a key held while unfinished is free once the holder is ${end}`, async (w) => {
      const id = await w.add({ unique: reject() });
      await w.run(id, outcome);
      expect(await w.state(id)).toBe(end);
      expect(await w.enqueue({ unique: reject() })).toMatchObject([{ kind: "created" }]);
    });
  }

  test("a key held for a period is taken until the period ends, finished or not", async (w) => {
    const holder = await w.add({ unique: reject(HOUR) });
    await w.run(holder);
    w.clock.advance(HOUR - 1);
    expect(await w.enqueue({ unique: reject(HOUR) })).toEqual([{ kind: "rejected", holder }]);
    w.clock.advance(1);
    expect(await w.enqueue({ unique: reject(HOUR) })).toMatchObject([{ kind: "created" }]);
  });

  test("a period counts from the enqueue, not from the due time", async (w) => {
    await w.add({ unique: reject(HOUR), delay: 3 * HOUR });
    w.clock.advance(HOUR);
    expect(await w.enqueue({ unique: reject() })).toMatchObject([{ kind: "created" }]);
  });

  test("asked for the existing job, the holder is the answer", async (w) => {
    const id = await w.add({ unique: existing() });
    expect(await w.enqueue({ unique: existing() })).toEqual([{ kind: "existing", id }]);
    await w.hold();
    expect(await w.enqueue({ unique: existing() })).toEqual([{ kind: "existing", id }]);
  });

  test("a replaced holder is cancelled with a mark in its history, and the newcomer takes its place", async (w) => {
    const old = await w.add({ unique: replace(), input: "1", delay: MINUTE });
    const [answer] = await w.enqueue({ unique: replace(), input: "2", delay: HOUR });
    expect(answer).toEqual({ kind: "created", id: answer?.kind === "created" && answer.id, replaced: old });
    expect(await w.get(old)).toMatchObject({ state: "cancelled", finishedAt: START, failure: { message: "replaced" } });
    const history = await w.store.jobs.history("everyone", old);
    expect(history).toMatchObject([{ job: old, outcome: "cancelled", startedAt: START, finishedAt: START, next: "cancelled" }]);
    expect(history[0]?.worker).toBeUndefined();
    expect(await w.enqueue({ unique: existing() })).toEqual([{ kind: "existing", id: answer?.kind === "created" && answer.id }]);
  });

  test("a ready, a parked and a blocked holder can be replaced", async (w) => {
    const parent = await w.add({ task: "other" });
    const ready = await w.add({ unique: replace() });
    const blocked = await w.add({ unique: { ...replace(), key: "b" }, after: [parent] });
    const parked = await w.add({ unique: { ...replace(), key: "p" } });
    await w.store.jobs.pause("everyone", parked);
    const answers = await w.enqueue({ unique: replace() }, { unique: { ...replace(), key: "b" } }, { unique: { ...replace(), key: "p" } });
    expect(answers.map((answer) => answer.kind === "created" && answer.replaced)).toEqual([ready, blocked, parked]);
    for (const id of [ready, blocked, parked]) expect(await w.state(id)).toBe("cancelled");
    await w.run(parent, SUCCEEDED, undefined, { lanes: [{ queue: "default", priority: 5, tenant: "acme", task: "other" }] });
    expect(await w.state(blocked)).toBe("cancelled");
  });

  test("a running holder is not replaced", async (w) => {
    const holder = await w.add({ unique: replace() });
    await w.hold();
    expect(await w.enqueue({ unique: replace() })).toEqual([{ kind: "rejected", holder }]);
    expect(await w.state(holder)).toBe("running");
  });

  test("a finished holder within its period is succeeded, not replaced", async (w) => {
    const id = await w.add({ unique: replace(HOUR) });
    await w.run(id);
    const [answer] = await w.enqueue({ unique: replace(HOUR) });
    expect(answer).toEqual({ kind: "created", id: answer?.kind === "created" && answer.id });
    expect(await w.state(id)).toBe("succeeded");
  });

  test("the jobs that depend on a replaced one die with it", async (w) => {
    const old = await w.add({ unique: replace() });
    const child = await w.add({ task: "other", after: [old] });
    await w.enqueue({ unique: replace() });
    expect(await w.get(child)).toMatchObject({ state: "dead", failure: { kind: "dependency" } });
  });

  test("the holder's rule says how long it holds, the newcomer's what happens", async (w) => {
    const holder = await w.add({ unique: existing("unstarted") });
    expect(await w.enqueue({ unique: reject(HOUR) })).toEqual([{ kind: "rejected", holder }]);
    await w.hold();
    expect(await w.enqueue({ unique: reject(HOUR) })).toMatchObject([{ kind: "created" }]);
  });

  test("tasks and tenants have their own keys", async (w) => {
    await w.add({ unique: reject() });
    const answers = await w.enqueue({ unique: reject(), task: "other" }, { unique: reject(), tenant: "umbrella" });
    expect(answers).toMatchObject([{ kind: "created" }, { kind: "created" }]);
  });

  test("queues and priorities of a task share its keys", async (w) => {
    const holder = await w.add({ unique: reject() });
    const refused = { kind: "rejected", holder };
    expect(await w.enqueue({ unique: reject(), queue: "other" }, { unique: reject(), priority: 1 })).toEqual([refused, refused]);
  });

  test("of two jobs of one batch with the same key the first one wins", async (w) => {
    const [first, second, third] = await w.enqueue({ unique: reject() }, { unique: reject() }, { unique: existing() });
    const id = first?.kind === "created" && first.id;
    expect([first, second, third]).toEqual([
      { kind: "created", id },
      { kind: "rejected", holder: id },
      { kind: "existing", id },
    ]);
  });

  test("the last of a batch that replaces is the one that stays", async (w) => {
    const answers = await w.enqueue({ unique: replace() }, { unique: replace() }, { unique: replace() });
    const ids = answers.map((answer) => (answer.kind === "created" ? answer.id : NOBODY));
    expect(answers).toEqual([
      { kind: "created", id: ids[0] },
      { kind: "created", id: ids[1], replaced: ids[0] },
      { kind: "created", id: ids[2], replaced: ids[1] },
    ]);
    expect(await w.claimIds()).toEqual([ids[2]]);
  });

  test("a deleted holder frees its key before its period ends", async (w) => {
    const id = await w.add({ unique: reject(HOUR) });
    await w.run(id);
    await w.store.jobs.delete("everyone", id);
    expect(await w.enqueue({ unique: reject(HOUR) })).toMatchObject([{ kind: "created" }]);
  });

  test("a redriven holder holds its key again", async (w) => {
    const holder = await w.add({ unique: reject() });
    await w.run(holder, KILLED);
    await w.store.jobs.redrive("everyone", holder, {});
    expect(await w.enqueue({ unique: reject() })).toEqual([{ kind: "rejected", holder }]);
  });

  test("an orphaned newcomer replaces nobody", async (w) => {
    const holder = await w.add({ unique: replace() });
    expect(await w.enqueue({ unique: replace(), after: [NOBODY] })).toEqual([{ kind: "dependencyUnknown", parent: NOBODY }]);
    expect(await w.state(holder)).toBe("ready");
  });

  test("a request that was answered with the holder of a key is answered the same again", async (w) => {
    const id = await w.add({ unique: existing() });
    expect(await w.enqueue({ unique: existing(), idempotencyKey: "r1" })).toEqual([{ kind: "existing", id }]);
    await w.run(id);
    expect(await w.enqueue({ unique: existing(), idempotencyKey: "r1" })).toEqual([{ kind: "existing", id }]);
  });
}

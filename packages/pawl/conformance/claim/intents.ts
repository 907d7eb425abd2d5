import { expect } from "vitest";
import { dutiesOf } from "../duties.js";
import type { Test } from "../suite.js";
import { ANA, BOB, FAILED, HOUR, KILLED, lane, MINUTE, RELEASED, SNOOZED, START, SUCCEEDED } from "../world.js";

const NOTED = { kind: "changed", from: "running", to: "running" };

export function intentTests(test: Test): void {
  test("a pending job is cancelled at once, with a mark that names no worker", async (w) => {
    const parent = await w.add({ task: "parent" });
    const ready = await w.add();
    const scheduled = await w.add({ delay: HOUR });
    const blocked = await w.add({ after: [parent] });
    const parked = await w.add();
    await w.store.jobs.pause("everyone", parked);
    for (const [id, from] of [
      [ready, "ready"],
      [scheduled, "scheduled"],
      [blocked, "blocked"],
      [parked, "parked"],
    ] as const) {
      expect(await w.store.jobs.cancel("everyone", id, "no need")).toEqual({ kind: "changed", from, to: "cancelled" });
      expect(await w.get(id)).toMatchObject({ state: "cancelled", attempts: 0, finishedAt: START, failure: { message: "no need" } });
      const history = await w.store.jobs.history("everyone", id);
      expect(history).toMatchObject([
        { outcome: "cancelled", next: "cancelled", startedAt: START, finishedAt: START, failure: { message: "no need" } },
      ]);
      expect(history[0]?.worker).toBeUndefined();
    }
    expect(await w.claim()).toBeUndefined();
    w.clock.advance(HOUR);
    expect(await dutiesOf(w.store).promote(10)).toEqual({ count: 0 });
  });

  test("a cancel of a running job is noted, and told to its worker", async (w) => {
    const id = await w.add();
    const { claimed } = await w.hold();
    expect(await w.store.jobs.cancel("everyone", id, "stop")).toEqual(NOTED);
    expect(await w.store.jobs.cancel("everyone", id, "stop"), "again").toEqual(NOTED);
    expect(await w.get(id)).toMatchObject({ state: "running", intent: "cancel" });
    expect(await w.store.leases.intents(ANA, [claimed.lease])).toEqual([{ job: id, intent: "cancel" }]);
  });

  test("a job that was settled is asked nothing of, under the lease that others still hold", async (w) => {
    const [given, kept] = [await w.add(), await w.add()];
    const [first] = await w.holdAll();
    if (first === undefined) throw new Error("nothing held");
    await w.settle(first, RELEASED);
    const later = await w.hold({ worker: BOB });
    expect(later.job.id).toBe(given);
    for (const id of [given, kept]) await w.store.jobs.cancel("everyone", id, "stop");
    expect(await w.store.leases.intents(ANA, [first.claimed.lease])).toEqual([{ job: kept, intent: "cancel" }]);
    expect(await w.store.leases.intents(BOB, [later.claimed.lease])).toEqual([{ job: given, intent: "cancel" }]);
    expect(await w.store.leases.intents(BOB, [first.claimed.lease]), "of another's lease").toEqual([]);
  });

  for (const [name, outcome] of [
    ["fails", FAILED],
    ["is snoozed", SNOOZED],
    ["is released", RELEASED],
  ] as const) {
    test(`a running job asked to cancel is cancelled where it ${name}`, async (w) => {
      const id = await w.add();
      const held = await w.hold();
      await w.store.jobs.cancel("everyone", id, "stop");
      await w.settle(held, outcome);
      const seen = await w.get(id);
      expect(seen.state).toBe("cancelled");
      expect(seen.intent).toBeUndefined();
      expect(seen.failure?.message, "why").toBe("stop");
      expect(await w.store.jobs.history("everyone", id)).toMatchObject([
        { outcome: outcome.kind, next: "cancelled", worker: "ana", failure: { message: "stop" } },
      ]);
    });

    test(`a running job asked to pause is parked where it ${name}`, async (w) => {
      const id = await w.add();
      const held = await w.hold();
      expect(await w.store.jobs.pause("everyone", id)).toEqual(NOTED);
      await w.settle(held, outcome);
      const seen = await w.get(id);
      expect(seen).toMatchObject({ state: "parked", parkedFor: "paused" });
      expect(seen.runAt, "it keeps the time it would have run").toBe(outcome === RELEASED ? undefined : START + MINUTE);
      expect(seen.intent).toBeUndefined();
    });
  }

  test("the reason for a cancel is in the history of a job whose worker stopped it, and the first one counts", async (w) => {
    const id = await w.add();
    const held = await w.hold();
    await w.store.jobs.cancel("everyone", id, "the customer left");
    await w.store.jobs.cancel("everyone", id, "and again");
    await w.settle(held, { kind: "cancelled" });
    expect(await w.get(id)).toMatchObject({ state: "cancelled", failure: { message: "the customer left" } });
    expect(await w.store.jobs.history("everyone", id)).toMatchObject([
      { outcome: "cancelled", next: "cancelled", worker: "ana", failure: { message: "the customer left" } },
    ]);
  });

  test("a cancelled job says what its last attempt failed with, after the reason for the cancel", async (w) => {
    const id = await w.add();
    const held = await w.hold();
    await w.store.jobs.cancel("everyone", id, "stop");
    await w.settle(held, FAILED);
    expect((await w.get(id)).failure).toMatchObject({ message: "stop", causes: [{ name: "TypeError", message: "no" }] });
  });

  test("the reason for a cancel outlives the worker that was to carry it out", async (w) => {
    const id = await w.add();
    await w.hold();
    await w.store.jobs.cancel("everyone", id, "stop");
    await w.vanish();
    expect(await w.store.jobs.history("everyone", id)).toMatchObject([{ outcome: "crashed", next: "cancelled", failure: { message: "stop" } }]);
  });

  for (const [end, outcome] of [
    ["succeeded", SUCCEEDED],
    ["dead", KILLED],
  ] as const) {
    test(`a job that ends as ${end} is ${end}, whatever was asked of it`, async (w) => {
      const [cancelled, paused] = [await w.add(), await w.add()];
      const held = await w.holdAll();
      await w.store.jobs.cancel("everyone", cancelled, "stop");
      await w.store.jobs.pause("everyone", paused);
      await w.settleAll(held, outcome);
      for (const id of [cancelled, paused]) {
        expect(await w.state(id)).toBe(end);
        expect((await w.get(id)).intent).toBeUndefined();
      }
    });
  }

  test("an intent does not outlive the job it was asked of", async (w) => {
    const id = await w.add();
    const held = await w.hold();
    await w.store.jobs.cancel("everyone", id, "stop");
    await w.settle(held, KILLED);
    await w.store.jobs.redrive("everyone", id, {});
    const again = await w.hold();
    expect(again.job.intent).toBeUndefined();
    await w.settle(again, RELEASED);
    expect(await w.state(id)).toBe("ready");
  });

  test("a paused job is not claimed, and lines up again when it is resumed", async (w) => {
    const [a, b] = [await w.add(), await w.add()];
    expect(await w.store.jobs.pause("everyone", a)).toEqual({ kind: "changed", from: "ready", to: "parked" });
    const seen = await w.get(a);
    expect(seen).toMatchObject({ state: "parked", parkedFor: "paused" });
    expect(seen.runAt).toBeUndefined();
    expect(await w.store.jobs.resume("everyone", a)).toEqual({ kind: "changed", from: "parked", to: "ready" });
    expect(await w.claimIds()).toEqual([b, a]);
  });

  test("a delayed job that is paused keeps its time, and is not promoted", async (w) => {
    const id = await w.add({ delay: HOUR });
    expect(await w.store.jobs.pause("everyone", id)).toEqual({ kind: "changed", from: "scheduled", to: "parked" });
    expect(await w.get(id)).toMatchObject({ state: "parked", runAt: START + HOUR });
    w.clock.advance(2 * HOUR);
    expect(await dutiesOf(w.store).promote(10)).toEqual({ count: 0 });
    expect(await w.store.jobs.resume("everyone", id)).toEqual({ kind: "changed", from: "parked", to: "ready" });
  });

  test("a delayed job that is resumed before its time is scheduled for it", async (w) => {
    const id = await w.add({ delay: HOUR });
    await w.store.jobs.pause("everyone", id);
    w.clock.advance(MINUTE);
    expect(await w.store.jobs.resume("everyone", id)).toEqual({ kind: "changed", from: "parked", to: "scheduled" });
    expect(await w.get(id)).toMatchObject({ state: "scheduled", runAt: START + HOUR });
  });

  test("a paused job keeps the attempts it has spent", async (w) => {
    const id = await w.add();
    await w.run(id, FAILED);
    await w.store.jobs.pause("everyone", id);
    expect(await w.get(id)).toMatchObject({ state: "parked", attempts: 1 });
    await w.store.jobs.resume("everyone", id);
    expect(await w.get(id)).toMatchObject({ state: "scheduled", attempts: 1 });
  });

  test("a pause of a running job can be taken back", async (w) => {
    const id = await w.add();
    const held = await w.hold();
    await w.store.jobs.pause("everyone", id);
    expect(await w.store.jobs.resume("everyone", id)).toEqual(NOTED);
    expect((await w.get(id)).intent).toBeUndefined();
    await w.settle(held, RELEASED);
    expect(await w.state(id)).toBe("ready");
  });

  test("resuming a running job that nobody paused changes nothing", async (w) => {
    const id = await w.add();
    await w.hold();
    expect(await w.store.jobs.resume("everyone", id)).toEqual(NOTED);
    expect((await w.get(id)).intent).toBeUndefined();
  });

  test("a cancel overrides a pause, and neither a pause nor a resume takes it back", async (w) => {
    const id = await w.add();
    await w.hold();
    await w.store.jobs.pause("everyone", id);
    await w.store.jobs.cancel("everyone", id, "stop");
    expect((await w.get(id)).intent).toBe("cancel");
    expect(await w.store.jobs.pause("everyone", id)).toEqual(NOTED);
    expect((await w.get(id)).intent).toBe("cancel");
    expect(await w.store.jobs.resume("everyone", id)).toEqual(NOTED);
    expect((await w.get(id)).intent).toBe("cancel");
  });

  test("a blocked job that is paused is parked when its parents are done", async (w) => {
    const parent = await w.add({ task: "parent" });
    const [now, later] = [await w.add({ after: [parent] }), await w.add({ after: [parent], delay: HOUR })];
    for (const id of [now, later]) {
      expect(await w.store.jobs.pause("everyone", id)).toEqual({ kind: "changed", from: "blocked", to: "blocked" });
      expect(await w.get(id)).toMatchObject({ state: "blocked", intent: "pause" });
    }
    await w.run(parent, SUCCEEDED, undefined, { lanes: [lane({ task: "parent" })] });
    expect(await w.state(now)).toBe("parked");
    expect((await w.get(now)).runAt).toBeUndefined();
    expect(await w.get(later)).toMatchObject({ state: "parked", runAt: START + HOUR });
    expect((await w.get(now)).intent).toBeUndefined();
    expect(await w.store.jobs.resume("everyone", now)).toEqual({ kind: "changed", from: "parked", to: "ready" });
  });

  test("a pause of a blocked job can be taken back", async (w) => {
    const parent = await w.add({ task: "parent" });
    const child = await w.add({ after: [parent] });
    await w.store.jobs.pause("everyone", child);
    expect(await w.store.jobs.resume("everyone", child)).toEqual({ kind: "changed", from: "blocked", to: "blocked" });
    await w.run(parent, SUCCEEDED, undefined, { lanes: [lane({ task: "parent" })] });
    expect(await w.state(child)).toBe("ready");
  });

  test("a blocked job that is paused still dies with its parent, and can be cancelled", async (w) => {
    const [a, b] = [await w.add({ task: "parent" }), await w.add({ task: "parent" })];
    const [dies, stops] = [await w.add({ after: [a] }), await w.add({ after: [b] })];
    await w.store.jobs.pause("everyone", dies);
    await w.store.jobs.pause("everyone", stops);
    await w.store.jobs.cancel("everyone", a, "no need");
    await w.store.jobs.cancel("everyone", stops, "no need");
    expect([await w.state(dies), await w.state(stops)]).toEqual(["dead", "cancelled"]);
    expect([(await w.get(dies)).intent, (await w.get(stops)).intent]).toEqual([undefined, undefined]);
  });

  test("carrying out leaves alone what a worker holds and what waits for its parents", async (w) => {
    const parent = await w.add({ task: "parent" });
    const [running, blocked] = [await w.add(), await w.add({ after: [parent] })];
    await w.hold();
    await w.store.jobs.cancel("everyone", running, "stop");
    await w.store.jobs.pause("everyone", blocked);
    await dutiesOf(w.store).carryOut(100);
    expect([await w.state(running), await w.state(blocked)]).toEqual(["running", "blocked"]);
    expect([(await w.get(running)).intent, (await w.get(blocked)).intent]).toEqual(["cancel", "pause"]);
  });
}

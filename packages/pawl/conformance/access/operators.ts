import { expect } from "vitest";
import type { JobId } from "../../src/core/jobs/id.js";
import type { StoredJobFilter } from "../../src/store/port/jobs/jobs.js";
import { dutiesOf } from "../duties.js";
import type { Test } from "../suite.js";
import { FAILED, HOUR, KILLED, lane, MINUTE, NOBODY, RELEASED, SECOND, START, type World } from "../world.js";

export function operatorTests(test: Test): void {
  test("a redriven job is ready with fresh counts and a mark in its history", async (w) => {
    const id = await w.add({ input: "1" });
    await w.run(id, FAILED, [0]);
    await w.run(id, KILLED);
    w.clock.advance(MINUTE);
    expect(await w.store.jobs.redrive("everyone", id, {})).toEqual({ kind: "changed", from: "dead", to: "ready" });
    const seen = await w.get(id);
    expect(seen).toMatchObject({ state: "ready", attempts: 0, crashes: 0, input: "1", createdAt: START, dueAt: START });
    expect([seen.failure, seen.finishedAt]).toEqual([undefined, undefined]);
    const history = await w.store.jobs.history("everyone", id);
    expect(history).toMatchObject([
      { outcome: "failed", next: "ready" },
      { outcome: "failed", next: "dead" },
      { outcome: "redriven", next: "ready", startedAt: START + MINUTE, finishedAt: START + MINUTE },
    ]);
    expect(history[2]?.worker).toBeUndefined();
    expect((await w.hold()).job).toMatchObject({ id, attempts: 0 });
  });

  test("a job redriven with a delay is scheduled", async (w) => {
    const id = await dead(w);
    expect(await w.store.jobs.redrive("everyone", id, { delay: HOUR })).toEqual({ kind: "changed", from: "dead", to: "scheduled" });
    expect(await w.get(id)).toMatchObject({ state: "scheduled", runAt: START + HOUR, dueAt: START });
  });

  test("a job redriven with another input runs with it, and the history keeps the old one", async (w) => {
    const id = await dead(w, { input: '"old"' });
    await w.store.jobs.redrive("everyone", id, { input: '"new"' });
    expect((await w.get(id)).input).toBe('"new"');
    expect((await w.store.jobs.history("everyone", id)).at(-1)).toMatchObject({ outcome: "redriven", replacedInput: '"old"' });
    expect((await w.hold()).job.input).toBe('"new"');
  });

  test("a redriven job has its retries again, and can die again", async (w) => {
    const id = await dead(w);
    await w.store.jobs.redrive("everyone", id, {});
    await w.run(id, FAILED, [0]);
    await w.run(id, KILLED);
    expect(await w.get(id)).toMatchObject({ state: "dead", attempts: 2 });
    expect(await w.store.jobs.redrive("everyone", id, {})).toMatchObject({ kind: "changed" });
    await w.run(id);
    expect(await w.get(id)).toMatchObject({ state: "succeeded", attempts: 1 });
    expect((await w.store.jobs.history("everyone", id)).map(({ outcome }) => outcome)).toEqual([
      "failed",
      "redriven",
      "failed",
      "failed",
      "redriven",
      "succeeded",
    ]);
  });

  test("a deleted job is gone with its history and its logs", async (w) => {
    const id = await w.add({ options: { tags: ["t"] } });
    const held = await w.hold();
    await w.store.records.log(held.worker, [{ lease: held.claimed.lease, job: id, at: START, level: "info", message: "hello" }]);
    await w.settle(held, KILLED);
    expect(await w.store.jobs.delete("everyone", id)).toEqual({ kind: "changed", from: "dead", to: "deleted" });
    expect(await w.store.jobs.get("everyone", id)).toBeUndefined();
    expect(await w.store.jobs.history("everyone", id)).toEqual([]);
    expect(await w.store.jobs.logs("everyone", id)).toEqual([]);
    expect(await w.store.jobs.list("everyone", { tag: "t" }, { limit: 10 })).toEqual({ jobs: [] });
    expect(await w.store.records.counts()).toEqual([]);
    expect(await w.store.jobs.delete("everyone", id)).toEqual({ kind: "unknown" });
  });

  test("settling a job that was deleted since is no fault", async (w) => {
    const id = await w.add();
    const held = await w.hold();
    await w.settle(held, KILLED);
    await w.store.jobs.delete("everyone", id);
    expect(await w.settle(held, KILLED)).toBe("stale");
  });

  test("a job waiting for a deleted one goes on waiting, if it was asked to", async (w) => {
    const parent = await w.add();
    const child = await w.add({ task: "child", after: [parent], onDependencyDeath: "wait" });
    await w.run(parent, KILLED);
    await w.store.jobs.delete("everyone", parent);
    expect(await w.get(child)).toMatchObject({ state: "blocked", waitsFor: [parent] });
    expect(await w.store.jobs.cancel("everyone", child, "no need")).toMatchObject({ kind: "changed" });
  });

  test("a list shows the newest due time first, page by page", async (w) => {
    const ids: JobId[] = [];
    for (let n = 0; n < 7; n++) ids.push(await w.add({ delay: n * SECOND }));
    const newest = [...ids].reverse();
    const first = await w.store.jobs.list("everyone", {}, { limit: 3 });
    expect(first.jobs.map(({ id }) => id)).toEqual(newest.slice(0, 3));
    expect(first.next).toBe(newest[2]);
    const second = await w.store.jobs.list("everyone", {}, { limit: 3, after: first.next ?? NOBODY });
    expect(second.jobs.map(({ id }) => id)).toEqual(newest.slice(3, 6));
    const third = await w.store.jobs.list("everyone", {}, { limit: 3, after: second.next ?? NOBODY });
    expect(third.jobs.map(({ id }) => id)).toEqual(newest.slice(6));
    expect(third.next).toBeUndefined();
  });

  test("a full last page has no next one", async (w) => {
    await w.add();
    await w.add();
    expect((await w.store.jobs.list("everyone", {}, { limit: 2 })).next).toBeUndefined();
    expect(await w.store.jobs.list("everyone", { queue: "none" }, { limit: 2 })).toEqual({ jobs: [] });
  });

  test("lists are filtered by state, queue, task, tag, unique key and failure, also together", async (w) => {
    const a = await w.add({ queue: "mail", task: "send", options: { tags: ["x", "y"] } });
    const b = await w.add({ queue: "mail", task: "read", options: { tags: ["y"] }, delay: 1 });
    const c = await w.add({ unique: { key: "k", hold: "unstarted", onConflict: "reject" }, delay: 2 });
    const d = await dead(w);
    const e = await w.add({ task: "expires", options: { startWithin: MINUTE } });
    w.clock.advance(MINUTE);
    await dutiesOf(w.store).expire(10);
    const found = async (filter: StoredJobFilter) => new Set((await w.store.jobs.list("everyone", filter, { limit: 10 })).jobs.map(({ id }) => id));
    expect(await found({ queue: "mail" })).toEqual(new Set([a, b]));
    expect(await found({ task: "send" })).toEqual(new Set([a]));
    expect(await found({ tag: "y" })).toEqual(new Set([a, b]));
    expect(await found({ tag: "x" })).toEqual(new Set([a]));
    expect(await found({ uniqueKey: "k" })).toEqual(new Set([c]));
    expect(await found({ state: "scheduled" })).toEqual(new Set([b, c]));
    expect(await found({ state: "dead" })).toEqual(new Set([d, e]));
    expect(await found({ failure: "expired" })).toEqual(new Set([e]));
    expect(await found({ failure: "error" })).toEqual(new Set([d]));
    expect(await found({ failure: "RangeError" })).toEqual(new Set([d]));
    expect(await found({ queue: "mail", tag: "y", state: "scheduled" })).toEqual(new Set([b]));
    expect(await found({ queue: "mail", tag: "z" })).toEqual(new Set());
  });

  test("a filter pages like the whole list", async (w) => {
    const ids: JobId[] = [];
    for (let n = 0; n < 6; n++) ids.push(await w.add({ queue: n % 2 === 0 ? "even" : "odd", delay: n }));
    const even = ids.filter((_, n) => n % 2 === 0).reverse();
    const first = await w.store.jobs.list("everyone", { queue: "even" }, { limit: 2 });
    expect(first.jobs.map(({ id }) => id)).toEqual(even.slice(0, 2));
    const second = await w.store.jobs.list("everyone", { queue: "even" }, { limit: 2, after: first.next ?? NOBODY });
    expect(second.jobs.map(({ id }) => id)).toEqual(even.slice(2));
    expect(second.next).toBeUndefined();
  });

  test("a failure that did not kill the job is no match for the failure filter", async (w) => {
    const id = await w.add();
    await w.run(id, FAILED);
    expect(await w.state(id)).toBe("scheduled");
    expect(await w.store.jobs.list("everyone", { failure: "TypeError" }, { limit: 10 })).toEqual({ jobs: [] });
  });

  test("a history tells the whole story, oldest first", async (w) => {
    const id = await w.add();
    await w.run(id, RELEASED);
    await w.hold();
    await w.vanish();
    await w.run(id, FAILED, [0]);
    await w.run(id, KILLED);
    await w.store.jobs.redrive("everyone", id, {});
    await w.store.jobs.cancel("everyone", id, "enough");
    const history = await w.store.jobs.history("everyone", id);
    expect(history.map(({ outcome, next, worker }) => [outcome, next, worker])).toEqual([
      ["released", "ready", "ana"],
      ["crashed", "ready", "ana"],
      ["failed", "ready", "ana"],
      ["failed", "dead", "ana"],
      ["redriven", "ready", undefined],
      ["cancelled", "cancelled", undefined],
    ]);
  });
}

async function dead(w: World, spec: { input?: string } = {}): Promise<JobId> {
  const id = await w.add(spec);
  await w.run(id, KILLED, undefined, { lanes: [lane()] });
  return id;
}

import { expect } from "vitest";
import type { ExportedJob } from "../../src/store/port/duties/duties.js";
import { dutiesOf } from "../duties.js";
import type { Test } from "../suite.js";
import { DAY, HOUR, KILLED, lane } from "../world.js";

const RULES = { finished: 30 * DAY, dead: 90 * DAY, limit: 1_000 };
/** Stores may let go of whole months at a time: beyond this nothing past its retention is left. */
const SLACK = 65 * DAY;

export function pruneTests(test: Test): void {
  test("finished jobs are kept for their time, dead ones for theirs", async (w) => {
    const done = await w.add();
    await w.run(done);
    const dead = await w.add();
    await w.run(dead, KILLED);
    const cancelled = await w.add();
    await w.store.jobs.cancel("everyone", cancelled, "no need");
    const states = () => Promise.all([done, cancelled, dead].map((id) => w.state(id)));

    w.clock.advance(29 * DAY);
    await dutiesOf(w.store).prune(RULES);
    expect(await states()).toEqual(["succeeded", "cancelled", "dead"]);
    w.clock.advance(DAY + SLACK - 10 * DAY);
    await dutiesOf(w.store).prune(RULES);
    expect(await w.state(dead)).toBe("dead");
    w.clock.advance(10 * DAY);
    await dutiesOf(w.store).prune(RULES);
    expect((await states()).slice(0, 2)).toEqual(["deleted", "deleted"]);
    w.clock.advance(90 * DAY);
    await dutiesOf(w.store).prune(RULES);
    expect(await states()).toEqual(["deleted", "deleted", "deleted"]);
  });

  test("unfinished jobs are kept, however old", async (w) => {
    const parent = await w.add({ task: "parent" });
    const ids = [parent, await w.add(), await w.add({ delay: HOUR }), await w.add({ after: [parent] })];
    const parked = await w.add();
    await w.store.jobs.pause("everyone", parked);
    w.clock.advance(400 * DAY);
    expect(await dutiesOf(w.store).prune(RULES)).toMatchObject({ dropped: 0 });
    expect(await Promise.all([...ids, parked].map((id) => w.state(id)))).toEqual(["ready", "ready", "scheduled", "blocked", "parked"]);
    await dutiesOf(w.store).promote(10);
    expect(await w.claimIds({ lanes: [lane(), lane({ task: "parent" })] })).toEqual([ids[1], ids[2], ids[0]]);
  });

  test("finished jobs are exported with their history before they go", async (w) => {
    const id = await w.add({ input: '"keep me"' });
    await w.run(id);
    const job = await w.get(id);
    const history = await w.store.jobs.history("everyone", id);
    const exported: ExportedJob[] = [];
    w.clock.advance(30 * DAY + SLACK);
    const exportFinished = async (batch: readonly ExportedJob[]) => {
      exported.push(...batch);
      expect(await w.state(id), "still there while it is exported").toBe("succeeded");
    };
    expect(await dutiesOf(w.store).prune({ ...RULES, exportFinished })).toMatchObject({ dropped: 1 });
    expect(exported).toEqual([{ job, history }]);
    expect(await w.state(id)).toBe("deleted");
  });

  test("exported jobs can be restored with their history, once", async (w) => {
    const [good, bad] = [await w.add({ input: '"keep me"', options: { tags: ["a"] } }), await w.add()];
    await w.run(good);
    await w.run(bad, KILLED);
    const before = [await w.get(good), await w.get(bad)];
    const history = await w.store.jobs.history("everyone", bad);
    const exported: ExportedJob[] = [];
    w.clock.advance(90 * DAY + SLACK);
    const exportFinished = async (batch: readonly ExportedJob[]) => {
      exported.push(...batch);
    };
    while (exported.length < 2) await dutiesOf(w.store).prune({ ...RULES, exportFinished });
    expect([await w.state(good), await w.state(bad)]).toEqual(["deleted", "deleted"]);
    const archive = JSON.parse(JSON.stringify(exported)) as ExportedJob[];
    expect(await w.store.jobs.restore(archive)).toBe(2);
    expect([await w.get(good), await w.get(bad)]).toEqual(before);
    expect(await w.store.jobs.history("everyone", bad)).toEqual(history);
    expect(await w.store.jobs.restore(archive)).toBe(0);
    expect(await w.store.jobs.redrive("everyone", bad, {})).toMatchObject({ kind: "changed", to: "ready" });
  });

  test("finished jobs stay while their export fails", async (w) => {
    const id = await w.add();
    await w.run(id);
    w.clock.advance(30 * DAY + SLACK);
    const exportFinished = () => Promise.reject(new Error("the archive is full"));
    await expect(dutiesOf(w.store).prune({ ...RULES, exportFinished })).rejects.toThrow("the archive is full");
    expect(await w.state(id)).toBe("succeeded");
  });

  test("a store that pruned goes on as before", async (w) => {
    const old = await w.add({ unique: { key: "k", hold: "unfinished", onConflict: "reject" }, idempotencyKey: "r1" });
    await w.run(old);
    w.clock.advance(30 * DAY + SLACK);
    await dutiesOf(w.store).prune(RULES);
    const id = await w.add({ unique: { key: "k", hold: "unfinished", onConflict: "reject" }, idempotencyKey: "r1" });
    expect(await w.enqueue({ idempotencyKey: "r1" })).toEqual([{ kind: "existing", id }]);
    await w.run(id);
  });

  test("pruning does not forget what still holds", async (w) => {
    const id = await w.add({ unique: { key: "k", hold: 2 * HOUR, onConflict: "reject" }, idempotencyKey: "r1" });
    const held = await w.hold({ duration: DAY });
    await w.store.records.record(held.worker, { lease: held.claimed.lease, job: id, name: "charge", value: "1", ttl: 2 * HOUR });
    w.clock.advance(HOUR);
    await dutiesOf(w.store).prune(RULES);
    expect(await w.enqueue({ idempotencyKey: "r1" })).toEqual([{ kind: "existing", id }]);
    expect(await w.enqueue({ unique: { key: "k", hold: HOUR, onConflict: "reject" } })).toEqual([{ kind: "rejected", holder: id }]);
    expect(await w.store.records.recall(id, "charge")).toBe("1");
  });
}

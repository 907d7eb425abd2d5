import { expect } from "vitest";
import type { Definition } from "../../src/core/schedules/schedule.js";
import { dutiesOf } from "../duties.js";
import type { Test } from "../suite.js";
import { DAY, HOUR, KILLED, lane, MINUTE, SECOND, START, SUCCEEDED } from "../world.js";
import { missedTickTests } from "./missed.js";
import { account, catchUp, definition, get, jobs, put, REF, tick } from "./world.js";

export function scheduleTests(test: Test): void {
  test("a schedule ticks at its time, once, and its job knows which tick it is for", async (w) => {
    await put(w, { job: { lane: lane({ task: "report", priority: 7 }), input: '{"a":1}', options: { tags: ["x"] } } });
    expect(await get(w)).toMatchObject({ ...REF, revision: 1, next: START + MINUTE, looksAt: START + MINUTE, createdAt: START, changedAt: START });
    expect((await w.store.duties.poll()).due.get("tick")).toBe(MINUTE);
    w.clock.advance(MINUTE - 1);
    expect(await tick(w)).toBe(0);
    w.clock.advance(1);
    expect(await dutiesOf(w.store).tick(10, () => w.idSuffix())).toEqual({ schedules: 1, jobs: 1, latest: 0, nextIn: MINUTE });
    expect(await tick(w)).toBe(0);
    const [job] = await jobs(w);
    expect(job).toMatchObject({ state: "ready", lane: lane({ task: "report", priority: 7 }), input: '{"a":1}', dueAt: START + MINUTE });
    expect(job?.options).toEqual({ tags: ["x"], tick: { schedule: "s", at: START + MINUTE, way: "fired" } });
    expect(await account(w)).toEqual(["1 fired"]);
    expect(await get(w)).toMatchObject({ next: START + 2 * MINUTE });
  });

  test("a one-shot schedule ticks once and is over", async (w) => {
    await put(w, { rule: { kind: "at", at: START + HOUR } });
    w.clock.advance(HOUR);
    expect(await catchUp(w)).toBe(1);
    const over = await get(w);
    expect([over.next, over.looksAt]).toEqual([undefined, undefined]);
    expect((await w.store.duties.poll()).due.get("tick")).toBeUndefined();
  });

  test("a schedule of the past has nothing to do", async (w) => {
    await put(w, { rule: { kind: "at", at: START - 1 } });
    expect((await get(w)).looksAt).toBeUndefined();
    expect(await catchUp(w)).toBe(0);
  });

  test("a cron schedule ticks in its zone, from its start to its end", async (w) => {
    const dst = { gap: "shift", overlap: "first" } as const;
    await put(w, {
      rule: { kind: "cron", expression: "0 9 * * *", zone: "Asia/Kathmandu", dst },
      start: START + DAY,
      end: START + 3 * DAY,
    });
    // 9:00 in Kathmandu is 3:15 UTC; the start is at noon.
    expect((await get(w)).next).toBe(START + DAY + 15 * HOUR + 15 * MINUTE);
    w.clock.advance(2 * DAY);
    await catchUp(w);
    w.clock.advance(2 * DAY);
    await catchUp(w);
    expect((await get(w)).next).toBeUndefined();
  });

  test("the same definition again changes nothing, not even its pause", async (w) => {
    await put(w);
    w.clock.advance(SECOND);
    await w.store.schedules.pause(REF);
    const before = await get(w);
    w.clock.advance(10 * MINUTE);
    const { answers } = await w.store.schedules.put([{ ...REF, definition: definition() }]);
    expect(answers).toEqual(["unchanged"]);
    expect(await get(w)).toEqual(before);
  });

  test("a changed definition begins anew from now, and makes up for nothing", async (w) => {
    await put(w);
    w.clock.advance(10 * MINUTE + SECOND);
    const { answers } = await w.store.schedules.put([{ ...REF, definition: definition({ rule: { kind: "every", every: HOUR } }) }]);
    expect(answers).toEqual(["changed"]);
    expect(await get(w)).toMatchObject({ revision: 2, next: START + HOUR, changedAt: START + 10 * MINUTE + SECOND, createdAt: START });
    expect(await catchUp(w)).toBe(0);
  });

  test("a schedule that the code no longer has is marked as undeclared, ticks on, and is taken up again", async (w) => {
    const [a, b] = ["a", "b"].map((name) => ({ ...REF, name, definition: definition() })) as [never, never];
    expect(await w.store.schedules.put([a, b], "shop")).toEqual({ answers: ["created", "created"], missing: [] });
    expect(await w.store.schedules.put([], "other")).toEqual({ answers: [], missing: [] });
    w.clock.advance(SECOND);
    expect(await w.store.schedules.put([b], "shop")).toEqual({ answers: ["unchanged"], missing: [{ ...REF, name: "a" }] });
    const missing = await w.store.schedules.list("everyone", { undeclared: true }, { limit: 10 });
    expect(missing.schedules.map(({ name, undeclaredSince, app }) => [name, undeclaredSince, app])).toEqual([["a", START + SECOND, "shop"]]);
    w.clock.advance(MINUTE);
    expect(await catchUp(w)).toBe(2);
    expect((await w.store.schedules.put([a, b], "shop")).answers).toEqual(["unchanged", "unchanged"]);
    expect((await w.store.schedules.list("everyone", { undeclared: true }, { limit: 10 })).schedules).toEqual([]);
  });

  test("what is changed at run time outlives deploys that say what they said, and is still the code's to drop", async (w) => {
    const [coded, changed, recoded] = [MINUTE, HOUR, 2 * HOUR].map((every) => definition({ rule: { kind: "every", every } })) as [
      Definition,
      Definition,
      Definition,
    ];
    const deploy = (...code: Definition[]) =>
      w.store.schedules.put(
        code.map((definition) => ({ ...REF, definition })),
        "shop",
      );
    const atRunTime = (definition: Definition) => w.store.schedules.put([{ ...REF, definition }]);
    await deploy(coded);
    expect((await atRunTime(changed)).answers).toEqual(["changed"]);
    const overridden = await get(w);
    expect(overridden).toMatchObject({ app: "shop", definition: { rule: changed.rule }, declared: { rule: coded.rule }, revision: 2 });
    w.clock.advance(10 * MINUTE);
    expect((await deploy(coded)).answers).toEqual(["unchanged"]);
    expect(await get(w)).toEqual(overridden);
    expect((await deploy()).missing).toEqual([REF]);
    expect((await deploy(coded)).answers).toEqual(["unchanged"]);
    expect(await get(w)).toEqual(overridden);
    expect((await deploy(recoded)).answers).toEqual(["changed"]);
    const { declared, ...again } = await get(w);
    expect(declared).toBeUndefined();
    expect(again).toMatchObject({ app: "shop", definition: { rule: recoded.rule }, revision: 3 });
    await deploy();
    expect((await atRunTime(recoded)).answers).toEqual(["unchanged"]);
    const { app, undeclaredSince } = await get(w);
    expect([app, undeclaredSince], "whoever puts what the code dropped has it").toEqual([undefined, undefined]);
    expect((await deploy()).missing).toEqual([]);
  });

  test("schedules are listed by tenant and name, a page at a time", async (w) => {
    const refs = [
      ["acme", "a"],
      ["acme", "b"],
      ["umbrella", "a"],
    ].map(([tenant = "", name = ""]) => ({ tenant, name }));
    await w.store.schedules.put(refs.map((ref) => ({ ...ref, definition: definition() })).reverse());
    const list = async (after?: (typeof refs)[number]) =>
      w.store.schedules.list("everyone", {}, { limit: 2, ...(after === undefined ? {} : { after }) });
    const first = await list();
    expect(first.schedules.map(({ tenant, name }) => ({ tenant, name }))).toEqual(refs.slice(0, 2));
    expect(first.next).toEqual(refs[1]);
    const second = await list(first.next as (typeof refs)[number]);
    expect(second.schedules.map(({ tenant }) => tenant)).toEqual(["umbrella"]);
    expect(second.next).toBeUndefined();
    const own = await w.store.schedules.list({ tenant: "umbrella" }, {}, { limit: 10 });
    expect(own.schedules).toHaveLength(1);
  });

  test("ticks missed by a paused schedule are missed ticks", async (w) => {
    await put(w);
    expect(await w.store.schedules.pause(REF)).toBe(true);
    w.clock.advance(10 * MINUTE);
    expect(await catchUp(w)).toBe(0);
    expect((await w.store.schedules.list("everyone", { paused: true }, { limit: 10 })).schedules).toHaveLength(1);
    expect(await w.store.schedules.resume(REF)).toBe(true);
    expect(await catchUp(w)).toBe(1);
    expect(await account(w)).toEqual(["1–9 (9) merged into 10", "10 fired for 9 more"]);
  });

  test("verbs on a schedule that is not there say so", async (w) => {
    expect(await w.store.schedules.get(REF)).toBeUndefined();
    expect(await w.store.schedules.pause(REF)).toBe(false);
    expect(await w.store.schedules.resume(REF)).toBe(false);
    expect(await w.store.schedules.delete(REF)).toBe(false);
    expect(await w.store.schedules.trigger(REF, { idSuffix: w.idSuffix() })).toBeUndefined();
    expect(await w.store.schedules.backfill(REF, { ticks: [START], after: 0, pace: 0, idSuffix: () => w.idSuffix() })).toBeUndefined();
    expect(await w.store.schedules.ticks(REF, { limit: 10 })).toEqual([]);
    expect(await w.store.schedules.fired(REF, [START])).toEqual([]);
  });

  missedTickTests(test);

  test("a trigger makes a job now, also while the schedule is paused, and leaves its next tick alone", async (w) => {
    await put(w);
    await w.store.schedules.pause(REF);
    const before = await get(w);
    const first = await w.store.schedules.trigger(REF, { idSuffix: w.idSuffix(), input: '"other"', idempotencyKey: { id: "r", digest: "other" } });
    expect(first?.kind).toBe("created");
    const again = await w.store.schedules.trigger(REF, { idSuffix: w.idSuffix(), input: '"other"', idempotencyKey: { id: "r", digest: "other" } });
    expect(again).toEqual({ ...first, kind: "existing" });
    const other = await w.store.schedules.trigger(REF, {
      idSuffix: w.idSuffix(),
      input: '"another"',
      idempotencyKey: { id: "r", digest: "another" },
    });
    expect(other).toEqual({ kind: "idempotencyKeyReused", first: first?.kind === "created" && first.id });
    expect((await w.store.schedules.trigger(REF, { idSuffix: w.idSuffix() }))?.kind).toBe("created");
    expect((await jobs(w)).map(({ input }) => input)).toEqual(['"other"', "null"]);
    expect(await get(w)).toEqual(before);
    await w.store.schedules.resume(REF);
    w.clock.advance(MINUTE);
    expect(await tick(w), "triggered jobs count for overlap").toBe(0);
  });

  test("a trigger at the very time of a tick does not stand for it", async (w) => {
    await put(w, { overlap: "allow" });
    w.clock.advance(MINUTE);
    await w.store.schedules.trigger(REF, { idSuffix: w.idSuffix() });
    expect(await tick(w)).toBe(1);
    expect([...(await account(w))].sort()).toEqual(["1 fired", "1 triggered"]);
  });

  test("a backfill makes up for ticks that have no job, at a pace, and no tick ever has two", async (w) => {
    await put(w, { overlap: "allow" });
    w.clock.advance(MINUTE);
    await tick(w);
    w.clock.advance(10 * SECOND);
    const ticks = [-1, 0, 1, 2].map((n) => START + n * MINUTE);
    const backfill = () => w.store.schedules.backfill(REF, { ticks, after: 0, pace: 20 * SECOND, idSuffix: () => w.idSuffix() });
    expect(await w.store.schedules.fired(REF, ticks)).toEqual([START + MINUTE]);
    expect(await backfill()).toBe(3);
    expect(await backfill()).toBe(0);
    const made = (await jobs(w)).filter(({ options }) => options.tick?.way === "backfilled");
    expect(made.map(({ dueAt }) => dueAt - w.clock.now())).toEqual([0, 20 * SECOND, 40 * SECOND]);
    w.clock.advance(MINUTE);
    expect(await tick(w), "its time came after its backfill").toBe(0);
    expect((await get(w)).next).toBe(START + 3 * MINUTE);
    expect(await account(w)).toEqual(["-1 backfilled", "0 backfilled", "1 fired", "2 backfilled"]);
  });

  test("a tick whose key is taken has no job, and says so", async (w) => {
    const unique = { key: "k", hold: "unfinished", onConflict: "existing" } as const;
    await w.add({ unique });
    await put(w, { overlap: "allow", job: { lane: lane(), input: "null", options: { uniqueKey: "k" }, unique } });
    w.clock.advance(MINUTE);
    expect(await tick(w)).toBe(0);
    expect(await account(w)).toEqual(["1 skipped: key"]);
  });

  test("spread and jitter move the firing, not the tick, and always by the same", async (w) => {
    await put(w, { rule: { kind: "every", every: HOUR }, stagger: 10 * MINUTE, jitter: MINUTE });
    const { next, looksAt = 0 } = await get(w);
    expect(next).toBe(START + HOUR);
    expect(looksAt).toBeGreaterThan(START + HOUR);
    expect(looksAt).toBeLessThan(START + HOUR + 11 * MINUTE);
    w.clock.advance(looksAt - START - 1);
    expect(await tick(w)).toBe(0);
    w.clock.advance(1);
    expect(await tick(w)).toBe(1);
    expect(await account(w)).toEqual(["60 fired"]);
  });

  test("a limit shares many due schedules between steps, those due first before the others", async (w) => {
    const names = ["a", "b", "c", "d", "e"];
    await w.store.schedules.put(names.map((name) => ({ ...REF, name, definition: definition() })));
    w.clock.advance(MINUTE);
    expect([await tick(w, 2), await tick(w, 2), await tick(w, 2), await tick(w, 2)]).toEqual([2, 2, 1, 0]);
    expect((await jobs(w)).map(({ options }) => options.tick?.schedule).sort()).toEqual(names);
  });

  test("deleting or dropping a job of a schedule does not stop it (D4)", async (w) => {
    await put(w);
    w.clock.advance(MINUTE);
    await tick(w);
    const [job] = await jobs(w);
    if (job === undefined) throw new Error("no job");
    await w.store.jobs.cancel("everyone", job.id, "no");
    await w.store.jobs.delete("everyone", job.id);
    w.clock.advance(MINUTE);
    expect(await tick(w)).toBe(1);
  });

  test("a removed schedule is gone with its ticks, and its jobs stay", async (w) => {
    await put(w);
    w.clock.advance(MINUTE);
    await tick(w);
    expect(await w.store.schedules.delete(REF)).toBe(true);
    expect(await get(w)).toBeUndefined();
    expect(await account(w)).toEqual([]);
    expect(await jobs(w)).toHaveLength(1);
    await put(w);
    expect(await account(w)).toEqual([]);
    expect(await get(w)).toMatchObject({ revision: 1, next: START + 2 * MINUTE });
  });

  test("of its finished jobs a schedule keeps the last few of each kind", async (w) => {
    await put(w, { keep: { succeeded: 2, dead: 1 } });
    for (const outcome of [SUCCEEDED, KILLED, SUCCEEDED, KILLED, SUCCEEDED]) {
      w.clock.advance(MINUTE);
      await tick(w);
      await w.settle(await w.hold(), outcome);
    }
    w.clock.advance(MINUTE);
    await tick(w);
    expect(await dutiesOf(w.store).trimSchedules(100, DAY)).toBe(2);
    expect(await dutiesOf(w.store).trimSchedules(100, DAY)).toBe(0);
    const left = (await jobs(w)).map(({ state, options }) => [state, ((options.tick?.at ?? 0) - START) / MINUTE]);
    expect(left).toEqual([
      ["succeeded", 3],
      ["dead", 4],
      ["succeeded", 5],
      ["ready", 6],
    ]);
    w.clock.advance(DAY);
    await dutiesOf(w.store).trimSchedules(100, DAY);
    expect(await account(w), "the record goes when it is old").toEqual([]);
  });
}

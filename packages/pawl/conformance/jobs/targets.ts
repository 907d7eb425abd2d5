import { expect } from "vitest";
import { MAX_TARGETS } from "../../src/core/access/push-target.js";
import type { NewTarget } from "../../src/store/port/jobs/targets.js";
import type { Test } from "../suite.js";
import { HOUR, START, type World } from "../world.js";

const MAIL = { tenant: "acme", task: "mail" };
const MINE = { tenant: "acme" };
const THEIRS = { tenant: "umbrella" };

const target = (more: Partial<NewTarget> = {}): NewTarget => ({
  ...MAIL,
  url: "https://one.example/hook",
  concurrency: 5,
  timeout: 15_000,
  secret: "first",
  ...more,
});
const openOf = async (w: World) => (await w.store.targets.open(1_000)).targets;
const secretsOf = async (w: World) => (await openOf(w)).map(({ secrets }) => secrets.map(({ text }) => text));
const versionOf = async (w: World) => (await w.store.lanes.live(undefined, [])).version;

export function targetTests(test: Test): void {
  test("a target is what it was put as, and its secret is told to those who deliver alone", async (w) => {
    const { url, concurrency, timeout } = target();
    const facts = { ...MAIL, url, concurrency, timeout, createdAt: START, changedAt: START };
    expect(await w.store.targets.put(target())).toEqual({ kind: "created", target: facts });
    expect(await w.store.targets.get("everyone", MAIL)).toEqual(facts);
    expect(await w.store.targets.list("everyone", { limit: 10 })).toEqual([facts]);
    expect(await w.store.targets.open(10)).toEqual({ now: START, targets: [{ ...facts, secrets: [{ text: "first" }] }] });
  });

  test("one that is put again is changed, and keeps its secret", async (w) => {
    await w.store.targets.put(target());
    w.clock.advance(HOUR);
    const again = await w.store.targets.put(target({ url: "https://two.example/", concurrency: 1, timeout: 1_000, secret: "other" }));
    expect(again).toMatchObject({ kind: "kept", target: { url: "https://two.example/", concurrency: 1, timeout: 1_000 } });
    expect(again).toMatchObject({ target: { createdAt: START, changedAt: START + HOUR } });
    expect(await secretsOf(w)).toEqual([["first"]]);
    w.clock.advance(HOUR);
    expect(await w.store.targets.put(target({ url: "https://two.example/", concurrency: 1, timeout: 1_000 }))).toEqual(again);
  });

  test("after a rotation both secrets are good for a while, and of three the newest two", async (w) => {
    await w.store.targets.put(target());
    expect(await w.store.targets.rotate(MAIL, { secret: "second", keepOldFor: HOUR })).toMatchObject(MAIL);
    await w.store.targets.rotate(MAIL, { secret: "second", keepOldFor: HOUR });
    expect((await openOf(w))[0]?.secrets).toEqual([{ text: "second" }, { text: "first", until: START + HOUR }]);
    w.clock.advance(HOUR / 2);
    await w.store.targets.rotate(MAIL, { secret: "third", keepOldFor: HOUR });
    expect(await secretsOf(w)).toEqual([["third", "second"]]);
    w.clock.advance(HOUR);
    expect(await secretsOf(w)).toEqual([["third"]]);
    expect(await w.store.targets.rotate({ ...MAIL, task: "other" }, { secret: "x", keepOldFor: 0 })).toBeUndefined();
  });

  test("one that is removed is gone with its secrets", async (w) => {
    await w.store.targets.put(target());
    expect(await w.store.targets.delete(MAIL)).toBe(true);
    expect(await w.store.targets.delete(MAIL)).toBe(false);
    expect(await openOf(w)).toEqual([]);
    expect(await w.store.targets.put(target({ secret: "new" }))).toMatchObject({ kind: "created" });
    expect(await secretsOf(w)).toEqual([["new"]]);
  });

  test("one that wants no more gets none until it is put again; what it said of another URL is of no account", async (w) => {
    await w.store.targets.put(target());
    await w.store.targets.gone(MAIL, "https://before.example/");
    expect(await openOf(w)).toHaveLength(1);
    await w.store.targets.gone(MAIL, target().url);
    expect(await w.store.targets.get(MINE, MAIL)).toMatchObject({ goneAt: START });
    expect(await openOf(w)).toEqual([]);
    await w.store.targets.put(target());
    expect((await w.store.targets.get(MINE, MAIL))?.goneAt).toBeUndefined();
    expect(await secretsOf(w)).toEqual([["first"]]);
  });

  test("a tenant sees its own targets; the same task of another tenant has another one", async (w) => {
    await w.store.targets.put(target());
    await w.store.targets.put(target({ ...THEIRS, url: "https://umbrella.example/", secret: "theirs" }));
    expect(await w.store.targets.get(THEIRS, MAIL)).toBeUndefined();
    expect((await w.store.targets.list(THEIRS, { limit: 10 })).map(({ url }) => url)).toEqual(["https://umbrella.example/"]);
    await w.store.targets.delete({ ...THEIRS, task: "mail" });
    expect(await secretsOf(w)).toEqual([["first"]]);
  });

  test("they are listed by tenant and task, page by page", async (w) => {
    for (const [tenant, task] of [
      ["b", "x"],
      ["a", "y"],
      ["a", "x"],
    ] as const)
      await w.store.targets.put(target({ tenant, task }));
    const page = await w.store.targets.list("everyone", { limit: 2 });
    expect(page.map(({ tenant, task }) => tenant + task)).toEqual(["ax", "ay"]);
    expect((await w.store.targets.list("everyone", { limit: 2, after: { tenant: "a", task: "y" } })).map(({ tenant }) => tenant)).toEqual(["b"]);
  });

  test("every change is heard of by the version of the lanes", async (w) => {
    const versions = [await versionOf(w)];
    const changes = [
      () => w.store.targets.put(target()),
      () => w.store.targets.rotate(MAIL, { secret: "second", keepOldFor: 0 }),
      () => w.store.targets.gone(MAIL, target().url),
      () => w.store.targets.delete(MAIL),
    ];
    for (const change of changes) {
      await change();
      versions.push(await versionOf(w));
    }
    expect(new Set(versions).size).toBe(versions.length);
  });

  test("a tenant has no more than there may be, and others have theirs", async (w) => {
    for (let n = 0; n < MAX_TARGETS.ofTenant; n++) await w.store.targets.put(target({ task: `t${n}` }));
    expect(await w.store.targets.put(target({ task: "one.more" }))).toEqual({ kind: "full", most: MAX_TARGETS.ofTenant });
    expect(await w.store.targets.put(target({ task: "t1" }))).toMatchObject({ kind: "kept" });
    expect(await w.store.targets.put(target(THEIRS))).toMatchObject({ kind: "created" });
  });

  test("a purge takes a tenant's targets and nobody else's", async (w) => {
    await w.store.targets.put(target());
    await w.store.targets.put(target(THEIRS));
    await w.store.tenants.purgeRest("acme", 100);
    expect((await openOf(w)).map(({ tenant }) => tenant)).toEqual(["umbrella"]);
  });
}

import { expect } from "vitest";
import type { Test } from "../suite.js";
import { HOUR, START, type World } from "../world.js";

const [FIRST, SECOND, THIRD] = ["1", "2", "3"].map((digit) => digit.repeat(64)) as [string, string, string];
const MINE = { tenant: "acme" };
const THEIRS = { tenant: "umbrella" };

async function make(w: World, id: string, more: { tenant?: string; digest?: string; pepper?: string; expiresIn?: number } = {}): Promise<void> {
  const { tenant = "acme", digest = FIRST, ...rest } = more;
  const key = { id, name: `the key ${id}`, tenant, grants: [{ role: "producer", tasks: ["mail.*"] }], digest, ...rest } as const;
  expect(await w.store.apiKeys.create(key)).toBe("created");
}

const isGood = async (w: World, id: string, digest: string) => (await w.store.apiKeys.check(id, digest)).secret !== undefined;

export function apiKeyTests(test: Test): void {
  test("a key is found by its id and the digest of its secret, and is what it was made as", async (w) => {
    await make(w, "a", { expiresIn: HOUR });
    const facts = {
      id: "a",
      name: "the key a",
      tenant: "acme",
      grants: [{ role: "producer", tasks: ["mail.*"] }],
      createdAt: START,
      expiresAt: START + HOUR,
    };
    expect(await w.store.apiKeys.check("a", FIRST)).toEqual({ key: facts, secret: {}, version: await w.store.apiKeys.version(), now: START });
    expect(await w.store.apiKeys.get("everyone", "a")).toEqual(facts);
  });

  test("another secret is not good, and an unknown key has none", async (w) => {
    await make(w, "a");
    const wrong = await w.store.apiKeys.check("a", SECOND);
    expect(wrong.secret).toBeUndefined();
    expect(wrong.key?.id).toBe("a");
    const unknown = await w.store.apiKeys.check("b", FIRST);
    expect([unknown.key, unknown.secret]).toEqual([undefined, undefined]);
  });

  test("a key made again with the same secret is the same; its id is no other key's", async (w) => {
    await make(w, "a");
    await make(w, "a");
    const other = { id: "a", name: "mischief", tenant: "umbrella", grants: [{ role: "admin" }], digest: SECOND } as const;
    expect(await w.store.apiKeys.create(other)).toBe("taken");
    expect(await w.store.apiKeys.get("everyone", "a")).toMatchObject({ name: "the key a", tenant: "acme" });
    expect(await isGood(w, "a", SECOND)).toBe(false);
  });

  test("a key of the whole store has no tenant, and no tenant sees it", async (w) => {
    await w.store.apiKeys.create({ id: "root", name: "root", tenant: undefined, grants: [{ role: "admin" }], digest: FIRST });
    expect((await w.store.apiKeys.get("everyone", "root"))?.tenant).toBeUndefined();
    expect(await w.store.apiKeys.get(MINE, "root")).toBeUndefined();
    expect(await w.store.apiKeys.list(MINE, { limit: 10 })).toEqual([]);
    expect(await w.store.apiKeys.revoke(MINE, "root")).toEqual({ kind: "unknown" });
  });

  test("a rotation leaves two secrets good until its keepOldFor is over, and one after", async (w) => {
    await make(w, "a");
    expect(await w.store.apiKeys.rotate(MINE, "a", { digest: SECOND, keepOldFor: HOUR })).toMatchObject({ kind: "changed", key: { id: "a" } });
    expect(await w.store.apiKeys.check("a", FIRST)).toMatchObject({ secret: { until: START + HOUR } });
    expect((await w.store.apiKeys.check("a", SECOND)).secret).toEqual({});
    w.clock.advance(HOUR - 1);
    expect([await isGood(w, "a", FIRST), await isGood(w, "a", SECOND)]).toEqual([true, true]);
    w.clock.advance(1);
    expect([await isGood(w, "a", FIRST), await isGood(w, "a", SECOND)]).toEqual([false, true]);
  });

  test("a rotation ends what the one before left, and one repeated changes nothing", async (w) => {
    await make(w, "a");
    await w.store.apiKeys.rotate(MINE, "a", { digest: SECOND, keepOldFor: HOUR });
    await w.store.apiKeys.rotate(MINE, "a", { digest: SECOND, keepOldFor: 0 });
    expect([await isGood(w, "a", FIRST), await isGood(w, "a", SECOND)]).toEqual([true, true]);
    await w.store.apiKeys.rotate(MINE, "a", { digest: THIRD, keepOldFor: HOUR });
    expect([await isGood(w, "a", FIRST), await isGood(w, "a", SECOND), await isGood(w, "a", THIRD)]).toEqual([false, true, true]);
    await w.store.apiKeys.rotate(MINE, "a", { digest: FIRST, keepOldFor: 0 });
    expect([await isGood(w, "a", FIRST), await isGood(w, "a", SECOND), await isGood(w, "a", THIRD)]).toEqual([true, false, false]);
  });

  test("a revoked key stays revoked: it can be read and listed, and not rotated", async (w) => {
    await make(w, "a");
    const first = await w.store.apiKeys.revoke(MINE, "a");
    expect(first).toMatchObject({ kind: "changed", key: { revokedAt: START } });
    w.clock.advance(HOUR);
    expect(await w.store.apiKeys.revoke(MINE, "a")).toEqual(first);
    expect(await w.store.apiKeys.rotate(MINE, "a", { digest: SECOND, keepOldFor: HOUR })).toEqual({ kind: "revoked" });
    expect((await w.store.apiKeys.check("a", FIRST)).key?.revokedAt).toBe(START);
    expect(await isGood(w, "a", SECOND)).toBe(false);
    expect(await w.store.apiKeys.list(MINE, { limit: 10 })).toMatchObject([{ id: "a", revokedAt: START }]);
  });

  test("the version moves with every rotation and revocation, and with nothing else", async (w) => {
    const versions = [await w.store.apiKeys.version()];
    const next = async () => versions.push(await w.store.apiKeys.version());
    await make(w, "a");
    await w.store.apiKeys.touch(["a"]);
    await w.store.apiKeys.check("a", FIRST);
    await next();
    expect(versions[1]).toBe(versions[0]);
    await w.store.apiKeys.rotate(MINE, "a", { digest: SECOND, keepOldFor: 0 });
    await next();
    await w.store.apiKeys.revoke(MINE, "a");
    await next();
    expect(new Set(versions).size).toBe(3);
    await w.store.apiKeys.rotate(MINE, "nobody", { digest: SECOND, keepOldFor: 0 });
    expect(await w.store.apiKeys.version()).toBe(versions[3]);
    expect((await w.store.apiKeys.check("a", SECOND)).version).toBe(versions[3]);
  });

  test("another tenant's key is not told from one that does not exist", async (w) => {
    await make(w, "a");
    for (const id of ["a", "nobody"]) {
      expect(await w.store.apiKeys.get(THEIRS, id)).toBeUndefined();
      expect(await w.store.apiKeys.rotate(THEIRS, id, { digest: SECOND, keepOldFor: 0 })).toEqual({ kind: "unknown" });
      expect(await w.store.apiKeys.revoke(THEIRS, id)).toEqual({ kind: "unknown" });
    }
    expect(await isGood(w, "a", FIRST)).toBe(true);
  });

  test("keys are listed newest first, page by page, each tenant its own", async (w) => {
    for (const id of ["a", "b", "c", "d"]) {
      w.clock.advance(1);
      await make(w, id, { tenant: id === "b" ? "umbrella" : "acme" });
    }
    const ids = async (scope: typeof MINE | "everyone", after?: string) =>
      (await w.store.apiKeys.list(scope, { limit: 2, ...(after === undefined ? {} : { after }) })).map(({ id }) => id);
    expect(await ids(MINE)).toEqual(["d", "c"]);
    expect(await ids(MINE, "c")).toEqual(["a"]);
    expect(await ids("everyone", "c")).toEqual(["b", "a"]);
    expect(await ids("everyone", "nobody")).toEqual([]);
    expect(await ids(MINE, "b"), "after a key of another tenant, as after one that does not exist").toEqual([]);
  });

  test("when a key was used is noted", async (w) => {
    await make(w, "a");
    await make(w, "b");
    w.clock.advance(HOUR);
    await w.store.apiKeys.touch(["a", "nobody"]);
    await w.store.apiKeys.touch([]);
    expect((await w.store.apiKeys.get(MINE, "a"))?.lastUsedAt).toBe(START + HOUR);
    expect((await w.store.apiKeys.get(MINE, "b"))?.lastUsedAt).toBeUndefined();
  });

  test("the peppers are told that the newest secrets of good keys were made with, and how many each", async (w) => {
    expect(await w.store.apiKeys.peppers()).toEqual([]);
    await make(w, "a", { pepper: "p1" });
    await make(w, "b", { pepper: "p1", tenant: "umbrella" });
    await make(w, "c", { pepper: "p2" });
    await make(w, "d", { pepper: "p3", expiresIn: HOUR });
    await make(w, "e");
    expect(await w.store.apiKeys.peppers()).toEqual([
      { pepper: "p1", count: 2 },
      { pepper: "p2", count: 1 },
      { pepper: "p3", count: 1 },
    ]);
    await w.store.apiKeys.rotate("everyone", "a", { digest: SECOND, pepper: "p2", keepOldFor: HOUR });
    await w.store.apiKeys.revoke("everyone", "b");
    w.clock.advance(HOUR);
    expect(await w.store.apiKeys.peppers()).toEqual([{ pepper: "p2", count: 2 }]);
  });
}

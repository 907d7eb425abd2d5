import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { apiKeyText, parseApiKey, type Verified } from "../core/api-key.js";
import { aroundStore } from "../store/around.js";
import type { Store } from "../store/port.js";
import { openTest, type TestPawl } from "../testing/open.js";
import { KeyVerifier } from "./key-verifier.js";
import type { NewKey } from "./keys.js";
import { Pepper } from "./pepper.js";

const PEPPER = "a pepper of sixteen bytes or more";
const NEW: NewKey = { name: "ci", tenant: "acme", grants: [{ role: "producer", tasks: ["mail.*"] }] };

let world: TestPawl;
let operations: string[];
/** another process on the same store, some time behind in what it knows */
let other: KeyVerifier;

beforeEach(async () => {
  operations = [];
  const around = (inner: Store) => {
    const counted = aroundStore(inner, (operation, call) => {
      if (operation.startsWith("apiKeys.")) operations.push(operation);
      return call();
    });
    store = counted;
    return counted;
  };
  let store = undefined as unknown as Store;
  world = await openTest({ keys: { pepper: PEPPER, env: "test" }, work: false, maintenance: false, around });
  other = new KeyVerifier(store, world.clock, await Pepper.of(PEPPER), "test");
  operations.length = 0;
});
afterEach(() => world.close());

const why = (verified: Verified | undefined) => (verified === undefined ? undefined : verified.ok ? "ok" : verified.why);
const pass = (ms: number) => world.clock.advance(ms);

describe("an API key", () => {
  test("lets in whoever has it, as what it was made for", async () => {
    const { key, text } = await world.pawl.keys.create({ ...NEW, lasts: "1h" });
    expect(key).toMatchObject({ name: "ci", tenant: "acme", grants: NEW.grants });
    expect(key.expiresAt?.getTime()).toBe(world.clock.now() + 3_600_000);
    expect(parseApiKey(text)).toMatchObject({ env: "test", id: key.id });
    expect(await world.pawl.keys.verify(text)).toEqual({
      ok: true,
      credential: { key: key.id, name: "ci", tenant: "acme", grants: NEW.grants },
      expiresAt: key.expiresAt?.getTime(),
    });
  });

  test("is shown once: nothing that is read later holds its secret, nor what is stored of it", async () => {
    const { key, text } = await world.pawl.keys.create(NEW);
    const secret = parseApiKey(text)?.secret as string;
    const read = JSON.stringify([await world.pawl.keys.get(key.id), await world.pawl.keys.list(), await world.pawl.keys.revoke(key.id)]);
    expect(read).not.toContain(secret);
    expect(read).not.toMatch(/digest|secret/);
  });

  test("that is mistyped, made up or of another environment costs no look at the store (S1)", async () => {
    const { text } = await world.pawl.keys.create(NEW);
    operations.length = 0;
    expect(why(await world.pawl.keys.verify(`${text.slice(0, -1)}${text.endsWith("x") ? "y" : "x"}`))).toBe("malformed");
    expect(why(await world.pawl.keys.verify("Basic YWRtaW46YWRtaW4="))).toBe("malformed");
    const live = apiKeyText({ ...(parseApiKey(text) as NonNullable<ReturnType<typeof parseApiKey>>), env: "live" });
    expect(why(await world.pawl.keys.verify(live))).toBe("env");
    expect(operations).toEqual([]);
  });

  test("that nobody made, and one with another secret, are refused", async () => {
    const { key, text } = await world.pawl.keys.create(NEW);
    const parsed = parseApiKey(text) as NonNullable<ReturnType<typeof parseApiKey>>;
    const guessed = apiKeyText({ ...parsed, secret: "0".repeat(43) });
    expect(await world.pawl.keys.verify(guessed)).toEqual({ ok: false, why: "secret", key: key.id, tenant: "acme" });
    expect(why(await world.pawl.keys.verify(apiKeyText({ ...parsed, id: "0".repeat(16) })))).toBe("unknown");
    expect(why(await world.pawl.keys.verify(text))).toBe("ok");
    expect(why(await world.pawl.keys.verify(guessed)), "though the key is known by now").toBe("secret");
  });

  test("that nobody made takes the way of one with another secret: one look, with a digest of what was shown (S3)", async () => {
    const { text } = await world.pawl.keys.create(NEW);
    const parsed = parseApiKey(text) as NonNullable<ReturnType<typeof parseApiKey>>;
    const ways = [];
    for (const shown of [
      { ...parsed, secret: "0".repeat(43) },
      { ...parsed, id: "0".repeat(16) },
    ]) {
      operations.length = 0;
      expect((await world.pawl.keys.verify(apiKeyText(shown))).ok).toBe(false);
      ways.push([...operations]);
    }
    expect(ways).toEqual([["apiKeys.check"], ["apiKeys.check"]]);
  });

  test("under another pepper is worth nothing", async () => {
    const { text } = await world.pawl.keys.create(NEW);
    const { store } = other as unknown as { store: Store };
    const another = await Pepper.of("another pepper entirely");
    expect(why(await new KeyVerifier(store, world.clock, another, "test").verify(text))).toBe("secret");
  });

  test("of a pepper that is read again is worth nothing when that has changed, and good again when it is back", async () => {
    let pepper: unknown = PEPPER;
    await using changing = await openTest({ keys: { pepper: async () => pepper as string }, work: false, maintenance: false });
    const { keys } = changing.pawl;
    const { text } = await keys.create(NEW);
    expect(why(await keys.verify(text))).toBe("ok");
    pepper = "another pepper entirely";
    expect([why(await keys.verify(text)), why(await keys.recall(text))]).toEqual(["secret", undefined]);
    const { text: later } = await keys.create(NEW);
    expect(why(await keys.verify(later))).toBe("ok");
    for (const half of ["", "half a pepper", undefined]) {
      pepper = half;
      expect(why(await keys.verify(later)), "what is no pepper leaves the last one in place").toBe("ok");
    }
    pepper = PEPPER;
    expect([why(await keys.verify(text)), why(await keys.verify(later))]).toEqual(["ok", "secret"]);
  });

  test("in use costs one look at the store's mark in two seconds, and not one of its own", async () => {
    const keys = await Promise.all([1, 2, 3].map(() => world.pawl.keys.create(NEW)));
    for (const { text } of keys) await world.pawl.keys.verify(text);
    operations.length = 0;
    for (let turn = 0; turn < 100; turn++) {
      await Promise.all(keys.map(({ text }) => world.pawl.keys.verify(text)));
      await pass(100);
    }
    expect(operations.filter((operation) => operation === "apiKeys.check")).toEqual([]);
    expect(operations.filter((operation) => operation === "apiKeys.mark").length).toBeLessThanOrEqual(5);
  });

  test("that is revoked is refused here at the next look and everywhere within 5 s (S4)", async () => {
    const { key, text } = await world.pawl.keys.create(NEW);
    expect([why(await world.pawl.keys.verify(text)), why(await other.verify(text))]).toEqual(["ok", "ok"]);
    await pass(1_999);
    await other.verify(text);
    const revoked = await world.pawl.keys.revoke(key.id);
    expect(revoked.revokedAt?.getTime()).toBe(world.clock.now());
    await pass(2_000);
    expect(why(await world.pawl.keys.verify(text))).toBe("revoked");
    expect(why(await other.verify(text))).toBe("revoked");
    await pass(86_400_000);
    expect(why(await other.verify(text))).toBe("revoked");
  });

  test("that was good is remembered for an hour after the store last told, for whoever has to answer without it", async () => {
    const { text } = await world.pawl.keys.create(NEW);
    expect(why(await other.remembered(text)), "nobody has shown it here").toBeUndefined();
    expect(why(await other.verify(text))).toBe("ok");
    operations.length = 0;
    await pass(3_600_000);
    const { id, env } = parseApiKey(text) as NonNullable<ReturnType<typeof parseApiKey>>;
    expect(why(await other.remembered(apiKeyText({ id, env, secret: "0".repeat(43) })))).toBeUndefined();
    expect(why(await other.remembered(text))).toBe("ok");
    expect(operations.filter((operation) => operation !== "apiKeys.touch")).toEqual([]);
    await pass(1);
    expect(why(await other.remembered(text))).toBeUndefined();
  });

  test("that was revoked is remembered as good for that hour at most, and by nobody who was told of a revocation since", async () => {
    const { key, text } = await world.pawl.keys.create(NEW);
    const { text: another } = await world.pawl.keys.create(NEW);
    expect([why(await other.verify(text)), why(await world.pawl.keys.verify(text))]).toEqual(["ok", "ok"]);
    await world.pawl.keys.revoke(key.id);
    expect(why(await other.remembered(text)), "cut off, it cannot know").toBe("ok");
    await pass(2_000);
    // A look for any key is enough.
    expect(why(await world.pawl.keys.verify(another))).toBe("ok");
    expect(why(await world.pawl.keys.remembered(text))).toBeUndefined();
    expect(why(await world.pawl.keys.verify(text))).toBe("revoked");
    expect(why(await world.pawl.keys.remembered(text))).toBe("revoked");
    await pass(3_600_000);
    expect(why(await other.remembered(text))).toBeUndefined();
  });

  test("whose time is over is not remembered as good", async () => {
    const { text } = await world.pawl.keys.create({ ...NEW, lasts: "10s" });
    await other.verify(text);
    await pass(10_000);
    expect(why(await other.remembered(text))).toBe("expired");
  });

  test("that is rotated has two good secrets for its overlap, then one (S5)", async () => {
    const { key, text: first } = await world.pawl.keys.create(NEW);
    await other.verify(first);
    const { key: same, text: second } = await world.pawl.keys.rotate(key.id, { overlap: "1h" });
    expect(same.id).toBe(key.id);
    const both = async () => Promise.all([first, second].map(async (text) => why(await other.verify(text))));
    expect(await both()).toEqual(["ok", "ok"]);
    await both();
    operations.length = 0;
    expect(await both()).toEqual(["ok", "ok"]);
    expect(operations, "both are known").toEqual([]);
    await pass(3_599_000);
    expect(await both()).toEqual(["ok", "ok"]);
    await pass(1_000);
    expect(await both()).toEqual(["secret", "ok"]);
    await world.pawl.keys.rotate(key.id, { overlap: 0 });
    await pass(2_000);
    expect(await both()).toEqual(["secret", "secret"]);
  });

  test("ends when its time is over, also where it is known", async () => {
    const { text } = await world.pawl.keys.create({ ...NEW, lasts: "10s" });
    await pass(9_999);
    expect(why(await world.pawl.keys.verify(text))).toBe("ok");
    await pass(1);
    expect(why(await world.pawl.keys.verify(text))).toBe("expired");
  });

  test("is recalled without the store where it was good of late, and not where it was not", async () => {
    const { key, text } = await world.pawl.keys.create(NEW);
    operations.length = 0;
    expect(await world.pawl.keys.recall(text)).toBeUndefined();
    expect(operations).toEqual([]);
    await world.pawl.keys.verify(text);
    expect(why(await world.pawl.keys.recall(text))).toBe("ok");
    await world.pawl.keys.revoke(key.id);
    await pass(2_000);
    expect(await world.pawl.keys.recall(text), "what changed must be asked for").toBeUndefined();
    expect(await world.pawl.keys.recall("nonsense")).toBeUndefined();
  });

  test("says when it was used, to the minute, at one write for all that were used together", async () => {
    const made = await Promise.all([1, 2].map(() => world.pawl.keys.create(NEW)));
    for (let second = 0; second < 59; second++) {
      for (const { text } of made) await world.pawl.keys.verify(text);
      await pass(1_000);
    }
    expect(operations.filter((operation) => operation === "apiKeys.touch")).toHaveLength(1);
    for (const { key } of made) expect((await world.pawl.keys.get(key.id)).lastUsedAt).toBeInstanceOf(Date);
  });

  test("cannot be told good while the store is away: nobody is let in on an old answer", async () => {
    const { text } = await world.pawl.keys.create(NEW);
    const { store } = other as unknown as { store: Store };
    let away = false;
    const lonely = new KeyVerifier(
      aroundStore(store, (_, call) => (away ? Promise.reject(new Error("away")) : call())),
      world.clock,
      await Pepper.of(PEPPER),
      "test",
    );
    await lonely.verify(text);
    away = true;
    expect(why(await lonely.verify(text)), "within two seconds").toBe("ok");
    await pass(2_000);
    await expect(lonely.verify(text)).rejects.toThrow("away");
    away = false;
    expect(why(await lonely.verify(text))).toBe("ok");
  });
});

describe("keys of a tenant", () => {
  test("are made for it, and are all it sees", async () => {
    const mine = world.pawl.keys.as({ tenant: "acme" });
    const { key } = await mine.create({ name: "own", grants: [{ role: "viewer" }] });
    expect(key.tenant).toBe("acme");
    const { key: theirs } = await world.pawl.keys.create({ ...NEW, tenant: "umbrella" });
    expect((await mine.list()).keys.map(({ id }) => id)).toEqual([key.id]);
    for (const call of [() => mine.get(theirs.id), () => mine.rotate(theirs.id), () => mine.revoke(theirs.id), () => mine.get("nobody")])
      await expect(call()).rejects.toMatchObject({ code: "api_key_unknown" });
    await expect(mine.create({ ...NEW, tenant: "umbrella" })).rejects.toMatchObject({ code: "option_invalid" });
    expect(() => mine.as({ tenant: "umbrella" })).toThrow(expect.objectContaining({ code: "option_invalid" }));
  });

  test("are listed page by page", async () => {
    for (let n = 0; n < 3; n++) await world.pawl.keys.create({ ...NEW, name: `key ${n}` });
    const first = await world.pawl.keys.list({ limit: 2 });
    const rest = await world.pawl.keys.list({ limit: 2, after: first.next as string });
    expect([first.keys.length, rest.keys.length, rest.next]).toEqual([2, 1, undefined]);
    expect(new Set([...first.keys, ...rest.keys].map(({ id }) => id)).size).toBe(3);
  });
});

describe("what makes no sense", () => {
  test("is refused by name", async () => {
    const { keys } = world.pawl;
    const { key } = await keys.create(NEW);
    const bad: readonly [() => Promise<unknown>, RegExp][] = [
      [() => keys.create({ ...NEW, name: "" }), /API key/],
      [() => keys.create({ ...NEW, grants: [] }), /key\.grants/],
      [() => keys.create({ ...NEW, tenat: "acme" } as never), /did you mean tenant/],
      [() => keys.create({ ...NEW, lasts: 0 }), /key\.lasts/],
      [() => keys.create({ ...NEW, tenant: "\u0000" }), /tenant/],
      [() => keys.rotate(key.id, { overlap: "soon" }), /overlap/],
      [() => keys.rotate(key.id, { overlaps: 1 } as never), /did you mean overlap/],
      [() => keys.list({ limit: 0 }), /page\.limit/],
      [() => keys.list({ limit: 1e9 }), /page\.limit/],
    ];
    for (const [call, message] of bad) await expect(call()).rejects.toThrow(message);
    await keys.revoke(key.id);
    await expect(keys.rotate(key.id)).rejects.toMatchObject({ code: "api_key_revoked" });
  });

  test("of the options of keys is refused at the start, and without a pepper there are no keys", async () => {
    for (const keys of [{ pepper: "short" }, { pepper: PEPPER, env: "Live" }, { peper: PEPPER }, { pepper: 5 }, { pepper: () => "short" }])
      await expect(openTest({ work: false, keys: keys as never })).rejects.toMatchObject({ code: "option_invalid" });
    const bare = await openTest({ work: false });
    await expect(bare.pawl.keys.create(NEW)).rejects.toMatchObject({ code: "pepper_missing" });
    await expect(bare.pawl.keys.verify("x")).rejects.toMatchObject({ code: "pepper_missing" });
    expect(await bare.pawl.keys.list()).toEqual({ keys: [] });
    await bare.close();
  });
});

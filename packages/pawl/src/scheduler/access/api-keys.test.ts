import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { apiKeyText, parseApiKey, type Verified } from "../../core/access/api-key.js";
import { serviceOf } from "../../service-of.js";
import type { Store } from "../../store/port/index.js";
import { wrapStore } from "../../store/wrap/wrap-store.js";
import { openTest, type TestPawl } from "../../testing/open.js";
import { ApiKeyVerifier } from "./api-key-verifier.js";
import type { ApiKeyOptions } from "./api-keys.js";
import { Pepper } from "./pepper.js";

const PEPPER = "a pepper of sixteen bytes or more";
const NEW: ApiKeyOptions = { name: "ci", tenant: "acme", grants: [{ role: "producer", tasks: ["mail.*"] }] };

let world: TestPawl;
let operations: string[];
/** another process on the same store, some time behind in what it knows */
let other: ApiKeyVerifier;

beforeEach(async () => {
  operations = [];
  const around = (inner: Store) => {
    const counted = wrapStore(inner, (operation, call) => {
      if (operation.startsWith("apiKeys.")) operations.push(operation);
      return call();
    });
    store = counted;
    return counted;
  };
  let store = undefined as unknown as Store;
  world = await openTest({ apiKeys: { pepper: PEPPER, env: "test" }, work: false, maintenance: false, wrapStore: around });
  other = new ApiKeyVerifier(store, world.clock, await Pepper.of(PEPPER), "test");
  operations.length = 0;
});
afterEach(() => world.close());

const why = (verified: Verified | undefined) => (verified === undefined ? undefined : verified.ok ? "ok" : verified.why);
const pass = (ms: number) => world.clock.advance(ms);

describe("an API key", () => {
  test("lets in whoever has it, as what it was made for", async () => {
    const { key, secret } = await serviceOf(world.pawl).apiKeys.create({ ...NEW, expiresIn: "1h" });
    expect(key).toMatchObject({ name: "ci", tenant: "acme", grants: NEW.grants });
    expect(key.expiresAt?.getTime()).toBe(world.clock.now() + 3_600_000);
    expect(parseApiKey(secret)).toMatchObject({ env: "test", id: key.id });
    expect(await serviceOf(world.pawl).apiKeys.verify(secret)).toEqual({
      ok: true,
      credential: { key: key.id, name: "ci", tenant: "acme", grants: NEW.grants },
      expiresAt: key.expiresAt?.getTime(),
    });
  });

  test("is shown once: nothing that is read later holds its secret, nor what is stored of it", async () => {
    const { key, secret } = await serviceOf(world.pawl).apiKeys.create(NEW);
    const stored = parseApiKey(secret)?.secret as string;
    const read = JSON.stringify([
      await serviceOf(world.pawl).apiKeys.get(key.id),
      await serviceOf(world.pawl).apiKeys.list(),
      await serviceOf(world.pawl).apiKeys.revoke(key.id),
    ]);
    expect(read).not.toContain(stored);
    expect(read).not.toMatch(/digest|secret/);
  });

  test("that is mistyped, made up or of another environment costs no look at the store (S1)", async () => {
    const { secret } = await serviceOf(world.pawl).apiKeys.create(NEW);
    operations.length = 0;
    expect(why(await serviceOf(world.pawl).apiKeys.verify(`${secret.slice(0, -1)}${secret.endsWith("x") ? "y" : "x"}`))).toBe("malformed");
    expect(why(await serviceOf(world.pawl).apiKeys.verify("Basic YWRtaW46YWRtaW4="))).toBe("malformed");
    const live = apiKeyText({ ...(parseApiKey(secret) as NonNullable<ReturnType<typeof parseApiKey>>), env: "live" });
    expect(why(await serviceOf(world.pawl).apiKeys.verify(live))).toBe("env");
    expect(operations).toEqual([]);
  });

  test("that nobody made, and one with another secret, are refused", async () => {
    const { key, secret } = await serviceOf(world.pawl).apiKeys.create(NEW);
    const parsed = parseApiKey(secret) as NonNullable<ReturnType<typeof parseApiKey>>;
    const guessed = apiKeyText({ ...parsed, secret: "0".repeat(43) });
    expect(await serviceOf(world.pawl).apiKeys.verify(guessed)).toEqual({ ok: false, why: "secret", key: key.id, tenant: "acme" });
    expect(why(await serviceOf(world.pawl).apiKeys.verify(apiKeyText({ ...parsed, id: "0".repeat(16) })))).toBe("unknown");
    expect(why(await serviceOf(world.pawl).apiKeys.verify(secret))).toBe("ok");
    expect(why(await serviceOf(world.pawl).apiKeys.verify(guessed)), "though the key is known by now").toBe("secret");
  });

  test("that nobody made takes the way of one with another secret: one look, with a digest of what was shown (S3)", async () => {
    const { secret } = await serviceOf(world.pawl).apiKeys.create(NEW);
    const parsed = parseApiKey(secret) as NonNullable<ReturnType<typeof parseApiKey>>;
    const ways = [];
    for (const shown of [
      { ...parsed, secret: "0".repeat(43) },
      { ...parsed, id: "0".repeat(16) },
    ]) {
      operations.length = 0;
      expect((await serviceOf(world.pawl).apiKeys.verify(apiKeyText(shown))).ok).toBe(false);
      ways.push([...operations]);
    }
    expect(ways).toEqual([["apiKeys.check"], ["apiKeys.check"]]);
  });

  test("under another pepper is worth nothing", async () => {
    const { secret } = await serviceOf(world.pawl).apiKeys.create(NEW);
    const { store } = other as unknown as { store: Store };
    const another = await Pepper.of("another pepper entirely");
    expect(why(await new ApiKeyVerifier(store, world.clock, another, "test").verify(secret))).toBe("secret");
  });

  test("of a pepper that is read again is worth nothing when that has changed, and good again when it is back", async () => {
    let pepper: unknown = PEPPER;
    await using changing = await openTest({ apiKeys: { pepper: async () => pepper as string }, work: false, maintenance: false });
    const { apiKeys } = serviceOf(changing.pawl);
    const { secret } = await apiKeys.create(NEW);
    expect(why(await apiKeys.verify(secret))).toBe("ok");
    pepper = "another pepper entirely";
    expect([why(await apiKeys.verify(secret)), why(await apiKeys.recall(secret))]).toEqual(["secret", undefined]);
    const { secret: later } = await apiKeys.create(NEW);
    expect(why(await apiKeys.verify(later))).toBe("ok");
    for (const half of ["", "half a pepper", undefined]) {
      pepper = half;
      expect(why(await apiKeys.verify(later)), "what is no pepper leaves the last one in place").toBe("ok");
    }
    pepper = PEPPER;
    expect([why(await apiKeys.verify(secret)), why(await apiKeys.verify(later))]).toEqual(["ok", "secret"]);
  });

  test("in use costs one look at the store's version in two seconds, and not one of its own", async () => {
    const keys = await Promise.all([1, 2, 3].map(() => serviceOf(world.pawl).apiKeys.create(NEW)));
    for (const { secret } of keys) await serviceOf(world.pawl).apiKeys.verify(secret);
    operations.length = 0;
    for (let turn = 0; turn < 100; turn++) {
      await Promise.all(keys.map(({ secret }) => serviceOf(world.pawl).apiKeys.verify(secret)));
      await pass(100);
    }
    expect(operations.filter((operation) => operation === "apiKeys.check")).toEqual([]);
    expect(operations.filter((operation) => operation === "apiKeys.version").length).toBeLessThanOrEqual(5);
  });

  test("that is revoked is refused here at the next look and everywhere within 5 s (S4)", async () => {
    const { key, secret } = await serviceOf(world.pawl).apiKeys.create(NEW);
    expect([why(await serviceOf(world.pawl).apiKeys.verify(secret)), why(await other.verify(secret))]).toEqual(["ok", "ok"]);
    await pass(1_999);
    await other.verify(secret);
    const revoked = await serviceOf(world.pawl).apiKeys.revoke(key.id);
    expect(revoked.revokedAt?.getTime()).toBe(world.clock.now());
    await pass(2_000);
    expect(why(await serviceOf(world.pawl).apiKeys.verify(secret))).toBe("revoked");
    expect(why(await other.verify(secret))).toBe("revoked");
    await pass(86_400_000);
    expect(why(await other.verify(secret))).toBe("revoked");
  });

  test("that was good is remembered for an hour after the store last told, for whoever has to answer without it", async () => {
    const { secret } = await serviceOf(world.pawl).apiKeys.create(NEW);
    expect(why(await other.remembered(secret)), "nobody has shown it here").toBeUndefined();
    expect(why(await other.verify(secret))).toBe("ok");
    operations.length = 0;
    await pass(3_600_000);
    const { id, env } = parseApiKey(secret) as NonNullable<ReturnType<typeof parseApiKey>>;
    expect(why(await other.remembered(apiKeyText({ id, env, secret: "0".repeat(43) })))).toBeUndefined();
    expect(why(await other.remembered(secret))).toBe("ok");
    expect(operations.filter((operation) => operation !== "apiKeys.touch")).toEqual([]);
    await pass(1);
    expect(why(await other.remembered(secret))).toBeUndefined();
  });

  test("that was revoked is remembered as good for that hour at most, and by nobody who was told of a revocation since", async () => {
    const { key, secret } = await serviceOf(world.pawl).apiKeys.create(NEW);
    const { secret: another } = await serviceOf(world.pawl).apiKeys.create(NEW);
    expect([why(await other.verify(secret)), why(await serviceOf(world.pawl).apiKeys.verify(secret))]).toEqual(["ok", "ok"]);
    await serviceOf(world.pawl).apiKeys.revoke(key.id);
    expect(why(await other.remembered(secret)), "cut off, it cannot know").toBe("ok");
    await pass(2_000);
    // A look for any key is enough.
    expect(why(await serviceOf(world.pawl).apiKeys.verify(another))).toBe("ok");
    expect(why(await serviceOf(world.pawl).apiKeys.remembered(secret))).toBeUndefined();
    expect(why(await serviceOf(world.pawl).apiKeys.verify(secret))).toBe("revoked");
    expect(why(await serviceOf(world.pawl).apiKeys.remembered(secret))).toBe("revoked");
    await pass(3_600_000);
    expect(why(await other.remembered(secret))).toBeUndefined();
  });

  test("whose time is over is not remembered as good", async () => {
    const { secret } = await serviceOf(world.pawl).apiKeys.create({ ...NEW, expiresIn: "10s" });
    await other.verify(secret);
    await pass(10_000);
    expect(why(await other.remembered(secret))).toBe("expired");
  });

  test("that is rotated has two good secrets for its overlap, then one (S5)", async () => {
    const { key, secret: first } = await serviceOf(world.pawl).apiKeys.create(NEW);
    await other.verify(first);
    const { key: same, secret: second } = await serviceOf(world.pawl).apiKeys.rotate(key.id, { keepOldFor: "1h" });
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
    await serviceOf(world.pawl).apiKeys.rotate(key.id, { keepOldFor: 0 });
    await pass(2_000);
    expect(await both()).toEqual(["secret", "secret"]);
  });

  test("ends when its time is over, also where it is known", async () => {
    const { secret } = await serviceOf(world.pawl).apiKeys.create({ ...NEW, expiresIn: "10s" });
    await pass(9_999);
    expect(why(await serviceOf(world.pawl).apiKeys.verify(secret))).toBe("ok");
    await pass(1);
    expect(why(await serviceOf(world.pawl).apiKeys.verify(secret))).toBe("expired");
  });

  test("is recalled without the store where it was good of late, and not where it was not", async () => {
    const { key, secret } = await serviceOf(world.pawl).apiKeys.create(NEW);
    operations.length = 0;
    expect(await serviceOf(world.pawl).apiKeys.recall(secret)).toBeUndefined();
    expect(operations).toEqual([]);
    await serviceOf(world.pawl).apiKeys.verify(secret);
    expect(why(await serviceOf(world.pawl).apiKeys.recall(secret))).toBe("ok");
    await serviceOf(world.pawl).apiKeys.revoke(key.id);
    await pass(2_000);
    expect(await serviceOf(world.pawl).apiKeys.recall(secret), "what changed must be asked for").toBeUndefined();
    expect(await serviceOf(world.pawl).apiKeys.recall("nonsense")).toBeUndefined();
  });

  test("says when it was used, to the minute, at one write for all that were used together", async () => {
    const made = await Promise.all([1, 2].map(() => serviceOf(world.pawl).apiKeys.create(NEW)));
    for (let second = 0; second < 59; second++) {
      for (const { secret } of made) await serviceOf(world.pawl).apiKeys.verify(secret);
      await pass(1_000);
    }
    expect(operations.filter((operation) => operation === "apiKeys.touch")).toHaveLength(1);
    for (const { key } of made) expect((await serviceOf(world.pawl).apiKeys.get(key.id)).lastUsedAt).toBeInstanceOf(Date);
  });

  test("cannot be told good while the store is away: nobody is let in on an old answer", async () => {
    const { secret } = await serviceOf(world.pawl).apiKeys.create(NEW);
    const { store } = other as unknown as { store: Store };
    let away = false;
    const lonely = new ApiKeyVerifier(
      wrapStore(store, (_, call) => (away ? Promise.reject(new Error("away")) : call())),
      world.clock,
      await Pepper.of(PEPPER),
      "test",
    );
    await lonely.verify(secret);
    away = true;
    expect(why(await lonely.verify(secret)), "within two seconds").toBe("ok");
    await pass(2_000);
    await expect(lonely.verify(secret)).rejects.toThrow("away");
    away = false;
    expect(why(await lonely.verify(secret))).toBe("ok");
  });
});

describe("keys of a tenant", () => {
  test("are made for it, and are all it sees", async () => {
    const mine = serviceOf(world.pawl).apiKeys.forTenant("acme");
    const { key } = await mine.create({ name: "own", grants: [{ role: "viewer" }] });
    expect(key.tenant).toBe("acme");
    const { key: theirs } = await serviceOf(world.pawl).apiKeys.create({ ...NEW, tenant: "umbrella" });
    expect((await mine.list()).items.map(({ id }) => id)).toEqual([key.id]);
    for (const call of [() => mine.get(theirs.id), () => mine.rotate(theirs.id), () => mine.revoke(theirs.id), () => mine.get("nobody")])
      await expect(call()).rejects.toMatchObject({ code: "api_key_unknown" });
    await expect(mine.create({ ...NEW, tenant: "umbrella" })).rejects.toMatchObject({ code: "option_invalid" });
    expect(() => mine.forTenant("umbrella")).toThrow(expect.objectContaining({ code: "option_invalid" }));
  });

  test("are listed page by page", async () => {
    for (let n = 0; n < 3; n++) await serviceOf(world.pawl).apiKeys.create({ ...NEW, name: `key ${n}` });
    const first = await serviceOf(world.pawl).apiKeys.list({}, { limit: 2 });
    const rest = await serviceOf(world.pawl).apiKeys.list({}, { limit: 2, cursor: first.next as string });
    expect([first.items.length, rest.items.length, rest.next]).toEqual([2, 1, undefined]);
    expect(new Set([...first.items, ...rest.items].map(({ id }) => id)).size).toBe(3);
  });
});

describe("what makes no sense", () => {
  test("is refused by name", async () => {
    const { apiKeys } = serviceOf(world.pawl);
    const { key } = await apiKeys.create(NEW);
    const bad: readonly [() => Promise<unknown>, RegExp][] = [
      [() => apiKeys.create({ ...NEW, name: "" }), /API key/],
      [() => apiKeys.create({ ...NEW, grants: [] }), /key\.grants/],
      [() => apiKeys.create({ ...NEW, tenat: "acme" } as never), /did you mean tenant/],
      [() => apiKeys.create({ ...NEW, expiresIn: 0 }), /key\.expiresIn/],
      [() => apiKeys.create({ ...NEW, tenant: "\u0000" }), /tenant/],
      [() => apiKeys.rotate(key.id, { keepOldFor: "soon" }), /keepOldFor/],
      [() => apiKeys.rotate(key.id, { keepOldFr: 1 } as never), /did you mean keepOldFor/],
      [() => apiKeys.list({}, { limit: 0 }), /page\.limit/],
      [() => apiKeys.list({}, { limit: 1e9 }), /page\.limit/],
      [() => apiKeys.list({}, { cursor: key.id }), /page\.cursor/],
      [() => apiKeys.list({ tenat: "acme" } as never), /did you mean tenant/],
    ];
    for (const [call, message] of bad) await expect(call()).rejects.toThrow(message);
    await apiKeys.revoke(key.id);
    await expect(apiKeys.rotate(key.id)).rejects.toMatchObject({ code: "api_key_revoked" });
  });

  test("of the options of keys is refused at the start, and without a pepper there are no keys", async () => {
    for (const keys of [{ pepper: "short" }, { pepper: PEPPER, env: "Live" }, { peper: PEPPER }, { pepper: 5 }, { pepper: () => "short" }])
      await expect(openTest({ work: false, apiKeys: keys as never })).rejects.toMatchObject({ code: "option_invalid" });
    const bare = await openTest({ work: false });
    await expect(serviceOf(bare.pawl).apiKeys.create(NEW)).rejects.toMatchObject({ code: "pepper_missing" });
    await expect(serviceOf(bare.pawl).apiKeys.verify("x")).rejects.toMatchObject({ code: "pepper_missing" });
    expect(await serviceOf(bare.pawl).apiKeys.list()).toEqual({ items: [] });
    await bare.close();
  });
});

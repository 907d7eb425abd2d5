import { randomBytes } from "node:crypto";
import { crc32 as zlibCrc32 } from "node:zlib";
import { describe, expect, it } from "vitest";
import { apiKeyText, crc32, isEnv, newApiKey, parseApiKey, refusalOf } from "./api-key.js";

const random = (size: number) => new Uint8Array(randomBytes(size));

describe("the text of an API key", () => {
  it("reads back as it was made, and is one word", () => {
    const made = newApiKey("live", random);
    const text = apiKeyText(made);
    expect(text).toMatch(/^pawl_live_[0-9A-Za-z]{16}_[0-9A-Za-z]{49}$/);
    expect(parseApiKey(text)).toEqual(made);
    expect(newApiKey("live", random, made.id)).toMatchObject({ id: made.id });
    expect(newApiKey("live", random, made.id).secret).not.toBe(made.secret);
  });

  it("is refused for any one letter that is wrong, left out, doubled or swapped", () => {
    const text = apiKeyText(newApiKey("test", random));
    for (let index = 0; index < text.length; index++) {
      const letter = text[index] as string;
      const other = letter === "x" ? "y" : "x";
      expect(parseApiKey(text.slice(0, index) + other + text.slice(index + 1))).toBeUndefined();
      expect(parseApiKey(text.slice(0, index) + text.slice(index + 1))).toBeUndefined();
      expect(parseApiKey(text.slice(0, index) + letter + text.slice(index))).toBeUndefined();
      const next = text[index + 1];
      if (next !== undefined && next !== letter) expect(parseApiKey(text.slice(0, index) + next + letter + text.slice(index + 2))).toBeUndefined();
    }
  });

  it("is refused whatever else it is", () => {
    for (const text of ["", "pawl", "pawl_live__", "Bearer x", `pawl_live_${"0".repeat(16)}_${"0".repeat(49)}`, "x".repeat(1_000_000)])
      expect(parseApiKey(text)).toBeUndefined();
    expect(parseApiKey(`${apiKeyText(newApiKey("live", random))}\n`)).toBeUndefined();
  });

  it("has the checksum that everybody else computes", () => {
    for (const text of ["", "a", "pawl_live_0123456789", "x".repeat(1_000)]) expect(crc32(text)).toBe(zlibCrc32(text));
  });

  it("draws every digit as often as the others", () => {
    const counts = new Map<string, number>();
    for (let n = 0; n < 2_000; n++) for (const digit of newApiKey("live", random).secret) counts.set(digit, (counts.get(digit) ?? 0) + 1);
    expect(counts.size).toBe(62);
    // 86,000 digits, 1,387 of each: a bias of a quarter (256 % 62 favours the first eight) would be at 1,680 and more.
    for (const [digit, count] of counts) expect(count, digit).toBeLessThan(1_387 * 1.18);
  });

  it("names an environment in small letters", () => {
    expect(["live", "test2", "", "Live", "a_b", "1a", "a".repeat(17)].map(isEnv)).toEqual([true, true, false, false, false, false, false]);
  });
});

describe("a key's worth", () => {
  const key = { id: "a", name: "a", tenant: undefined, grants: [], createdAt: 0 };
  it("ends when it expires, to the ms, and when it is revoked, for good", () => {
    expect(refusalOf(key, Number.MAX_SAFE_INTEGER)).toBeUndefined();
    expect(refusalOf({ ...key, expiresAt: 10 }, 9)).toBeUndefined();
    expect(refusalOf({ ...key, expiresAt: 10 }, 10)).toBe("expired");
    expect(refusalOf({ ...key, expiresAt: 10, revokedAt: 20 }, 5)).toBe("revoked");
  });
});

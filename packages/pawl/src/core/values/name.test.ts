import { describe, expect, it } from "vitest";
import { checkName } from "./name.js";

describe("checkName", () => {
  it.each(["a", "send.email", "a b", "ÄÖ", "名前", "😀", "../x", "a'b", "x".repeat(128)])("takes %j", (name) => {
    expect(checkName("task", name)).toBe(name);
    expect(checkName("task", name), "again, from memory").toBe(name);
  });

  it.each(["", " ", "\t", " a", "a ", "a\u0000b", "a\u0001b", "a\nb", "\u007f", "\ud800", "a\udc00", "\udc00\ud800", "x".repeat(129), "\u00a0a"])(
    "refuses %j",
    (name) => {
      for (let n = 0; n < 2; n++) expect(() => checkName("task", name)).toThrow(expect.objectContaining({ code: "name_invalid" }));
    },
  );

  it.each([undefined, null, 5, {}, [], ["a"], Symbol("a"), new String("a")])("refuses %o, which is no text", (name) => {
    expect(() => checkName("queue", name)).toThrow(expect.objectContaining({ code: "name_invalid" }));
  });

  it("has a limit for each kind", () => {
    expect(checkName("key", "k".repeat(512))).toHaveLength(512);
    expect(() => checkName("key", "k".repeat(513))).toThrow(/512/);
    expect(checkName("idempotency key", "r".repeat(256))).toHaveLength(256);
    expect(() => checkName("tag", "t".repeat(200))).toThrow(/tag/);
  });

  it("does not let a long name of one kind pass as another", () => {
    checkName("key", "x".repeat(200));
    expect(() => checkName("task", "x".repeat(200))).toThrow(expect.objectContaining({ code: "name_invalid" }));
  });

  it("shows a hostile name shortened and escaped", () => {
    const long = `a\u0000${"x".repeat(10_000)}`;
    expect(() => checkName("tenant", long)).toThrow(expect.objectContaining({ message: expect.not.stringContaining("\u0000") }));
    try {
      checkName("tenant", long);
    } catch (error) {
      expect((error as Error).message.length).toBeLessThan(300);
    }
  });

  it("remembers no more than it should", () => {
    for (let n = 0; n < 25_000; n++) checkName("key", `key ${n}`);
    expect(checkName("key", "key 0")).toBe("key 0");
  });
});

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isEverything, matches } from "./name-pattern.js";

describe("patterns", () => {
  it("match by letters and stars, and by nothing else", () => {
    const cases: readonly [pattern: string, name: string, expected: boolean][] = [
      ["mail", "mail", true],
      ["mail", "mails", false],
      ["mail", "Mail", false],
      ["mail.*", "mail.", true],
      ["mail.*", "mail", false],
      ["*.send", "mail.send", true],
      ["a*b*c", "axxbyyc", true],
      ["a*b*c", "axxbyycd", false],
      ["*ab", "aab", true],
      ["a**b", "ab", true],
      ["*", "", true],
      ["", "", true],
      ["?", "a", false],
      ["[a-z]", "b", false],
      [".*", "anything", false],
      ["^mail$", "mail", false],
    ];
    for (const [pattern, name, expected] of cases) expect([pattern, name, matches(pattern, name)]).toEqual([pattern, name, expected]);
  });

  it("match as the same thing written as a regular expression does", () => {
    const letters = fc.stringMatching(/^[ab.*]{0,8}$/);
    fc.assert(
      fc.property(letters, fc.stringMatching(/^[ab.]{0,10}$/), (pattern, name) => {
        const same = new RegExp(`^${pattern.replaceAll(".", "\\.").replaceAll("*", ".*")}$`).test(name);
        expect(matches(pattern, name)).toBe(same);
      }),
    );
  });

  it("take no longer for hostile ones", () => {
    const [pattern, name] = [`${"a*".repeat(63)}b`, "a".repeat(128)];
    const from = performance.now();
    for (let n = 0; n < 100; n++) expect(matches(pattern, name)).toBe(false);
    // 100 × 127 × 128 steps; a backtracking engine would need more of them than there are atoms.
    expect(performance.now() - from).toBeLessThan(2_000);
  });

  it("know which of them stand for everything", () => {
    expect(["*", "***", "a*", ""].map(isEverything)).toEqual([true, true, false, false]);
  });
});

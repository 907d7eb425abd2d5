import { describe, expect, test } from "vitest";
import { failureOf } from "./failure.js";
import { fingerprintOf, isFingerprint, maskedMessage } from "./fingerprint.js";

const died = (message: string, stack?: string) => ({ kind: "error", name: "Error", message, ...(stack === undefined ? {} : { stack }) }) as const;

describe("a message is masked", () => {
  test.each([
    ["timed out after 5000 ms", "timed out after <n> ms"],
    ["connect ECONNREFUSED 10.0.0.1:5432", "connect ECONNREFUSED <n>"],
    ['no user "ana" here', "no user <text> here"],
    ["can't reach it, and it's not ours", "can't reach it, and it's not ours"],
    ["no 'key' in `that`", "no <text> in <text>"],
    ["order 0199ffff-ffff-7fff-bfff-ffffffffffff is gone", "order <id> is gone"],
    ["commit 9f86d081884c is unknown", "commit <id> is unknown"],
    ["mail to ana.b@example.com bounced", "mail to <address> bounced"],
    ["first\n  second\tthird", "first second third"],
    ["utf8 is fine", "utf<n> is fine"],
    ["", ""],
  ])("%s", (message, masked) => {
    expect(maskedMessage(message)).toBe(masked);
  });

  test("in a time that does not explode with what it holds", () => {
    for (const hostile of ["'".repeat(100_000), "a1".repeat(50_000), `${"@a.".repeat(30_000)}`, "1,".repeat(50_000)]) {
      const before = performance.now();
      maskedMessage(hostile);
      expect(performance.now() - before).toBeLessThan(1_000);
    }
  });
});

describe("a fingerprint", () => {
  test("is the same for what differs in data only, and for ever", () => {
    expect(fingerprintOf("mail", died("no user 17"))).toBe(fingerprintOf("mail", died("no user 4711")));
    expect(fingerprintOf("mail", died("no user 17"))).toBe("acc9fd6f06b1b54c");
    expect(isFingerprint(fingerprintOf("mail", died("x")))).toBe(true);
  });

  test("tells tasks, classes, messages and the places they come from apart", () => {
    const prints = [
      fingerprintOf("mail", died("no user 17")),
      fingerprintOf("post", died("no user 17")),
      fingerprintOf("mail", { ...died("no user 17"), name: "TypeError" }),
      fingerprintOf("mail", { ...died("no user 17"), kind: "timeout" }),
      fingerprintOf("mail", died("no group 17")),
      fingerprintOf("mail", died("no user 17", "Error: no user 17\n    at send (/srv/app/mail.js:10:3)")),
      fingerprintOf("mail", died("no user 17", "Error: no user 17\n    at post (/srv/app/mail.js:10:3)")),
    ];
    expect(new Set(prints).size).toBe(prints.length);
  });

  test("stays when code moves in its file, or the file to another machine", () => {
    const at = (stack: string) => fingerprintOf("mail", died("no", stack));
    const first = at("Error: no\n    at send (/srv/app/mail.js:10:3)\n    at run (/srv/app/run.js:1:1)");
    expect(at("Error: no\n    at send (/home/ana/app/mail.js:99:12)")).toBe(first);
    expect(at("Error: no\n    at async send (file:///app/mail.js:1:1)")).toBe(first);
    expect(at("Error: no\n    at query (/app/node_modules/pg/client.js:1:1)\n    at node:internal/process:1:2\n    at send (/app/mail.js:1:1)")).toBe(
      first,
    );
    expect(at("Error: no\n    at other (/srv/app/mail.js:10:3)")).not.toBe(first);
  });

  test("is made of whatever was thrown", () => {
    for (const thrown of [null, undefined, 17, "text", Symbol("x"), {}, new Error(""), Object.create(null)]) {
      expect(isFingerprint(fingerprintOf("mail", failureOf(thrown)))).toBe(true);
    }
  });
});

import { randomFillSync } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { dueTimeOf, type IdTail, isJobId, jobId, tailSource } from "./id.js";

const random = (size: number) => randomFillSync(new Uint8Array(size));

/** RFC 9562, section 5.7, bit by bit, with a counter in `rand_a` (section 6.2, method 1). */
function uuidv7(ms: number, count: number, bytes: Uint8Array): string {
  let bits = (BigInt(ms) << 80n) | (BigInt(count) << 64n);
  for (const [n, byte] of bytes.entries()) bits |= BigInt(byte) << BigInt(56 - 8 * n);
  bits = (bits & ~(0xfn << 76n)) | (7n << 76n);
  bits = (bits & ~(3n << 62n)) | (2n << 62n);
  const hex = bits.toString(16).padStart(32, "0");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

describe("a job's id", () => {
  it("is the UUIDv7 of its due time, a counter and its random bytes", () => {
    fc.assert(
      fc.property(fc.nat({ max: 2 ** 48 - 1 }), fc.nat({ max: 4_095 }), fc.uint8Array({ minLength: 8, maxLength: 8 }), (ms, count, bytes) => {
        const tail = tailSource(() => bytes);
        for (let before = 0; before < count; before++) tail();
        expect(jobId(ms, tail())).toBe(uuidv7(ms, count, bytes));
      }),
    );
  });

  it("comes after those that were made before it for the same time, 4,096 of them", () => {
    const tail = tailSource(random);
    const ids = Array.from({ length: 4_096 }, () => jobId(1_700_000_000_000, tail()));
    expect([...ids].sort()).toEqual(ids);
    expect(jobId(1_700_000_000_000, tail()) < (ids[1] as string), "then it begins anew").toBe(true);
  });

  it("tells its due time", () => {
    const tail = tailSource(random)();
    for (const ms of [0, 1, 1_700_000_000_000, 2 ** 48 - 1]) expect(dueTimeOf(jobId(ms, tail))).toBe(ms);
    expect(dueTimeOf(jobId(1_234.9, tail)), "in whole ms").toBe(1_234);
    expect(dueTimeOf(jobId(-5, tail)), "not before 1970").toBe(0);
  });

  it("sorts as text by due time", () => {
    const tail = tailSource(random);
    fc.assert(
      fc.property(fc.nat({ max: 2 ** 48 - 1 }), fc.nat({ max: 2 ** 48 - 1 }), (a, b) => {
        fc.pre(a !== b);
        expect(jobId(a, tail()) < jobId(b, tail())).toBe(a < b);
      }),
    );
  });

  it("is known by its shape", () => {
    const id = jobId(0, tailSource(random)());
    expect(isJobId(id)).toBe(true);
    expect(isJobId(id.toUpperCase())).toBe(true);
    for (const text of ["", "x", ` ${id}`, `${id}\n`, id.slice(1), id.replaceAll("-", ""), id.replace("0", "g"), `{${id}}`])
      expect(isJobId(text), text).toBe(false);
  });
});

describe("tails", () => {
  it("are three groups of hex digits with version and variant in place", () => {
    const tail = tailSource(random);
    for (let n = 0; n < 2_000; n++) expect(tail()).toMatch(/^7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });

  it("do not repeat, and draw bytes in bulk", () => {
    let draws = 0;
    const tail = tailSource((size) => {
      draws += 1;
      return random(size);
    });
    const tails = new Set<IdTail>();
    for (let n = 0; n < 1_000; n++) tails.add(tail());
    expect(tails.size).toBe(1_000);
    expect(draws).toBe(2);
  });

  it("use every random bit they may", () => {
    const all = tailSource((size) => new Uint8Array(size).fill(0xff))();
    const none = tailSource((size) => new Uint8Array(size))();
    expect([all, none]).toEqual(["7000-bfff-ffffffffffff", "7000-8000-000000000000"]);
  });
});

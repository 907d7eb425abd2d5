import { randomFillSync } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { dueTimeOf, type IdTail, isJobId, jobId, shardOf, shardOfTenant, tailSource } from "./id.js";

const random = (size: number) => randomFillSync(new Uint8Array(size));

/** RFC 9562, section 5.7, bit by bit, with a counter in `rand_a` (section 6.2, method 1), and a shard at the head of `rand_b`. */
function uuidv7(ms: number, count: number, shard: number, bytes: Uint8Array): string {
  let bits = (BigInt(ms) << 80n) | (7n << 76n) | (BigInt(count) << 64n) | (2n << 62n) | (BigInt(shard) << 52n);
  // The random bits are the low four of the first byte behind its high four, then all others.
  const [first = 0, ...rest] = bytes;
  bits |= BigInt(first >> 4) << 48n;
  for (const [n, byte] of rest.entries()) bits |= BigInt(byte) << BigInt(40 - 8 * n);
  const hex = bits.toString(16).padStart(32, "0");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

describe("a job's id", () => {
  it("is the UUIDv7 of its due time, a counter, its tenant's shard and its random bytes", () => {
    fc.assert(
      fc.property(
        fc.nat({ max: 2 ** 48 - 1 }),
        fc.nat({ max: 4_095 }),
        fc.string(),
        fc.uint8Array({ minLength: 7, maxLength: 7 }),
        (ms, count, tenant, bytes) => {
          const tail = tailSource(() => bytes);
          for (let before = 0; before < count; before++) tail("other");
          expect(jobId(ms, tail(tenant))).toBe(uuidv7(ms, count, shardOfTenant(tenant), bytes));
        },
      ),
    );
  });

  it("tells the shard of its tenant, whatever jobs of others are made between", () => {
    const tail = tailSource(random);
    fc.assert(
      fc.property(fc.array(fc.string(), { minLength: 1 }), (tenants) => {
        for (const tenant of tenants) expect(shardOf(jobId(1_700_000_000_000, tail(tenant)))).toBe(shardOfTenant(tenant));
      }),
    );
  });

  it("has the shard that its tenant had in every release", () => {
    expect(["", "acme", "globex", "größe"].map(shardOfTenant)).toEqual([11, 962, 771, 607]);
  });

  it("comes after those that were made before it for the same time, 4,096 of them", () => {
    const tail = tailSource(random);
    const ids = Array.from({ length: 4_096 }, () => jobId(1_700_000_000_000, tail("acme")));
    expect([...ids].sort()).toEqual(ids);
    expect(jobId(1_700_000_000_000, tail("acme")) < (ids[1] as string), "then it begins anew").toBe(true);
  });

  it("tells its due time", () => {
    const tail = tailSource(random)("acme");
    for (const ms of [0, 1, 1_700_000_000_000, 2 ** 48 - 1]) expect(dueTimeOf(jobId(ms, tail))).toBe(ms);
    expect(dueTimeOf(jobId(1_234.9, tail)), "in whole ms").toBe(1_234);
    expect(dueTimeOf(jobId(-5, tail)), "not before 1970").toBe(0);
  });

  it("sorts as text by due time", () => {
    const tail = tailSource(random);
    fc.assert(
      fc.property(fc.nat({ max: 2 ** 48 - 1 }), fc.nat({ max: 2 ** 48 - 1 }), (a, b) => {
        fc.pre(a !== b);
        expect(jobId(a, tail("acme")) < jobId(b, tail("acme"))).toBe(a < b);
      }),
    );
  });

  it("is known by its shape", () => {
    const id = jobId(0, tailSource(random)("acme"));
    expect(isJobId(id)).toBe(true);
    expect(isJobId(id.toUpperCase())).toBe(true);
    for (const text of ["", "x", ` ${id}`, `${id}\n`, id.slice(1), id.replaceAll("-", ""), id.replace("0", "g"), `{${id}}`])
      expect(isJobId(text), text).toBe(false);
  });
});

describe("tails", () => {
  it("are three groups of hex digits with version and variant in place", () => {
    const tail = tailSource(random);
    for (let n = 0; n < 2_000; n++) expect(tail("acme")).toMatch(/^7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });

  it("do not repeat, and draw bytes in bulk", () => {
    let draws = 0;
    const tail = tailSource((size) => {
      draws += 1;
      return random(size);
    });
    const tails = new Set<IdTail>();
    for (let n = 0; n < 1_000; n++) tails.add(tail("acme"));
    expect(tails.size).toBe(1_000);
    expect(draws).toBe(2);
  });

  it("use every random bit they may", () => {
    const all = tailSource((size) => new Uint8Array(size).fill(0xff))("");
    const none = tailSource((size) => new Uint8Array(size))("");
    expect([all, none]).toEqual(["7000-80bf-ffffffffffff", "7000-80b0-000000000000"]);
  });
});

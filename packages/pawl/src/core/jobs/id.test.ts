import { randomFillSync } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { dueTimeOf, type IdSuffix, idSuffixSource, isJobId, jobId, shardOf, shardOfTenant } from "./id.js";

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
          const idSuffix = idSuffixSource(() => bytes);
          for (let before = 0; before < count; before++) idSuffix("other");
          expect(jobId(ms, idSuffix(tenant))).toBe(uuidv7(ms, count, shardOfTenant(tenant), bytes));
        },
      ),
    );
  });

  it("tells the shard of its tenant, whatever jobs of others are made between", () => {
    const idSuffix = idSuffixSource(random);
    fc.assert(
      fc.property(fc.array(fc.string(), { minLength: 1 }), (tenants) => {
        for (const tenant of tenants) expect(shardOf(jobId(1_700_000_000_000, idSuffix(tenant)))).toBe(shardOfTenant(tenant));
      }),
    );
  });

  it("has the shard that its tenant had in every release", () => {
    expect(["", "acme", "globex", "größe"].map(shardOfTenant)).toEqual([11, 962, 771, 607]);
  });

  it("comes after those that were made before it for the same time, 4,096 of them", () => {
    const idSuffix = idSuffixSource(random);
    const ids = Array.from({ length: 4_096 }, () => jobId(1_700_000_000_000, idSuffix("acme")));
    expect([...ids].sort()).toEqual(ids);
    expect(jobId(1_700_000_000_000, idSuffix("acme")) < (ids[1] as string), "then it begins anew").toBe(true);
  });

  it("tells its due time", () => {
    const idSuffix = idSuffixSource(random)("acme");
    for (const ms of [0, 1, 1_700_000_000_000, 2 ** 48 - 1]) expect(dueTimeOf(jobId(ms, idSuffix))).toBe(ms);
    expect(dueTimeOf(jobId(1_234.9, idSuffix)), "in whole ms").toBe(1_234);
    expect(dueTimeOf(jobId(-5, idSuffix)), "not before 1970").toBe(0);
  });

  it("sorts as text by due time", () => {
    const idSuffix = idSuffixSource(random);
    fc.assert(
      fc.property(fc.nat({ max: 2 ** 48 - 1 }), fc.nat({ max: 2 ** 48 - 1 }), (a, b) => {
        fc.pre(a !== b);
        expect(jobId(a, idSuffix("acme")) < jobId(b, idSuffix("acme"))).toBe(a < b);
      }),
    );
  });

  it("is known by its shape", () => {
    const id = jobId(0, idSuffixSource(random)("acme"));
    expect(isJobId(id)).toBe(true);
    expect(isJobId(id.toUpperCase())).toBe(true);
    for (const text of ["", "x", ` ${id}`, `${id}\n`, id.slice(1), id.replaceAll("-", ""), id.replace("0", "g"), `{${id}}`])
      expect(isJobId(text), text).toBe(false);
  });
});

describe("id_suffixes", () => {
  it("are three groups of hex digits with version and variant in place", () => {
    const idSuffix = idSuffixSource(random);
    for (let n = 0; n < 2_000; n++) expect(idSuffix("acme")).toMatch(/^7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });

  it("do not repeat, and draw bytes in bulk", () => {
    let draws = 0;
    const idSuffix = idSuffixSource((size) => {
      draws += 1;
      return random(size);
    });
    const idSuffixes = new Set<IdSuffix>();
    for (let n = 0; n < 1_000; n++) idSuffixes.add(idSuffix("acme"));
    expect(idSuffixes.size).toBe(1_000);
    expect(draws).toBe(2);
  });

  it("use every random bit they may", () => {
    const all = idSuffixSource((size) => new Uint8Array(size).fill(0xff))("");
    const none = idSuffixSource((size) => new Uint8Array(size))("");
    expect([all, none]).toEqual(["7000-80bf-ffffffffffff", "7000-80b0-000000000000"]);
  });
});

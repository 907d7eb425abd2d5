import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Priority } from "./job.js";
import { type Lane, laneKey } from "./lane.js";
import { offer } from "./offer.js";

const lane = (tenant = "a", task = "x", band: Priority = 5): Lane => ({ queue: "q", band, tenant, task });
const free = () => Number.POSITIVE_INFINITY;

/** How many jobs each key gets over so many claims, if every lane always has work. */
function served(lanes: readonly Lane[], size: number, turns: number, key: (lane: Lane) => string): Record<string, number> {
  const total: Record<string, number> = {};
  for (let turn = 0; turn < turns; turn++) {
    let left = size;
    for (const { lane: one, quota } of offer(lanes, size, turn, free)) {
      const taken = Math.min(quota, left);
      total[key(one)] = (total[key(one)] ?? 0) + taken;
      left -= taken;
    }
  }
  return total;
}

describe("offer", () => {
  it("gives everything to the only lane", () => {
    expect(offer([lane()], 10, 0, free)).toEqual([{ lane: lane(), quota: 10 }]);
  });

  it("offers nothing without lanes, size or room", () => {
    expect(offer([], 10, 0, free)).toEqual([]);
    expect(offer([lane()], 0, 0, free)).toEqual([]);
    expect(offer([lane()], 10, 0, () => 0)).toEqual([]);
    expect(offer([lane()], 10, 0, () => -1)).toEqual([]);
  });

  it("shares a band alike among tenants, however many tasks one has", () => {
    const lanes = [...Array.from({ length: 50 }, (_, n) => lane("many", `task ${n}`)), lane("one")];
    const total = served(lanes, 10, 100, ({ tenant }) => tenant);
    expect(total).toEqual({ many: 500, one: 500 });
  });

  it("serves every tenant within one round, when there are more of them than slots", () => {
    const lanes = Array.from({ length: 20 }, (_, n) => lane(`tenant ${n}`));
    expect(Object.keys(served(lanes, 1, 20, ({ tenant }) => tenant))).toHaveLength(20);
    expect(Object.keys(served(lanes, 3, 20, ({ tenant }) => tenant))).toHaveLength(20);
  });

  it("leaves out no lane of a tenant, though tenants and lanes are as many", () => {
    for (const size of [1, 2, 3]) {
      const lanes = ["a", "b", "c"].flatMap((tenant) => ["x", "y", "z"].map((task) => lane(tenant, task)));
      const total = served(lanes, size, 90, laneKey);
      expect(Object.values(total), `size ${size}`).toEqual(Array.from({ length: 9 }, () => 10 * size));
    }
  });

  it("shares a flood among bands by weight, and starves none, at any size", () => {
    const lanes = [lane("a", "x", 9), lane("a", "x", 5), lane("a", "x", 0)];
    for (const size of [1, 2, 7, 100]) {
      const total = served(lanes, size, 1_000, ({ band }) => String(band));
      const share = (band: string) => (total[band] ?? 0) / (size * 1_000);
      expect(share("9"), `size ${size}`).toBeCloseTo(45 / 54, 1);
      expect(share("5"), `size ${size}`).toBeCloseTo(8 / 54, 1);
      expect(share("0"), `size ${size}`).toBeGreaterThan(0.01);
    }
  });

  it("gives the lowest band about one part in a hundred under a flood of everything above it", () => {
    const lanes = ([0, 1, 2, 3, 4, 5, 6, 7, 8, 9] as const).map((band) => lane("a", "x", band));
    const total = served(lanes, 1, 10_000, ({ band }) => String(band));
    expect(total["0"]).toBeGreaterThan(50);
    expect(Object.keys(total)).toHaveLength(10);
  });

  it("passes on what a cap keeps from a lane, across tenants and bands", () => {
    const caps = new Map([
      ["x", 3],
      ["y", 0],
    ]);
    const cap = ({ task }: Lane) => caps.get(task) ?? 100;
    const lanes = [lane("a", "x"), lane("b", "z"), lane("a", "y", 9)];
    const quotas = offer(lanes, 10, 0, cap);
    expect(quotas).toEqual([
      { lane: lanes[0], quota: 3 },
      { lane: lanes[1], quota: 7 },
    ]);
  });

  it("never exceeds a cap, and adds up to the size or to all the caps together", () => {
    const lanes: fc.Arbitrary<Lane[]> = fc.uniqueArray(
      fc.record({
        queue: fc.constantFrom("q", "r"),
        band: fc.integer({ min: 0, max: 9 }) as fc.Arbitrary<Priority>,
        tenant: fc.constantFrom("a", "b", "c"),
        task: fc.constantFrom("x", "y", "z"),
      }),
      { selector: laneKey, maxLength: 30 },
    );
    fc.assert(
      fc.property(
        lanes,
        fc.integer({ min: 1, max: 500 }),
        fc.nat(),
        fc.array(fc.nat({ max: 50 }), { minLength: 30, maxLength: 30 }),
        (all, size, turn, caps) => {
          const cap = (one: Lane) => caps[all.indexOf(one)] ?? 0;
          const quotas = offer(all, size, turn, cap);
          for (const { lane: one, quota } of quotas) {
            expect(quota).toBeGreaterThan(0);
            expect(quota).toBeLessThanOrEqual(cap(one));
          }
          const room = all.reduce((sum, one) => sum + cap(one), 0);
          expect(quotas.reduce((sum, { quota }) => sum + quota, 0)).toBe(Math.min(size, room));
          expect(new Set(quotas.map((quota) => quota.lane)).size, "each lane once").toBe(quotas.length);
        },
      ),
    );
  });
});

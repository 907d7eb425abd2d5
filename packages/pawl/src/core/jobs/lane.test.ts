import fc from "fast-check";
import { expect, test } from "vitest";
import type { Priority } from "./job.js";
import { compareLanes, type Lane, laneKey, parseLaneKey } from "./lane.js";

const name = fc.string({ minLength: 1, maxLength: 20 }).filter((text) => !/\p{Cc}/u.test(text));
const priority = fc.constantFrom<Priority>(0, 1, 2, 3);
const anyLane: fc.Arbitrary<Lane> = fc.record({ queue: name, priority, tenant: name, task: name });

test("a lane is read back from its key", () => {
  fc.assert(
    fc.property(anyLane, (lane) => {
      expect(parseLaneKey(laneKey(lane))).toEqual({ ...lane });
    }),
  );
});

test("two lanes have the same key only if they are the same lane", () => {
  fc.assert(
    fc.property(anyLane, anyLane, (a, b) => {
      expect(laneKey(a) === laneKey(b)).toBe(compareLanes(a, b) === 0);
    }),
  );
});

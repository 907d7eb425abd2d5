import { expect, test } from "vitest";
import type { Lane } from "../../core/lane.js";
import { Caps } from "../caps.js";
import { Held } from "./held.js";

const lane: Lane = { queue: "default", band: 5, tenant: "default", task: "resize" };

test("what a worker says it has is taken at once, however much it is, and given back when it says less", () => {
  const takes: number[] = [];
  const cap = { until: "handler", room: () => 0, take: (_: Lane, count: number) => void takes.push(count) } as const;
  const held = new Held(new Caps([cap]));
  held.told([{ lane, count: 50_000 }]);
  held.taken(lane);
  held.told([{ lane, count: 3 }]);
  held.over(lane);
  held.told([]);
  expect(takes).toEqual([50_000, 1, -49_998, -1, -2]);
});

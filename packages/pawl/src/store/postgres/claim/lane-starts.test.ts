import { describe, expect, it } from "vitest";
import type { Lane } from "../../../core/jobs/lane.js";
import { LaneStarts } from "./lane-starts.js";

const lane = (tenant: string): Lane => ({ queue: "q", priority: 5, tenant, task: "x" });

/** A process that looks and claims; `look` finds the lanes it is given, and every other one empty. */
function process() {
  let now = 0;
  let seq = 0;
  const knownLanes = new LaneStarts(() => now);
  return {
    knownLanes,
    look(live: readonly Lane[] = []) {
      const listed = knownLanes.list();
      const heads = listed.map((one) => (live.includes(one.lane) ? { seq: ++seq, admittedSeq: undefined } : undefined));
      knownLanes.observe({ listed, heads, newLanes: [], seq, horizon: { xmin: seq, xact: seq } });
    },
    claim(from: Lane, jobs: number) {
      knownLanes.from(from, now);
      knownLanes.claimed(from, ++seq, jobs, now);
    },
    pass(ms: number) {
      now += ms;
    },
    get listed() {
      return knownLanes.list().map((one) => one.lane.tenant);
    },
  };
}

describe("the lanes a process remembers", () => {
  it("are those it claimed of in the last minute, though they are empty: their dead rows need not be walked again", () => {
    const one = process();
    one.claim(lane("a"), 1);
    one.pass(50_000);
    one.look();
    expect(one.listed).toEqual(["a"]);
    one.claim(lane("a"), 1);
    one.pass(50_000);
    one.look();
    expect(one.listed).toEqual(["a"]);
    one.pass(11_000);
    one.look();
    expect(one.listed).toEqual([]);
  });

  it("are, of thousands that are empty, the ones that most jobs went through", () => {
    const one = process();
    one.claim(lane("busy"), 1_000);
    for (let n = 0; n < 5_000; n++) one.claim(lane(`once ${n}`), 1);
    one.look();
    expect(one.listed).toHaveLength(500);
    expect(one.listed).toContain("busy");
  });

  it("are all that have work, however many", () => {
    const one = process();
    const lanes = Array.from({ length: 5_000 }, (_, n) => lane(`once ${n}`));
    for (const each of lanes) one.claim(each, 1);
    one.look(lanes);
    expect(one.listed).toHaveLength(5_000);
  });

  it("are none where nobody claims, whatever is heard", () => {
    const one = process();
    one.knownLanes.sweepNext(lane("heard of"));
    expect(one.listed).toEqual([]);
  });
});

import { describe, expect, it } from "vitest";
import { START, TestClock } from "../../../conformance/world.js";
import { startPawl } from "../../pawl.js";
import { memoryStore } from "../../store/memory/index.js";

async function pawlAt(clock: TestClock) {
  return startPawl(memoryStore({ now: clock.now }), { maintenance: false });
}

describe("series", () => {
  it("has a point for every step of the last hour, unless asked otherwise", async () => {
    const clock = new TestClock();
    await using pawl = await pawlAt(clock);
    await pawl.enqueueMany("mail", [1, 2, 3]);
    const { from, to, step, series } = await pawl.series();
    expect([from, to, step]).toEqual([new Date(START - 59 * 60_000), new Date(START + 60_000), 60_000]);
    expect(series).toHaveLength(1);
    expect(series[0]?.points).toHaveLength(60);
    expect(series[0]?.points.at(-1)).toMatchObject({ at: new Date(START), enqueued: 3, states: { ready: 3 } });
    expect(series[0]?.points[0]).toMatchObject({ enqueued: 0, states: { ready: 0 } });
  });

  it("is told of queues and tasks by name", async () => {
    await using pawl = await pawlAt(new TestClock());
    await pawl.enqueue("mail", 1, { queue: "slow" });
    await pawl.enqueueMany("sums", [1, 2]);
    const { series } = await pawl.series({ by: "queue", last: "5m", step: "5m" });
    expect(series.map(({ queue, points }) => [queue, points.at(-1)?.enqueued])).toEqual([
      ["default", 2],
      ["slow", 1],
    ]);
    expect((await pawl.series({ task: "mail", by: "queue" })).series).toMatchObject([{ queue: "slow", task: "mail" }]);
  });

  it("refuses what makes no sense, by name", async () => {
    await using pawl = await pawlAt(new TestClock());
    const refused = (of: object, message: RegExp) => expect(pawl.series(of as never)).rejects.toThrow(message);
    await refused({ steps: "1m" }, /of\.steps.*did you mean step/);
    await refused({ step: "90s" }, /of\.step.*whole minutes/);
    await refused({ step: 0 }, /of\.step.*longer than nothing/);
    await refused({ step: "soon" }, /of\.step/);
    await refused({ by: "tenant" }, /of\.by.*queue, task/);
    await refused({ last: "3d" }, /1500 steps/);
    await refused({ from: START - 7 * 86_400_000 }, /1500 steps/);
    await refused({ last: "1h", from: START }, /either last or from/);
    await refused({ from: START, to: START }, /not before/);
    await refused({ queue: "" }, /queue/);
  });

  it("refuses to keep series for no time at all", async () => {
    await expect(startPawl(memoryStore(), { keep: { series: 0 } })).rejects.toThrow(/keep\.series/);
  });
});

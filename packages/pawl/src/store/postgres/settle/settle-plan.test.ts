import { describe, expect, it } from "vitest";
import { firstIdAt, type IdSuffix, type JobId, jobId, type LeaseId } from "../../../core/jobs/id.js";
import type { Lane } from "../../../core/jobs/lane.js";
import type { Patch } from "../../../core/jobs/outcome.js";
import { sqlFile } from "../connection/sql-statement.js";
import { type IndexedSettlement, planSettlement, settleParameters } from "./settle-plan.js";

const START = Date.UTC(2026, 0, 15, 12);
const MINUTE = 60_000;
const LANE: Lane = { queue: "default", priority: 5, tenant: "acme", task: "work" };
const SUCCEEDED: Patch = { outcome: "succeeded", next: "succeeded", attempts: 1, crashes: 0 };
const RETRIED: Patch = { outcome: "failed", next: "ready", attempts: 1, crashes: 0, failure: { kind: "error", name: "Error", message: "no" } };

const idOf = (index: number, at = START): JobId => jobId(at, `7000-8000-${index.toString(16).padStart(12, "0")}` as IdSuffix);

function placed(index: number, more: Partial<IndexedSettlement> & { home?: number } = {}): IndexedSettlement {
  const { home = 1_000 + index, ...rest } = more;
  return {
    lease: "7" as LeaseId,
    job: idOf(index),
    at: { index, home },
    lane: LANE,
    patch: SUCCEEDED,
    startedAt: START,
    finishedAt: START + 10,
    ...rest,
  };
}

const many = (count: number, more: Partial<IndexedSettlement> = {}) => Array.from({ length: count }, (_, index) => placed(index + 1, more));
/** The indexes of each run. */
const indexes = (items: readonly IndexedSettlement[]) => planSettlement(items).runs.map((run) => run.items.map(({ at }) => at.index));
const lengths = (items: readonly IndexedSettlement[]) => planSettlement(items).runs.map((run) => run.items.length);

describe("settlements of one lease", () => {
  it("are one run where their indexes follow each other", () => {
    expect(indexes(many(3))).toEqual([[1, 2, 3]]);
    expect(indexes([placed(1), placed(3), placed(4)])).toEqual([[1], [3, 4]]);
  });

  it("are put in the order of their indexes, and of two for one index the first counts", () => {
    expect(indexes([placed(2), placed(1), placed(3)])).toEqual([[1, 2, 3]]);
    const [run] = planSettlement([placed(1), placed(1, { patch: RETRIED })]).runs;
    expect(run?.items[0].patch).toBe(SUCCEEDED);
    expect(lengths([placed(1), placed(1, { patch: RETRIED })])).toEqual([1]);
  });

  it("are 64 in a run at most", () => {
    expect(lengths(many(150))).toEqual([64, 64, 22]);
  });

  it("are of one lane in a run", () => {
    expect(indexes([placed(1), placed(2, { lane: { ...LANE } }), placed(3, { lane: { ...LANE, task: "other" } })])).toEqual([[1, 2], [3]]);
  });

  it("are of one month in a run, since a row of history goes with its month", () => {
    const february = Date.UTC(2026, 1, 1);
    const [last, first] = [idOf(2, february - 1), idOf(3, february)];
    expect(first >= firstIdAt(february)).toBe(true);
    expect(indexes([placed(1), placed(2, { job: last }), placed(3, { job: first }), placed(4, { job: first })])).toEqual([
      [1, 2],
      [3, 4],
    ]);
  });

  it("have numbers in a run that are near to each other, in whatever order", () => {
    expect(indexes([placed(1, { home: 70_000 }), placed(2, { home: 5_000 }), placed(3, { home: 4_464 })])).toEqual([[1, 2], [3]]);
  });

  it("have outputs in a run that fit into a row", () => {
    const large = { ...SUCCEEDED, output: JSON.stringify("x".repeat(6_000)) };
    expect(indexes([placed(1, { patch: large }), placed(2), placed(3, { patch: large }), placed(4, { patch: large })])).toEqual([[1, 2, 3], [4]]);
  });

  it("are apart from those that took so long that microseconds overflow", () => {
    const late = { finishedAt: START + 36 * MINUTE };
    expect(indexes([placed(1), placed(2), placed(3, late), placed(4, late), placed(5)])).toEqual([[1, 2], [3], [4], [5]]);
  });
});

describe("settlements of several leases", () => {
  it("are sent in the order of the leases' numbers, in which all who settle lock them", () => {
    const { leases } = planSettlement(
      ["10", "9", "101"].flatMap((lease) => [placed(1, { lease: lease as LeaseId }), placed(3, { lease: lease as LeaseId })]),
    );
    expect(leases).toEqual([
      { id: "9", from: 1, to: 2 },
      { id: "10", from: 3, to: 4 },
      { id: "101", from: 5, to: 6 },
    ]);
  });
});

const SETTLE = sqlFile("settle/settle.sql");

describe("what is sent of settlements", () => {
  /** By the names in the statement. */
  const sent = (items: readonly IndexedSettlement[]) => {
    const values = SETTLE.values(settleParameters(planSettlement(items), null, 3));
    return Object.fromEntries(SETTLE.parameters.map(({ name }, index) => [name, values[index]]));
  };

  it("is no more than times and indexes for first attempts that succeeded", () => {
    expect(sent(many(2))).toMatchObject({
      worker: 3,
      since: START / 1_000,
      started: "{0,0}",
      finished: "{10000,10000}",
      outputs: "{}",
      outcomes: "{}",
      failures: "{}",
      "run.first": "{1}",
      "run.last": "{2}",
      "run.home": "{1001}",
      "run.last_home": "{1002}",
      "run.outputs": "{}",
      "run.outcomes_from": "{}",
      "run.ready": "{}",
      "move.run": "{}",
    });
  });

  it("has five numbers and a failure for each of the others", () => {
    expect(sent([placed(1), placed(2, { patch: RETRIED }), placed(4)])).toMatchObject({
      outcomes: "{2,1,2,1,0}",
      failures: '{"{\\"kind\\":\\"error\\",\\"name\\":\\"Error\\",\\"message\\":\\"no\\"}"}',
      "run.outcomes_from": "{1,NULL}",
      "run.outcomes_to": "{1,NULL}",
      "run.ready": "{1,NULL}",
    });
  });

  it("has outputs by index, for runs that have any", () => {
    expect(sent([placed(1), placed(3), placed(4, { patch: { ...SUCCEEDED, output: "1" } })])).toMatchObject({
      outputs: '{NULL,"1"}',
      "run.outputs": "{NULL,1}",
    });
  });

  it("has those that go back to their lane in the order in which they were given", () => {
    const [first, second] = [placed(5, { patch: RETRIED }), placed(2, { patch: RETRIED })];
    expect(sent([first, second, placed(3)])).toMatchObject({ "move.run": "{2,1}", "move.nth": "{1,1}" });
  });
});

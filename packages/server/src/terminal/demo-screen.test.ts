import type { QueueView, StateCounts } from "pawl/service";
import type { RunningJob } from "pawl/worker";
import { describe, expect, test } from "vitest";
import { elapsed } from "../text/amounts.js";
import type { DemoPicture, RecentActivity } from "./demo-board.js";
import { demoScreen, type StyledLine } from "./demo-screen.js";

const none: StateCounts = { blocked: 0, scheduled: 0, ready: 0, parked: 0, running: 0, succeeded: 0, dead: 0, cancelled: 0 };
const queue = (name: string, counts: Partial<StateCounts>): QueueView => ({ queue: name, paused: false, policy: {}, counts: { ...none, ...counts } });
const running = (task: string, more: Partial<RunningJob> = {}): RunningJob => ({
  job: "019a0000-0000-7000-8000-000000000000" as RunningJob["job"],
  lane: { queue: "media", priority: 5, tenant: "default", task },
  attempt: 1,
  startedAt: 0,
  runningFor: 1_500,
  cancelled: false,
  ...more,
});
const activity = (text: string, more: Partial<RecentActivity> = {}): RecentActivity => ({
  kind: "good",
  subject: "mail.welcome",
  text,
  at: new Date(2026, 0, 1, 12, 34, 56),
  times: 1,
  ...more,
});

const picture: DemoPicture = {
  info: {
    engine: "pglite",
    version: "18.6",
    place: "/srv/data",
    durability: "process",
    schema: 1,
    capabilities: { transactions: true, handoff: true, shared: true },
    receivesWakeups: true,
    tasks: [],
  },
  queues: [queue("mail", { ready: 1_200, succeeded: 34_567 }), queue("media", { running: 2, dead: 1 })],
  running: [running("video.encode", { progress: 0.5 }), running("payment.charge", { attempt: 2 })],
  slots: 8,
  recent: Array.from({ length: 50 }, (_, i) => activity(`line ${i}`)),
  rates: [...Array.from({ length: 58 }, () => 0), 10, 3],
  up: 83_000,
  stopping: false,
};

const plain = (line: StyledLine) => line.map(([text]) => text).join("");
const drawn = (changes: Partial<DemoPicture> = {}, size = { columns: 80, rows: 24 }) => demoScreen({ ...picture, ...changes }, size).map(plain);

describe("the live view", () => {
  test("fills 80 by 24, and no line of its own is wider", () => {
    const lines = drawn();
    expect(lines).toHaveLength(24);
    expect(Math.max(...lines.map((line) => line.trimEnd().length))).toBeLessThanOrEqual(80);
  });

  test("says what it stands on, what that does not cover, and for how long", () => {
    expect(drawn()[0]).toMatch(/^ pawl · PGlite 18\.6 · power loss is not covered +up 1:23 $/);
    expect(drawn()[1]).toBe(" data in /srv/data");
    expect(drawn({ api: "http://127.0.0.1:7295" })[1]).toBe(" data in /srv/data · API at http://127.0.0.1:7295");
  });

  test("counts by queue and in all", () => {
    const lines = drawn();
    expect(lines).toContainEqual(expect.stringMatching(/^ mail +1,200 +0 +0 +0 +34,567 +0$/));
    expect(lines).toContainEqual(expect.stringMatching(/^ all +1,200 +2 +0 +0 +34,567 +1$/));
    expect(lines.join("\n")).not.toContain("parked");
    expect(drawn({ queues: [queue("mail", { parked: 1 })] }).join("\n")).toContain("parked");
  });

  test("tells the pace of the last whole seconds", () => {
    expect(drawn()).toContainEqual(expect.stringMatching(/^ +2\.0 jobs\/s +█$/));
  });

  test("shows progress as a bar, and which attempt it is when not the first", () => {
    const lines = drawn();
    expect(lines).toContainEqual(expect.stringMatching(/^ {3}video\.encode +1\.5 s {2}█{12}░{12} {2}50 %/));
    expect(lines).toContainEqual(expect.stringMatching(/^ {3}payment\.charge +1\.5 s +attempt 2$/));
  });

  test("stands still while jobs come and go", () => {
    const at = (lines: readonly string[]) => lines.indexOf(" lately");
    expect(at(drawn({ running: [] }))).toBe(at(drawn()));
    const crowd = drawn({ running: Array.from({ length: 8 }, () => running("page")) });
    expect(at(crowd)).toBe(at(drawn()));
    expect(crowd).toContainEqual(expect.stringMatching(/^ {3}and \d more$/));
  });

  test("ends with the newest, and shows more of them in a higher window", () => {
    expect(drawn().at(-2)).toMatch(/12:34:56 ✓ mail\.welcome +line 49$/);
    const count = (rows: number) => drawn({}, { columns: 120, rows }).filter((line) => line.includes("line ")).length;
    expect(count(40)).toBeGreaterThan(count(24));
  });

  test("never obeys what a failure says to the terminal", () => {
    const lines = drawn({ recent: [activity("\u001b[2Jgone\nnext \u009b1m", { kind: "dead" })] });
    expect(lines).toContain(`   12:34:56 ✗ mail.welcome       [2Jgone next  1m`);
  });

  test("says that it is stopping, and what a second Ctrl-C does", () => {
    expect(drawn({ stopping: true }).at(-1)).toContain("finishing 2 running, then exit … Ctrl-C again exits at once");
  });

  test.each([
    [1, 10],
    [10, 3],
    [20, 12],
    [200, 100],
  ])("fits into %i by %i", (columns, rows) => {
    expect(drawn({}, { columns, rows })).toHaveLength(rows);
  });

  test("tells whole seconds of its own time", () => {
    expect([elapsed(5_999), elapsed(60_000), elapsed(3_725_000)]).toEqual(["0:05", "1:00", "1:02:05"]);
  });
});

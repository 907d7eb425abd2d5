import type { JobView } from "pawl";
import type { LiveLaneView, LiveWorkerView, QueueView, StateCounts } from "pawl/service";
import { describe, expect, test } from "vitest";
import type { StyledLine } from "../demo-screen.js";
import { keysOf } from "../keys.js";
import { NO_DATA, ratesBetween, type TopData } from "./data.js";
import { sheetOf } from "./rows.js";
import { maxScrollOf, topScreen } from "./screen.js";
import { INITIAL_STATE, press, type TopState } from "./state.js";

const none: StateCounts = { blocked: 0, scheduled: 0, ready: 0, parked: 0, running: 0, succeeded: 0, dead: 0, cancelled: 0 };
const queue = (name: string, counts: Partial<StateCounts>, paused = false): QueueView => ({
  queue: name,
  paused,
  policy: {},
  counts: { ...none, ...counts },
});
const NOW = new Date("2026-01-15T12:00:00Z");
const job = (id: string, more: Partial<JobView> = {}): JobView => ({
  id: id as JobView["id"],
  task: "mail.send",
  queue: "mail",
  priority: 5,
  tenant: "acme",
  state: "running",
  input: { to: "ana" },
  createdAt: NOW,
  dueAt: NOW,
  attempts: 0,
  crashes: 0,
  tags: [],
  atMostOnce: false,
  ...more,
});
const lane: LiveLaneView = { lane: { queue: "mail", priority: 5, tenant: "acme", task: "mail.send" }, workers: 0, why: "no worker is live" };
const worker = {
  name: "ana",
  instance: "b",
  since: NOW,
  tasks: ["mail.send"],
  provides: { capabilities: [], resources: {} },
  concurrency: { total: 10 },
  slots: { total: 10, inUse: 4, overrun: 1 },
  oldest: new Date(NOW.getTime() - 300_000),
  version: "0.1.0",
} as LiveWorkerView;

const data: TopData = {
  ...NO_DATA,
  info: {
    engine: "embedded",
    version: "18.6",
    place: "/srv/data",
    durability: "power loss",
    schema: 13,
    capabilities: { transactions: true, handoff: true, shared: true },
    receivesWakeups: true,
    tasks: [],
  },
  queues: [queue("mail", { ready: 1_200, running: 3 }), queue("media", { ready: 5, dead: 2 }, true)],
  rates: new Map([["mail", { done: 12.34, dead: 0 }]]),
  lanes: [lane],
  workers: [worker],
  jobs: [job("j1"), job("j2", { state: "dead", task: "video.encode", failure: { kind: "error", name: "Error", message: "\u001b[2Jgone" } })],
  now: NOW,
};
const plain = (line: StyledLine) => line.map(([text]) => text).join("");
const drawn = (state: TopState, size = { columns: 80, rows: 24 }, of = data) =>
  topScreen(state, of, sheetOf(state.view, of, { sort: state.sort[state.view], filter: state.filter }), size).map(plain);
const keys = (state: TopState, of = data) =>
  sheetOf(state.view, of, { sort: state.sort[state.view], filter: state.filter }).rows.map(({ key }) => key);
const around = (state: TopState, maxScroll = 0) => ({ keys: keys(state), columns: 7, maxScroll });
const after = (...pressed: readonly string[]): TopState => pressed.reduce((state, key) => press(state, key, around(state)).state, INITIAL_STATE);

describe("top", () => {
  test.each([
    [80, 24],
    [20, 5],
    [1, 1],
    [200, 60],
  ])("fills %i by %i in every view", (columns, rows) => {
    for (const state of [INITIAL_STATE, after("2"), after("3"), after("4"), after("4", "enter"), after("/", "m")]) {
      expect(drawn(state, { columns, rows })).toHaveLength(rows);
    }
  });

  test("shows queues by what waits, with their rates, and no line of its own is wider than 80", () => {
    const lines = drawn(INITIAL_STATE);
    expect(lines[0]).toMatch(/^ pawl top · \/srv\/data · embedded P… +1,205 ready · 3 running · 12\.3\/s · \d\d:\d\d:\d\d $/);
    expect(lines[1]).toBe("  1 queues  2 lanes  3 workers  4 jobs ");
    expect(lines[3]).toMatch(/^ queue +ready▾ +running +scheduled +parked +dead +done\/s +dead\/s$/);
    expect(lines[4]).toMatch(/^ mail +1,200 +3 +0 +0 +0 +12\.3 +0 *$/);
    expect(lines[5]).toMatch(/^ media \(paused\) +5 /);
    expect(Math.max(...lines.map((line) => line.trimEnd().length))).toBeLessThanOrEqual(80);
    expect(lines.at(-1)).toMatch(/q quit$/);
  });

  test("shows lanes nobody serves, workers, and jobs", () => {
    expect(drawn(after("2"))[4]).toMatch(/^ mail +5 +acme +mail\.send +0 +no worker is live/);
    expect(drawn(after("3"))[4]).toMatch(/^ ana +0 ms +4 of 10, 1 overrun +5 min +0\.1\.0 +all +mail\.send/);
    const jobs = drawn(after("4"));
    expect(jobs[1]).toMatch(/4 jobs {3}running$/);
    expect(jobs.join("\n")).toContain("Error:  [2Jgone");
  });

  test("chooses, sorts and filters by keys", () => {
    expect(after("down").chosen).toBe("media");
    expect(after("down", "k").chosen).toBe("mail");
    expect(after("end", "down", "j").chosen).toBe("media");
    expect(keys(after("s", "s", "s", "s"))).toEqual(["media", "mail"]);
    expect(keys(after("/", "m", "e", "d"))).toEqual(["media"]);
    expect(drawn(after("/", "m", "e", "d"))[1]).toContain("/med▏");
    expect(keys(after("/", "m", "e", "d", "backspace", "backspace", "backspace"))).toHaveLength(2);
    expect(keys(after("/", "m", "e", "d", "enter", "escape"))).toHaveLength(2);
    expect(after("/", "q").typing).toBe(true);
  });

  test("goes from a queue to its jobs, to one of them, and back", () => {
    const jobs = after("down", "enter");
    expect(jobs).toMatchObject({ view: "jobs", jobs: { state: "running", queue: "media" } });
    expect(after("2", "enter").jobs).toEqual({ state: "ready", queue: "mail", tenant: "acme", task: "mail.send" });
    expect(after("4", "f", "f", "f").jobs.state).toBe("dead");
    const one = after("4", "down", "enter");
    expect(one.job).toBe("j2");
    const history = [
      { outcome: "failed", startedAt: NOW, finishedAt: NOW, duration: 1_500, next: "dead", failure: { kind: "error", name: "Error", message: "no" } },
    ] as const;
    const about = {
      job: job("j2", { state: "dead" }),
      history,
      logs: [],
      explanation: { job: "j2" as JobView["id"], state: "dead", reasons: [], text: "It is dead." },
    } as const;
    const lines = drawn(one, undefined, { ...data, job: about }).join("\n");
    expect(lines).toMatch(/ job +j2\n state +dead\n/);
    expect(lines).toMatch(/1\.5 s failed → dead\n {3}Error: no\n/);
    expect(after("4", "down", "enter", "escape").job).toBeUndefined();
    expect(after("4", "down", "enter", "escape", "escape").view).toBe("queues");
  });

  test("shows a long failure whole, wrapped, newest attempt first, and scrolls where it does not fit", () => {
    const message = (n: number) => `${Array.from({ length: 60 }, (_, index) => `word${index}of${n}`).join(" ")}\nsee shelf ${n}`;
    const failed = (n: number) => ({
      outcome: "failed" as const,
      startedAt: NOW,
      finishedAt: NOW,
      duration: n,
      next: n === 3 ? ("dead" as const) : ("scheduled" as const),
      failure: {
        kind: "error" as const,
        name: "Error",
        message: message(n),
        stack: `Error: ${n}\n    at encode (/app/${"x".repeat(90)}.js:1:2)`,
      },
    });
    const about = {
      job: job("j2", { state: "dead" }),
      history: [failed(1), failed(2), failed(3)],
      logs: [],
      explanation: { job: "j2" as JobView["id"], state: "dead" as const, reasons: [], text: "It is dead." },
    };
    const of = { ...data, job: about };
    const size = { columns: 80, rows: 24 };
    const max = maxScrollOf(of, size);
    const start = after("4", "down", "enter");
    const seen = new Set<string>();
    for (let state = start, at = 0; at <= max; at++) {
      for (const line of drawn(state, size, of)) seen.add(line);
      state = press(state, "down", around(state, max)).state;
    }
    const lines = [...seen].join("\n");
    const words = lines.replace(/\s+/g, " ");
    for (const n of [3, 2, 1]) expect(words).toContain(message(n).replace("\n", " "));
    expect(lines.indexOf("word0of3")).toBeLessThan(lines.indexOf("word0of1"));
    expect(lines.match(/at encode/g)).toHaveLength(1);
    expect(Math.max(...[...seen].map((line) => line.trimEnd().length))).toBeLessThanOrEqual(80);
    const end = press(start, "end", around(start, max)).state;
    expect(drawn(end, size, of).at(-2)).toContain("see shelf 1");
    expect(press(end, "down", around(end, max)).state.scroll).toBe(max);
    expect(press(end, "home", around(end, max)).state.scroll).toBe(0);
    expect(drawn({ ...end, scroll: 1_000 }, size, of)).toEqual(drawn(end, size, of));
  });

  test("asks to pause and to promote what is chosen, and to quit", () => {
    const action = (state: TopState, key: string) => press(state, key, around(state)).action;
    expect(action(INITIAL_STATE, "p")).toEqual({ kind: "pause", view: "queues", key: "mail" });
    expect(action(after("4", "down"), "r")).toEqual({ kind: "promote", view: "jobs", key: "j2" });
    expect(action(after("4", "down", "enter"), "r")).toEqual({ kind: "promote", view: "jobs", key: "j2" });
    expect(action(INITIAL_STATE, "q")).toEqual({ kind: "quit" });
    expect(action(after("/", "a"), "q")).toBeUndefined();
    expect(action(after("/", "a"), "quit")).toEqual({ kind: "quit" });
    expect(press(INITIAL_STATE, "p", { keys: [], columns: 7, maxScroll: 0 }).action).toBeUndefined();
  });

  test("knows keys, several at once, and nothing of what else a terminal sends", () => {
    expect(keysOf("j\x1b[A\x1b[B\r\x1b")).toEqual(["j", "up", "down", "enter", "escape"]);
    expect(keysOf("\x1b[6~/é\x7f\x03")).toEqual(["page-down", "/", "é", "backspace", "quit"]);
    expect(keysOf("\x1b[200~\x1b[99;5u\x01")).toEqual([]);
  });

  test("tells rates by two looks, and none for a queue that is new", () => {
    const rates = ratesBetween(
      [queue("mail", { succeeded: 10 })],
      [queue("mail", { succeeded: 30, dead: 1 }), queue("new", { succeeded: 99 })],
      2_000,
    );
    expect(rates.get("mail")).toEqual({ done: 10, dead: 0.5 });
    expect(rates.get("new")).toEqual({ done: 0, dead: 0 });
  });
});

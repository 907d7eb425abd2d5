import { describe, expect, it } from "vitest";
import { isPawlError } from "../values/error.js";
import { cronOf } from "./cron.js";
import { dstNote, instantIn, lastTick, nextTick, plannedAt, type RecurrenceRule, type Timing } from "./recurrence.js";
import { timeZoneOf } from "./time-zone.js";

const DST = { gap: "shift", overlap: "first" } as const;
const cron = (expression: string, zone = "UTC"): Timing => ({ rule: { kind: "cron", expression, zone, dst: DST } });
const NEW_YEAR = Date.UTC(2026, 0, 1);
const HOUR = 3_600_000;

/** The next few ticks, as texts. */
function next(timing: Timing, count: number, from = NEW_YEAR, seed = "s"): readonly string[] {
  const ticks: string[] = [];
  for (let at = nextTick(timing, seed, from); at !== undefined && ticks.length < count; at = nextTick(timing, seed, at))
    ticks.push(new Date(at).toISOString().slice(0, 19));
  return ticks;
}

describe("cron expressions", () => {
  it.each([
    ["*/20 * * * *", ["2026-01-01T00:20:00", "2026-01-01T00:40:00"]],
    ["*/10 * * * * *", ["2026-01-01T00:00:10", "2026-01-01T00:00:20"]],
    ["0 9 * JAN-MAR MON-FRI", ["2026-01-01T09:00:00", "2026-01-02T09:00:00", "2026-01-05T09:00:00"]],
    ["0 0 L * *", ["2026-01-31T00:00:00", "2026-02-28T00:00:00"]],
    ["0 0 LW * *", ["2026-01-30T00:00:00", "2026-02-27T00:00:00"]],
    ["0 0 15W * *", ["2026-01-15T00:00:00", "2026-02-16T00:00:00"]],
    ["0 0 * * 5#2", ["2026-01-09T00:00:00", "2026-02-13T00:00:00"]],
    ["0 0 * * 5L", ["2026-01-30T00:00:00", "2026-02-27T00:00:00"]],
    ["0 0 13 * 5", ["2026-01-02T00:00:00", "2026-01-09T00:00:00", "2026-01-13T00:00:00"]],
    ["0 0 29 2 *", ["2028-02-29T00:00:00", "2032-02-29T00:00:00"]],
    ["@daily", ["2026-01-02T00:00:00", "2026-01-03T00:00:00"]],
  ])("%s is what it says", (expression, expected) => {
    expect(next(cron(expression), expected.length)).toEqual(expected);
  });

  it("H is a number of the schedule's own, the same every time", () => {
    const times = Array.from({ length: 200 }, (_, n) => next(cron("H H * * *"), 1, NEW_YEAR, `schedule ${n}`)[0]);
    expect(times).toEqual(Array.from({ length: 200 }, (_, n) => next(cron("H H * * *"), 1, NEW_YEAR, `schedule ${n}`)[0]));
    expect(new Set(times).size).toBeGreaterThan(150);
    const hours = new Set(times.map((time) => time?.slice(11, 13)));
    expect(hours.size).toBe(24);
  });

  it("H keeps to its range and its step", () => {
    for (let n = 0; n < 50; n++) {
      const minute = (text: string | undefined) => Number(text?.slice(14, 16));
      expect(minute(next(cron("H(10-19) * * * *"), 1, NEW_YEAR, `${n}`)[0])).toSatisfy((at: number) => at >= 10 && at < 20);
      const [first = 0, second = 0] = next(cron("H/15 * * * *"), 2, NEW_YEAR, `${n}`).map(minute);
      expect((second - first + 60) % 60).toBe(15);
    }
  });

  it.each([
    "",
    "* * * *",
    "* * * * * * *",
    "60 * * * *",
    "* 24 * * *",
    "* * 32 * *",
    "*/0 * * * *",
    "5-1 * * * *",
    "a b c d e",
    "H(0-99) * * * *",
    "H/0 * * * *",
    "* * * * MOM",
    "; drop table",
    `${"1,".repeat(5_000)}1 * * * *`,
    "1,1,1,1,1,1,1,1,1,1,1,1,1,((((( * * * *",
    "*".repeat(100_000),
    "1-2-3 * * * *",
    "* * * * 1#9",
    "0 0 1L * *",
    "0 0 L-3 * *",
    "0 0 0W * *",
    "1/0 * * * *",
    "constructor",
    "__proto__",
  ])("malformed or hostile expression %# is refused with a code, in milliseconds (D8)", (expression) => {
    const start = performance.now();
    let thrown: unknown;
    try {
      cronOf(expression, "s");
    } catch (error) {
      thrown = error;
    }
    expect(isPawlError(thrown, "cron_invalid")).toBe(true);
    expect(performance.now() - start).toBeLessThan(100);
  });

  it("what is wrong with an expression is one sentence", () => {
    expect(() => cronOf("0 3 * * FOO", "s")).toThrow(/\(FOO\) contains illegal characters\. Use/);
  });

  // The last ones ask for a day and a weekday that never meet, which takes a look at every month there is.
  it.each(["0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "0 0 30W 2 *", "0 0 30 2 +MON", "0 0 5 * +MON#4", "* * * 8-31 * +1#1"])(
    "%s has no tick, and that is found in milliseconds (D8)",
    (expression) => {
      nextTick(cron("0 0 31 2 *"), "s", NEW_YEAR);
      const before = process.cpuUsage();
      expect(nextTick(cron(expression, "America/New_York"), "s", NEW_YEAR)).toBeUndefined();
      const { user, system } = process.cpuUsage(before);
      expect((user + system) / 1_000).toBeLessThan(500);
    },
  );
});

describe("intervals and single times", () => {
  it("an interval counts from 1970, or from its start", () => {
    const rule: RecurrenceRule = { kind: "every", every: 25 * 60_000 };
    expect(next({ rule }, 2, Date.UTC(1970, 0, 1))).toEqual(["1970-01-01T00:25:00", "1970-01-01T00:50:00"]);
    expect(next({ rule, start: NEW_YEAR + 1_000 }, 2)).toEqual(["2026-01-01T00:00:01", "2026-01-01T00:25:01"]);
  });

  it("nothing ticks before the start or after the end, and both ends count", () => {
    const hourly = { ...cron("0 * * * *"), start: NEW_YEAR + HOUR, end: NEW_YEAR + 3 * HOUR };
    expect(next(hourly, 10, 0)).toEqual(["2026-01-01T01:00:00", "2026-01-01T02:00:00", "2026-01-01T03:00:00"]);
  });

  it("a single time is one tick", () => {
    expect(next({ rule: { kind: "at", at: NEW_YEAR + 5_000 } }, 3)).toEqual(["2026-01-01T00:00:05"]);
  });

  it("a time without an offset is one of its zone", () => {
    expect(instantIn("Asia/Kathmandu", Date.UTC(2026, 11, 24, 18), DST)).toBe(Date.UTC(2026, 11, 24, 12, 15));
    // In the gap, and in the overlap.
    expect(instantIn("America/New_York", Date.UTC(2026, 2, 8, 2, 30), DST)).toBe(Date.UTC(2026, 2, 8, 7));
    expect(instantIn("America/New_York", Date.UTC(2026, 10, 1, 1, 30), DST)).toBe(Date.UTC(2026, 10, 1, 5, 30));
    expect(instantIn("America/New_York", Date.UTC(2026, 10, 1, 1, 30), { ...DST, overlap: "second" })).toBe(Date.UTC(2026, 10, 1, 6, 30));
  });

  it("a zone that does not exist is refused", () => {
    expect(() => timeZoneOf("Europe/Atlantis")).toThrow(expect.objectContaining({ code: "time_zone_unknown" }));
  });
});

describe("the last tick up to an instant", () => {
  it.each(["* * * * *", "0 0 29 2 *", "30 1 * * *", "0 9 * * 1-5"])("of %s is the one that walking finds", (expression) => {
    const timing = cron(expression, "America/New_York");
    const first = nextTick(timing, "s", Date.UTC(2016, 0, 1)) as number;
    for (const until of [first, first + 1, Date.UTC(2016, 10, 6, 6, 45), Date.UTC(2026, 10, 1, 6, 45), Date.UTC(2026, 5, 1, 12, 0, 30)]) {
      const found = lastTick(timing, "s", first, Math.max(first, until));
      expect(found).toBeLessThanOrEqual(Math.max(first, until));
      expect(nextTick(timing, "s", found - 1)).toBe(found);
      expect(nextTick(timing, "s", found) as number).toBeGreaterThan(until);
    }
  });
});

describe("spread and jitter", () => {
  it("share a window evenly between schedules and ticks, and repeat themselves", () => {
    const timing: Timing = { rule: { kind: "every", every: HOUR }, stagger: 100 };
    const shares = Array.from({ length: 1_000 }, (_, n) => plannedAt(timing, `s${n}`, NEW_YEAR) - NEW_YEAR);
    expect(Math.min(...shares)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...shares)).toBeLessThan(100);
    expect(shares.filter((share) => share < 50).length).toBeGreaterThan(430);
    expect(shares.filter((share) => share < 50).length).toBeLessThan(570);
    expect(plannedAt(timing, "s1", NEW_YEAR + HOUR) - HOUR, "spread is the schedule's").toBe(plannedAt(timing, "s1", NEW_YEAR));
    const jittered = { rule: timing.rule, jitter: 1_000 };
    const own = new Set(Array.from({ length: 50 }, (_, n) => plannedAt(jittered, "s", NEW_YEAR + n * HOUR) - n * HOUR));
    expect(own.size, "jitter is the tick's").toBeGreaterThan(40);
  });
});

describe("notes on ticks where clocks are changed", () => {
  it("say what is odd about them", () => {
    const note = (expression: string, tick: number) => dstNote(cron(expression, "America/New_York").rule, "s", tick);
    expect(note("30 2 * * *", Date.UTC(2026, 2, 8, 7))).toBe("moved out of a gap");
    expect(note("0 3 * * *", Date.UTC(2026, 2, 8, 7))).toBeUndefined();
    expect(note("30 1 * * *", Date.UTC(2026, 10, 1, 5, 30))).toBe("first of two");
    expect(note("30 * * * *", Date.UTC(2026, 10, 1, 6, 30))).toBe("second of two");
    expect(note("30 2 * * *", Date.UTC(2026, 10, 1, 7, 30))).toBeUndefined();
  });
});

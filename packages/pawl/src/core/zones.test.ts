import { describe, expect, it } from "vitest";
import { type DstPolicy, nextTick, type Rule } from "./schedule-rule.js";

/**
 * Schedules against a walker that knows nothing but what a clock on the wall shows, minute by minute, around every
 * change of the clocks. `PAWL_ALL_ZONES=1973-2038` walks through all zones in those years, which takes hours; some are walked always.
 */
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const ALL = process.env.PAWL_ALL_ZONES?.split("-").map(Number);

const ZONES = ALL
  ? Intl.supportedValuesOf("timeZone")
  : [
      "UTC",
      "Europe/Berlin",
      "America/New_York",
      "America/Santiago",
      "America/St_Johns",
      "Australia/Lord_Howe",
      "Pacific/Chatham",
      "Africa/Casablanca",
      "Antarctica/Troll",
      "Asia/Kathmandu",
      "Asia/Beirut",
      "Africa/Cairo",
    ];
const YEARS: readonly [number, number] = [ALL?.[0] ?? 2025, ALL?.[1] ?? 2026];
/** Days that were skipped or lived twice, and other oddities of the past. */
const ONCE: readonly (readonly [zone: string, year: number])[] = [
  ["Pacific/Apia", 2011],
  ["Pacific/Kwajalein", 1993],
  ["America/Boa_Vista", 2000],
  ["America/Caracas", 2016],
  ["Asia/Pyongyang", 2018],
  ["Africa/Casablanca", 2012],
];

const EXPRESSIONS = [
  "30 2 * * *",
  "0 0 * * *",
  "15,45 1,3 * * *",
  "59 23 * * *",
  "30 0 * * 0",
  "0 2 29 3 *",
  "*/20 * * * *",
  "7 * * * *",
  "0 */3 * * *",
];
const POLICIES: readonly DstPolicy[] = [
  { gap: "shift", overlap: "first" },
  { gap: "skip", overlap: "second" },
  { gap: "shift", overlap: "both" },
];

/** What the clock shows, as if it were UTC. */
class WallClock {
  readonly #format: Intl.DateTimeFormat;
  constructor(timeZone: string) {
    const numeric = "numeric";
    const parts = { year: numeric, month: numeric, day: numeric, hour: numeric, minute: numeric } as const;
    this.#format = new Intl.DateTimeFormat("en-GB", { timeZone, calendar: "gregory", hour12: false, ...parts });
  }
  at(instant: number): number {
    const found = Object.fromEntries(this.#format.formatToParts(instant).map(({ type, value }) => [type, Number(value)]));
    return Date.UTC(found.year ?? 0, (found.month ?? 0) - 1, found.day, (found.hour ?? 0) % 24, found.minute);
  }
}

/** The plainest reading of the few kinds of fields used here. */
function named(expression: string, civil: number): boolean {
  const date = new Date(civil);
  const values = [date.getUTCMinutes(), date.getUTCHours(), date.getUTCDate(), date.getUTCMonth() + 1, date.getUTCDay()];
  return expression.split(" ").every((field, index) => {
    if (field === "*") return true;
    const value = values[index] as number;
    if (field.startsWith("*/")) return value % Number(field.slice(2)) === 0;
    return field.split(",").map(Number).includes(value);
  });
}

/** Every tick of a stretch of time, found by looking at the clock each minute. */
function walk(clock: readonly (readonly [instant: number, civil: number])[], expression: string, dst: DstPolicy): readonly number[] {
  const elapsed = expression.split(" ", 2).some((field) => field.startsWith("*"));
  const times = new Map<number, number[]>();
  const ticks = new Set<number>();
  let before: number | undefined;
  for (const [instant, civil] of clock) {
    if (named(expression, civil)) times.set(civil, [...(times.get(civil) ?? []), instant]);
    if (!elapsed && dst.gap === "shift" && before !== undefined) {
      for (let skipped = before + MINUTE; skipped < civil; skipped += MINUTE) if (named(expression, skipped)) ticks.add(instant);
    }
    before = civil;
  }
  for (const instants of times.values()) {
    if (elapsed || dst.overlap === "both") for (const instant of instants) ticks.add(instant);
    else ticks.add((dst.overlap === "first" ? instants[0] : instants.at(-1)) as number);
  }
  return [...ticks].sort((a, b) => a - b);
}

function changes(wall: WallClock, from: number, to: number): readonly number[] {
  const found: number[] = [];
  for (let at = from; at < to; at += 6 * HOUR) if (wall.at(at + 6 * HOUR) - wall.at(at) !== 6 * HOUR) found.push(at);
  return found;
}

function compare(zone: string, [first, last]: readonly [number, number]): number {
  const wall = new WallClock(zone);
  const found = changes(wall, Date.UTC(first, 0, 1), Date.UTC(last, 0, 1));
  // A zone that never changes its clocks is walked once.
  for (const change of found.length === 0 ? [Date.UTC(first, 2, 1)] : found) {
    // Beyond what is compared, so that a time shown twice is seen twice.
    const [from, to] = [change - 26 * HOUR, change + 32 * HOUR];
    const clock: (readonly [number, number])[] = [];
    for (let at = from - 26 * HOUR; at < to + 26 * HOUR; at += MINUTE) clock.push([at, wall.at(at)]);
    for (const expression of EXPRESSIONS) {
      for (const dst of POLICIES) {
        const rule: Rule = { kind: "cron", expression, zone, dst };
        const expected = walk(clock, expression, dst).filter((at) => at >= from && at < to);
        const ticks: number[] = [];
        for (let at = nextTick({ rule }, "s", from - 1); at !== undefined && at < to; at = nextTick({ rule }, "s", at)) ticks.push(at);
        const told = (all: readonly number[]) => all.map((at) => new Date(at).toISOString());
        expect(told(ticks), `${expression} in ${zone}, ${dst.gap} and ${dst.overlap}`).toEqual(told(expected));
      }
    }
  }
  return found.length;
}

describe("ticks are those of a walker over every change of the clocks (D7)", () => {
  for (const zone of ZONES) it(`in ${zone}`, { timeout: ALL ? 600_000 : 60_000 }, () => void compare(zone, YEARS));
  for (const [zone, year] of ONCE) {
    it(`in ${zone} in ${year}`, { timeout: 60_000 }, () => expect(compare(zone, [year, year + 1])).toBeGreaterThan(0));
  }
});

describe("a day that never was", () => {
  it("has no midnight of its own: its tick falls on the next one", () => {
    const rule: Rule = { kind: "cron", expression: "0 0 * * *", zone: "Pacific/Apia", dst: { gap: "shift", overlap: "first" } };
    const before = Date.UTC(2011, 11, 29, 10);
    expect(nextTick({ rule }, "s", before)).toBe(before + DAY);
    expect(nextTick({ rule }, "s", before + DAY)).toBe(before + 2 * DAY);
  });
});

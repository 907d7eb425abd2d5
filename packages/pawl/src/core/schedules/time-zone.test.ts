import { describe, expect, it } from "vitest";
import { type DstPolicy, nextTick, type RecurrenceRule } from "./recurrence.js";

/**
 * Schedules against a walker that knows nothing but what a clock on the wall shows, minute by minute, around every
 * change of the clocks. `PAWL_ALL_ZONES=1973-2038` walks through all zones in those years; some are walked always.
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
    const [numeric, two] = ["numeric", "2-digit"] as const;
    const parts = { year: numeric, month: two, day: two, hour: two, minute: two } as const;
    this.#format = new Intl.DateTimeFormat("en-GB", { timeZone, calendar: "gregory", hourCycle: "h23", ...parts });
  }
  at(instant: number): number {
    // "29/03/2026, 02:30"
    const [day = 0, month = 0, year = 0, hour = 0, minute = 0] = (this.#format.format(instant).match(/\d+/g) ?? []).map(Number);
    return Date.UTC(year, month - 1, day, hour, minute);
  }
  /** Minute by minute. Where half an hour later it shows half an hour more, nobody looks in between. */
  stretch(from: number, to: number): readonly Shown[] {
    const shown: Shown[] = [];
    for (let at = from; at < to; at += HOUR / 2) {
      const civil = this.at(at);
      const steady = this.at(at + HOUR / 2) - civil === HOUR / 2;
      for (let past = 0; past < HOUR / 2; past += MINUTE) shown.push([at + past, steady ? civil + past : this.at(at + past)]);
    }
    return shown;
  }
}

type Shown = readonly [instant: number, civil: number];

/** The plainest reading of the few kinds of fields used here. */
function reader(expression: string): (civil: number) => boolean {
  const fields = expression.split(" ").map((field): ((value: number) => boolean) => {
    if (field === "*") return () => true;
    if (field.startsWith("*/")) return (value) => value % Number(field.slice(2)) === 0;
    const values = new Set(field.split(",").map(Number));
    return (value) => values.has(value);
  });
  return (civil) => {
    const date = new Date(civil);
    const values = [date.getUTCMinutes(), date.getUTCHours(), date.getUTCDate(), date.getUTCMonth() + 1, date.getUTCDay()];
    return fields.every((fits, index) => fits(values[index] as number));
  };
}
const NAMED = new Map(EXPRESSIONS.map((expression) => [expression, reader(expression)]));

/** Every tick of a stretch of time, found by looking at the clock each minute. */
function walk(clock: readonly Shown[], expression: string, dst: DstPolicy): readonly number[] {
  const elapsed = expression.split(" ", 2).some((field) => field.startsWith("*"));
  const named = NAMED.get(expression) as (civil: number) => boolean;
  const times = new Map<number, number[]>();
  const ticks = new Set<number>();
  let before: number | undefined;
  for (const [instant, civil] of clock) {
    if (named(civil)) times.set(civil, [...(times.get(civil) ?? []), instant]);
    if (!elapsed && dst.gap === "shift" && before !== undefined) {
      for (let skipped = before + MINUTE; skipped < civil; skipped += MINUTE) if (named(skipped)) ticks.add(instant);
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
  let before = wall.at(from);
  for (let at = from; at < to; at += 6 * HOUR) {
    const after = wall.at(at + 6 * HOUR);
    if (after - before !== 6 * HOUR) found.push(at);
    before = after;
  }
  return found;
}

/** What was walked, by what the clocks showed: most zones of a continent change theirs together. */
const walked = new Map<string, readonly number[]>();
const REMEMBERED = 50_000;

/** Where the clocks stand and where they are changed: all that a walk depends on. */
function shapeOf(clock: readonly Shown[]): string {
  let shape = `${clock[0]?.[0]}`;
  let offset: number | undefined;
  for (const [instant, civil] of clock) {
    if (civil - instant !== offset) shape += ` ${instant}:${civil - instant}`;
    offset = civil - instant;
  }
  return shape;
}

function remembered(key: string, walkIt: () => readonly number[]): readonly number[] {
  let ticks = walked.get(key);
  if (ticks === undefined) {
    ticks = walkIt();
    if (walked.size >= REMEMBERED) walked.clear();
    walked.set(key, ticks);
  }
  return ticks;
}

function compare(zone: string, [first, last]: readonly [number, number]): number {
  const wall = new WallClock(zone);
  const found = changes(wall, Date.UTC(first, 0, 1), Date.UTC(last, 0, 1));
  // A zone that never changes its clocks is walked once.
  for (const change of found.length === 0 ? [Date.UTC(first, 2, 1)] : found) {
    // Some skipped a day, or lived one twice. A clock that is changed by an hour is itself again soon after.
    const around = Math.abs(wall.at(change + 6 * HOUR) - wall.at(change) - 6 * HOUR) > 2 * HOUR ? 26 * HOUR : 4 * HOUR;
    const [from, to] = [change - around, change + 6 * HOUR + around];
    // Beyond what is compared, so that a time shown twice is seen twice.
    const clock = wall.stretch(from - around, to + around);
    const shape = shapeOf(clock);
    for (const expression of EXPRESSIONS) {
      for (const dst of POLICIES) {
        const rule: RecurrenceRule = { kind: "cron", expression, zone, dst };
        const expected = remembered(`${shape} ${expression} ${dst.gap} ${dst.overlap}`, () =>
          walk(clock, expression, dst).filter((at) => at >= from && at < to),
        );
        const ticks: number[] = [];
        for (let at = nextTick({ rule }, "s", from - 1); at !== undefined && at < to; at = nextTick({ rule }, "s", at)) ticks.push(at);
        if (ticks.length === expected.length && ticks.every((at, index) => at === expected[index])) continue;
        const isoTexts = (all: readonly number[]) => all.map((at) => new Date(at).toISOString());
        expect(isoTexts(ticks), `${expression} in ${zone}, ${dst.gap} and ${dst.overlap}`).toEqual(isoTexts(expected));
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
    const rule: RecurrenceRule = { kind: "cron", expression: "0 0 * * *", zone: "Pacific/Apia", dst: { gap: "shift", overlap: "first" } };
    const before = Date.UTC(2011, 11, 29, 10);
    expect(nextTick({ rule }, "s", before)).toBe(before + DAY);
    expect(nextTick({ rule }, "s", before + DAY)).toBe(before + 2 * DAY);
  });
});

import { pawlError } from "../values/error.js";

/**
 * A stretch of time in which a zone's clocks keep one offset from UTC. Instants and offsets in ms; `end` is the first
 * instant after it. A civil time (what the clocks show, written as if it were UTC) is instant + offset.
 */
export interface OffsetPeriod {
  readonly start: number;
  readonly end: number;
  readonly offset: number;
  /** the offset just before `start`, and from `end` on: smaller than `offset` before a gap, larger before an overlap */
  readonly before: number;
  readonly after: number;
}

const SECOND = 1_000;
const DAY = 86_400_000;
/** The shortest time since 1970 for which clocks were changed and changed back is a week (Boa Vista in 2000). */
const STEP = 6 * DAY;
const MAX_REMEMBERED = 5_000;

/** A time zone by its rules in the tz database, as Intl knows them. */
export class TimeZone {
  readonly #format: Intl.DateTimeFormat;
  /** by year: a zone's changes are looked for once */
  readonly #years = new Map<number, readonly OffsetPeriod[]>();

  constructor(readonly name: string) {
    this.#format = formatOf(name);
  }

  /** ms that its clocks are ahead of UTC */
  offsetAt(instant: number): number {
    const whole = Math.floor(instant / SECOND) * SECOND;
    // "01/15/2026, 12:00:00"
    const text = this.#format.format(whole);
    const part = (from: number, to: number) => Number(text.slice(from, to));
    return Date.UTC(part(6, 10), part(0, 2) - 1, part(3, 5), part(12, 14), part(15, 17), part(18, 20)) - whole;
  }

  /** Stretches end with the year, too, so that nobody looks for a change that never comes. */
  stretchAt(instant: number): OffsetPeriod {
    const year = new Date(instant).getUTCFullYear();
    let stretches = this.#years.get(year);
    if (stretches === undefined) {
      stretches = this.#look(year);
      this.#years.set(year, stretches);
    }
    return stretches.find(({ end }) => instant < end) as OffsetPeriod;
  }

  #look(year: number): readonly OffsetPeriod[] {
    const from = Date.UTC(year, 0, 1);
    const to = Date.UTC(year + 1, 0, 1);
    const stretches: OffsetPeriod[] = [];
    let start = from;
    let before = this.offsetAt(from - SECOND);
    let offset = this.offsetAt(from);
    for (let at = from; at < to; ) {
      const next = Math.min(at + STEP, to);
      const after = this.offsetAt(next);
      if (after !== offset || next === to) {
        const end = after === offset ? to : this.#change(at, next, offset);
        stretches.push({ start, end, offset, before, after });
        before = offset;
        offset = after;
        start = end;
      }
      at = next;
    }
    if (start < to) stretches.push({ start, end: to, offset, before, after: this.offsetAt(to) });
    return stretches;
  }

  /** The first second of (from, to] at which the offset is no longer this one. */
  #change(from: number, to: number, offset: number): number {
    let [same, other] = [from / SECOND, to / SECOND];
    while (other - same > 1) {
      const middle = Math.floor((same + other) / 2);
      if (this.offsetAt(middle * SECOND) === offset) same = middle;
      else other = middle;
    }
    return other * SECOND;
  }
}

const zones = new Map<string, TimeZone>();

/** The zone of that name, or `time_zone_unknown`. */
export function timeZoneOf(name: string): TimeZone {
  let zone = zones.get(name);
  if (zone === undefined) {
    zone = new TimeZone(name);
    if (zones.size >= MAX_REMEMBERED) zones.clear();
    zones.set(name, zone);
  }
  return zone;
}

function formatOf(timeZone: string): Intl.DateTimeFormat {
  const two = "2-digit";
  try {
    return new Intl.DateTimeFormat("en-US", {
      timeZone,
      hourCycle: "h23",
      year: "numeric",
      month: two,
      day: two,
      hour: two,
      minute: two,
      second: two,
    });
  } catch {
    throw pawlError("time_zone_unknown", { zone: timeZone });
  }
}

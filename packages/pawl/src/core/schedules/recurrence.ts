import { shareOf } from "../jobs/spread.js";
import { cronOf } from "./cron.js";
import { type OffsetPeriod, timeZoneOf } from "./time-zone.js";

/** When a schedule ticks. Instants are ms since 1970. */
export type RecurrenceRule =
  | { readonly kind: "cron"; readonly expression: string; readonly zone: string; readonly dst: DstPolicy }
  /** every so many ms from `start`, or from 1970 */
  | { readonly kind: "every"; readonly every: number }
  | { readonly kind: "at"; readonly at: number };

/** What becomes of a time of day that the clocks skip, and of one that they show twice. */
export interface DstPolicy {
  readonly gap: "shift" | "skip";
  readonly overlap: "first" | "second" | "both";
}

export interface Timing {
  readonly rule: RecurrenceRule;
  /** no tick before this, and none after that */
  readonly start?: number;
  readonly end?: number;
  /** ms: the whole schedule is moved by a part of it, its own and always the same */
  readonly stagger?: number;
  /** ms: each tick is moved by a part of it, its own and always the same */
  readonly jitter?: number;
}

/** The first tick after an instant. `seed` (the schedule's name) decides what `H` stands for. */
export function nextTick(timing: Timing, seed: string, after: number): number | undefined {
  const { start = 0, end = Number.POSITIVE_INFINITY } = timing;
  const tick = nextOf(timing.rule, seed, Math.max(after, start - 1), start);
  return tick === undefined || tick > end ? undefined : tick;
}

function nextOf(rule: RecurrenceRule, seed: string, after: number, start: number): number | undefined {
  switch (rule.kind) {
    case "at":
      return rule.at > after ? rule.at : undefined;
    case "every":
      return start + Math.max(0, Math.floor((after - start) / rule.every) + 1) * rule.every;
    case "cron":
      return remembered(rule, seed, after);
  }
}

const MAX_REMEMBERED = 2_000;
const answers = new Map<string, number | undefined>();

/** A herd of schedules that are due at one instant mostly asks the same few questions. */
function remembered(rule: Extract<RecurrenceRule, { kind: "cron" }>, seed: string, after: number): number | undefined {
  const { expression, zone, dst } = rule;
  const own = expression.includes("H") ? seed : "";
  const question = `${after} ${zone} ${dst.gap} ${dst.overlap} ${expression} ${own}`;
  if (answers.has(question)) return answers.get(question);
  const answer = nextInZone(rule, seed, after);
  if (answers.size >= MAX_REMEMBERED) answers.clear();
  answers.set(question, answer);
  return answer;
}

/**
 * Stretch by stretch of one offset, a cron expression is a plain calendar. What is left to decide is at their seams:
 * the civil times a gap leaves out all fall on its end (`shift`) or nowhere, those of an overlap belong to the stretch
 * before it, to the one after it, or to both.
 */
function nextInZone(rule: Extract<RecurrenceRule, { kind: "cron" }>, seed: string, after: number): number | undefined {
  const cron = cronOf(rule.expression, seed);
  const zone = timeZoneOf(rule.zone);
  const { gap, overlap }: DstPolicy = cron.elapsed ? { gap: "skip", overlap: "both" } : rule.dst;
  let stretch = zone.stretchAt(after + 1);
  let asked = Number.POSITIVE_INFINITY;
  let civil: number | undefined;
  /** Asks for each civil time once: most stretches of a yearly schedule have none. */
  const from = (at: number): number | undefined => {
    if (at < asked || (civil !== undefined && civil < at)) {
      asked = at;
      civil = cron.from(at);
    }
    return civil;
  };
  for (;;) {
    const { start, end, offset, before, after: next } = stretch;
    if (gap === "shift" && offset > before && start > after) {
      const skipped = from(start + before);
      if (skipped !== undefined && skipped < start + offset) return start;
    }
    const first = overlap === "first" && offset < before ? start + before : start + offset;
    const last = overlap === "second" && next < offset ? end + next : end + offset;
    const found = from(Math.max(first, after + 1 + offset));
    if (found !== undefined && found < last) return found - offset;
    // A calendar that is over stays so, but for the hours that the clocks may yet show again.
    if (found === undefined && cron.from(end + Math.min(offset, next)) === undefined) return undefined;
    stretch = zone.stretchAt(end);
  }
}

/** The last tick up to an instant, and not before `from`, which is one. Found by halving: any rule, any distance. */
export function lastTick(timing: Timing, seed: string, from: number, until: number): number {
  let last = from;
  let beyond = until;
  for (let next = nextTick(timing, seed, last); next !== undefined && next <= until; next = nextTick(timing, seed, last)) {
    const middle = Math.floor((last + beyond) / 2);
    const later = middle > next ? nextTick(timing, seed, middle) : undefined;
    if (later !== undefined && later <= until) last = later;
    else {
      last = next;
      if (middle > next) beyond = middle;
    }
  }
  return last;
}

/** When a tick is to fire: its time, and the part of the windows that is its own. */
export function plannedAt({ stagger, jitter }: Timing, seed: string, tick: number): number {
  return tick + shareOf(stagger, seed) + shareOf(jitter, `${seed}\u0001${tick}`);
}

/** What is odd about a tick's time of day: for people who look at the next ones. */
export type DstNote = "moved out of a gap" | "first of two" | "second of two";

export function dstNote(rule: RecurrenceRule, seed: string, tick: number): DstNote | undefined {
  if (rule.kind !== "cron") return undefined;
  const zone = timeZoneOf(rule.zone);
  const here = zone.stretchAt(tick);
  if (here.start === tick && here.offset > here.before && !isNamed(rule, seed, tick, here)) return "moved out of a gap";
  if (here.after < here.offset && tick + here.offset >= here.end + here.after) return "first of two";
  if (here.before > here.offset && tick + here.offset < here.start + here.before) return "second of two";
  return undefined;
}

function isNamed(rule: Extract<RecurrenceRule, { kind: "cron" }>, seed: string, tick: number, { offset }: OffsetPeriod): boolean {
  return cronOf(rule.expression, seed).from(tick + offset) === tick + offset;
}

/** The instant of a civil time; one that is skipped or shown twice is read as the policy says. */
export function instantIn(zoneName: string, civil: number, dst: DstPolicy): number {
  const zone = timeZoneOf(zoneName);
  const near = [civil - 86_400_000, civil + 86_400_000].map((at) => civil - zone.offsetAt(at));
  const exact = [...new Set(near)].filter((at) => at + zone.offsetAt(at) === civil).sort((a, b) => a - b);
  if (exact.length > 0) return (dst.overlap === "second" ? exact.at(-1) : exact[0]) as number;
  return zone.stretchAt(Math.max(...near)).start;
}

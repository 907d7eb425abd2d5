import type { Outcome } from "./outcome.js";

/**
 * A breaker of one tenant and task: while what the task depends on is down, its jobs wait and spend no attempts. Pure:
 * every store keeps the value and asks here what follows.
 *
 *     closed ──too many fail──► doubted ──still so when everybody has reported──► open ◄──────┐
 *       ▲                          │                                               │          │
 *       ├────────── no ────────────┘                      a probe succeeds ──► closing ──fails┘
 *       └──────────────────────── every step of the ramp held ─────────────────────┘
 */
export interface Breaker {
  readonly state: BreakerState;
  /** set by a person: it stays as it is until it is reset */
  readonly forced: boolean;
  /** counts its openings. What was claimed under an earlier one says nothing about this one. */
  readonly turn: number;
  /** when it came to this state */
  readonly since: number;
  /** when the next probe may go; only while it is open by itself */
  readonly probeAt?: number;
  /** jobs each worker may have in hand; only while it is closing */
  readonly limit?: number;
  /** closed and doubted: the outcomes of its window; closing: those of this step */
  readonly counts: readonly Counted[];
}

export const BREAKER_STATES = ["closed", "doubted", "open", "closing"] as const;
export type BreakerState = (typeof BREAKER_STATES)[number];

/** When it opens and when it tries again; ms. */
export interface BreakerRule {
  /** the share of failures, above 0 and up to 1: of the last fifth of the window, or of all of it where that has too few outcomes */
  readonly failures: number;
  readonly window: number;
  /** outcomes in the window below which it never opens */
  readonly minimum: number;
  readonly probe: number;
}

/** Outcomes of one part of the window, which began at `at`. */
export interface Counted extends Tally {
  readonly at: number;
}

export interface Tally {
  readonly succeeded: number;
  readonly failed: number;
}

/** What one worker saw since its last report. */
export interface Observed {
  /** of attempts claimed while it was closed; `ago` in ms */
  readonly samples: readonly (Tally & { readonly ago: number })[];
  /** of attempts claimed by leave of an open or closing one */
  readonly passes?: Tally & { readonly turn: number };
}

const PARTS = 10;
const LATELY = 1 / 5;
/** ms of one part of a window */
export function partOf(window: number): number {
  return window / PARTS;
}
/** ms a breaker is doubted before it opens: others, who may see successes, have so long to say so. */
export const DOUBT = 3_000;
/** The ramp: 1, 2, 4 … jobs in hand of each worker; after this many it is closed. */
const LAST_STEP = 32;

export function newBreaker(now: number, turn = 0): Breaker {
  return { state: "closed", forced: false, turn, since: now, counts: [] };
}

/** What follows from a report. */
export function observe(breaker: Breaker, rule: BreakerRule, seen: Observed, now: number): Breaker {
  if (breaker.forced) return breaker;
  if (breaker.state === "closed" || breaker.state === "doubted") return watch(breaker, rule, seen, now);
  const { passes } = seen;
  if (passes === undefined || passes.turn !== breaker.turn) return breaker;
  return breaker.state === "open" ? answered(breaker, rule, passes, now) : ramp(breaker, rule, passes, now);
}

function watch(breaker: Breaker, rule: BreakerRule, { samples, passes }: Observed, now: number): Breaker {
  const all = passes === undefined ? samples : [...samples, { ...passes, ago: 0 }];
  const added = all.reduce((counts, { ago, ...tally }) => add(counts, tally, now - ago, rule.window), breaker.counts);
  const counts = recent(added, rule.window, now);
  const bad = isBad(judged(counts, rule, now), rule, rule.minimum);
  if (breaker.state === "closed") return bad ? { ...breaker, state: "doubted", since: now, counts } : { ...breaker, counts };
  if (!bad) return { ...breaker, state: "closed", since: now, counts };
  return now - breaker.since < DOUBT ? { ...breaker, counts } : opened(breaker, rule, now);
}

function opened(breaker: Breaker, rule: BreakerRule, now: number): Breaker {
  return { state: "open", forced: false, turn: breaker.turn + 1, since: now, probeAt: now + rule.probe, counts: [] };
}

function answered(breaker: Breaker, rule: BreakerRule, { succeeded }: Tally, now: number): Breaker {
  if (succeeded === 0) return { ...breaker, probeAt: now + rule.probe };
  const { probeAt: _, ...rest } = breaker;
  return { ...rest, state: "closing", since: now, limit: 1, counts: [] };
}

/** A step holds if fewer fail than would open it. The next one has room for twice as many. */
function ramp(breaker: Breaker, rule: BreakerRule, passes: Tally, now: number): Breaker {
  const limit = breaker.limit ?? 1;
  const counts = add(breaker.counts, passes, breaker.since, rule.window);
  const seen = total(counts);
  if (seen.succeeded + seen.failed < limit) return { ...breaker, counts };
  if (isBad(seen, rule, 1)) return opened(breaker, rule, now);
  return limit >= LAST_STEP ? newBreaker(now, breaker.turn) : { ...breaker, since: now, limit: limit * 2, counts: [] };
}

/**
 * What an outcome says of what the task depends on; undefined: nothing. Only successes, and failures that trying again
 * could mend, are evidence. A bad input, a cancellation, a snooze, a release and a crash are none; nor is a service that
 * says when to come back, or a store of Pawl's that is away.
 */
export function evidence(outcome: Outcome): keyof Tally | undefined {
  if (outcome.kind === "succeeded") return "succeeded";
  if (outcome.kind !== "failed" || !outcome.retryable || outcome.retryAfter !== undefined) return undefined;
  return outcome.failure.name === "PawlError" ? undefined : "failed";
}

/** Leave for one job to find out; undefined if there is none to give. One that is never answered for is given again. */
export function probe(breaker: Breaker, rule: BreakerRule, now: number): Breaker | undefined {
  if (breaker.probeAt === undefined || now < breaker.probeAt) return undefined;
  return { ...breaker, probeAt: now + rule.probe };
}

/** What a person says of it. Reset: it begins anew, by itself. */
export function force(breaker: Breaker, how: "open" | "closed" | "reset", now: number): Breaker {
  if (how === "reset") return newBreaker(now, breaker.turn);
  if (breaker.forced && breaker.state === how) return breaker;
  return { state: how, forced: true, turn: breaker.turn + (how === "open" ? 1 : 0), since: now, counts: [] };
}

/** ms after which nothing is lost by forgetting one that nobody has reported on. Forced ones are never forgotten. */
export function forgottenAfter(breaker: Breaker, rule: BreakerRule): number {
  return breaker.state === "open" ? Math.max(rule.window, A_DAY) : rule.window;
}
const A_DAY = 86_400_000;

export function total(counts: readonly Tally[]): Tally {
  return counts.reduce((sum, { succeeded, failed }) => ({ succeeded: sum.succeeded + succeeded, failed: sum.failed + failed }), {
    succeeded: 0,
    failed: 0,
  });
}

/** The parts of the window that have not passed. */
export function recent(counts: readonly Counted[], window: number, now: number): readonly Counted[] {
  return counts.filter(({ at }) => at > now - window);
}

/** Adds outcomes to the part of the window they fall in. */
export function add(counts: readonly Counted[], { succeeded, failed }: Tally, when: number, window: number): readonly Counted[] {
  const size = partOf(window);
  const at = Math.floor(when / size) * size;
  if (succeeded === 0 && failed === 0) return counts;
  const known = counts.find((part) => part.at === at);
  const part = { at, succeeded: (known?.succeeded ?? 0) + succeeded, failed: (known?.failed ?? 0) + failed };
  return [...counts.filter((other) => other !== known), part].sort((a, b) => a.at - b.at);
}

/**
 * What is judged: the last fifth of the window, where there is traffic. The successes from before an outage would outnumber its
 * failures for minutes otherwise. With little traffic, all of it.
 */
function judged(counts: readonly Counted[], { window, minimum }: BreakerRule, now: number): Tally {
  const lately = total(recent(counts, window * LATELY, now));
  return lately.succeeded + lately.failed >= minimum ? lately : total(counts);
}

function isBad({ succeeded, failed }: Tally, { failures }: BreakerRule, minimum: number): boolean {
  const all = succeeded + failed;
  return all >= minimum && failed / all >= failures;
}

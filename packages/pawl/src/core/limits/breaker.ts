import type { Outcome } from "../jobs/outcome.js";

/**
 * A breaker of one tenant and task: while what the task depends on is down, its jobs wait and spend no attempts. Pure:
 * every store keeps the value and asks here what follows.
 *
 *     closed ──too many fail──► checking ──still so when everybody has reported──► open ◄──────┐
 *       ▲                          │                                               │          │
 *       ├────────── no ────────────┘                      a probe succeeds ──► half_open ─fails┘
 *       └──────────────────────── every step of the ramp held ─────────────────────┘
 */
export interface Breaker {
  readonly state: BreakerState;
  /** set by a person: it stays as it is until it is reset */
  readonly forced: boolean;
  /** counts its openings. What was claimed under an earlier one says nothing about this one. */
  readonly opening: number;
  /** when it came to this state */
  readonly since: number;
  /** when the next probe may go; only while it is open by itself */
  readonly probeAt?: number;
  /** jobs each worker may have in hand; only while it is half-open */
  readonly limit?: number;
  /** closed and checking: the outcomes of its window; half_open: those of this step */
  readonly counts: readonly CountedOutcomes[];
}

export const BREAKER_STATES = ["closed", "checking", "open", "half_open"] as const;
export type BreakerState = (typeof BREAKER_STATES)[number];

/** When it opens and when it tries again; ms. */
export interface BreakerRule {
  /** the share of failures, above 0 and up to 1: of the last fifth of the window, or of all of it where that has too few outcomes */
  readonly failureRate: number;
  readonly window: number;
  /** outcomes in the window below which it never opens */
  readonly minOutcomes: number;
  readonly probeInterval: number;
}

/** Outcomes of one part of the window, which began at `at`. */
export interface CountedOutcomes extends OutcomeCounts {
  readonly at: number;
}

export interface OutcomeCounts {
  readonly succeeded: number;
  readonly failed: number;
}

/** What one worker saw since its last report. */
export interface ObservedOutcomes {
  /** of attempts claimed while it was closed; `ago` in ms */
  readonly samples: readonly (OutcomeCounts & { readonly ago: number })[];
  /** of attempts claimed by leave of an open or half-open one */
  readonly probes?: OutcomeCounts & { readonly opening: number };
}

const WINDOW_PARTS = 10;
const RECENT_SHARE = 1 / 5;
/** ms of one part of a window */
export function partOf(window: number): number {
  return window / WINDOW_PARTS;
}
/** ms a breaker is checking before it opens: others, who may see successes, have so long to say so. */
export const CHECKING_MS = 3_000;
/** The ramp: 1, 2, 4 … jobs in hand of each worker; after this many it is closed. */
const LAST_RAMP_STEP = 32;

export function newBreaker(now: number, opening = 0): Breaker {
  return { state: "closed", forced: false, opening, since: now, counts: [] };
}

/** What follows from a report. */
export function observe(breaker: Breaker, rule: BreakerRule, seen: ObservedOutcomes, now: number): Breaker {
  if (breaker.forced) return breaker;
  if (breaker.state === "closed" || breaker.state === "checking") return watch(breaker, rule, seen, now);
  const { probes } = seen;
  if (probes === undefined || probes.opening !== breaker.opening) return breaker;
  return breaker.state === "open" ? answered(breaker, rule, probes, now) : ramp(breaker, rule, probes, now);
}

function watch(breaker: Breaker, rule: BreakerRule, { samples, probes }: ObservedOutcomes, now: number): Breaker {
  const all = probes === undefined ? samples : [...samples, { ...probes, ago: 0 }];
  const added = all.reduce((counts, { ago, ...counter }) => add(counts, counter, now - ago, rule.window), breaker.counts);
  const counts = recent(added, rule.window, now);
  const bad = isBad(judged(counts, rule, now), rule, rule.minOutcomes);
  if (breaker.state === "closed") return bad ? { ...breaker, state: "checking", since: now, counts } : { ...breaker, counts };
  if (!bad) return { ...breaker, state: "closed", since: now, counts };
  return now - breaker.since < CHECKING_MS ? { ...breaker, counts } : opened(breaker, rule, now);
}

function opened(breaker: Breaker, rule: BreakerRule, now: number): Breaker {
  return { state: "open", forced: false, opening: breaker.opening + 1, since: now, probeAt: now + rule.probeInterval, counts: [] };
}

function answered(breaker: Breaker, rule: BreakerRule, { succeeded }: OutcomeCounts, now: number): Breaker {
  if (succeeded === 0) return { ...breaker, probeAt: now + rule.probeInterval };
  const { probeAt: _, ...rest } = breaker;
  return { ...rest, state: "half_open", since: now, limit: 1, counts: [] };
}

/** A step holds if fewer fail than would open it. The next one has room for twice as many. */
function ramp(breaker: Breaker, rule: BreakerRule, probes: OutcomeCounts, now: number): Breaker {
  const limit = breaker.limit ?? 1;
  const counts = add(breaker.counts, probes, breaker.since, rule.window);
  const seen = total(counts);
  if (seen.succeeded + seen.failed < limit) return { ...breaker, counts };
  if (isBad(seen, rule, 1)) return opened(breaker, rule, now);
  return limit >= LAST_RAMP_STEP ? newBreaker(now, breaker.opening) : { ...breaker, since: now, limit: limit * 2, counts: [] };
}

/**
 * What an outcome says of what the task depends on; undefined: nothing. Only successes, and failures that trying again
 * could mend, are evidence. A bad input, a cancellation, a snooze, a release and a crash are none; nor is a service that
 * says when to come back, or a store of Pawl's that is away.
 */
export function evidence(outcome: Outcome): keyof OutcomeCounts | undefined {
  if (outcome.kind === "succeeded") return "succeeded";
  if (outcome.kind !== "failed" || !outcome.retryable || outcome.retryAfter !== undefined) return undefined;
  return outcome.failure.name === "PawlError" ? undefined : "failed";
}

/** Leave for one job to find out; undefined if there is none to give. One that is never answered for is given again. */
export function probe(breaker: Breaker, rule: BreakerRule, now: number): Breaker | undefined {
  if (breaker.probeAt === undefined || now < breaker.probeAt) return undefined;
  return { ...breaker, probeAt: now + rule.probeInterval };
}

/** What a person says of it. Reset: it begins anew, by itself. */
export function force(breaker: Breaker, how: "open" | "closed" | "reset", now: number): Breaker {
  if (how === "reset") return newBreaker(now, breaker.opening);
  if (breaker.forced && breaker.state === how) return breaker;
  return { state: how, forced: true, opening: breaker.opening + (how === "open" ? 1 : 0), since: now, counts: [] };
}

/** ms after which nothing is lost by forgetting one that nobody has reported on. Forced ones are never forgotten. */
export function forgottenAfter(breaker: Breaker, rule: BreakerRule): number {
  return breaker.state === "open" ? Math.max(rule.window, DAY_MS) : rule.window;
}
const DAY_MS = 86_400_000;

export function total(counts: readonly OutcomeCounts[]): OutcomeCounts {
  return counts.reduce((sum, { succeeded, failed }) => ({ succeeded: sum.succeeded + succeeded, failed: sum.failed + failed }), {
    succeeded: 0,
    failed: 0,
  });
}

/** The parts of the window that have not passed. */
export function recent(counts: readonly CountedOutcomes[], window: number, now: number): readonly CountedOutcomes[] {
  return counts.filter(({ at }) => at > now - window);
}

/** Adds outcomes to the part of the window they fall in. */
export function add(
  counts: readonly CountedOutcomes[],
  { succeeded, failed }: OutcomeCounts,
  when: number,
  window: number,
): readonly CountedOutcomes[] {
  const size = partOf(window);
  const at = Math.floor(when / size) * size;
  if (succeeded === 0 && failed === 0) return counts;
  const existing = counts.find((part) => part.at === at);
  const part = { at, succeeded: (existing?.succeeded ?? 0) + succeeded, failed: (existing?.failed ?? 0) + failed };
  return [...counts.filter((other) => other !== existing), part].sort((a, b) => a.at - b.at);
}

/**
 * What is judged: the last fifth of the window, where there is traffic. The successes from before an outage would outnumber its
 * failures for minutes otherwise. With little traffic, all of it.
 */
function judged(counts: readonly CountedOutcomes[], { window, minOutcomes }: BreakerRule, now: number): OutcomeCounts {
  const lately = total(recent(counts, window * RECENT_SHARE, now));
  return lately.succeeded + lately.failed >= minOutcomes ? lately : total(counts);
}

function isBad({ succeeded, failed }: OutcomeCounts, { failureRate }: BreakerRule, minimum: number): boolean {
  const all = succeeded + failed;
  return all >= minimum && failed / all >= failureRate;
}

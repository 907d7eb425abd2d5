import type { LimitKeyId, LimitReason, LimitRequirement, LimitRule } from "./limit-rule.js";
import { spend, tokensIn } from "./token-bucket.js";

/** A limit key as it stands while somebody holds its lock. */
export interface LimitKeyState {
  readonly rule: LimitRule;
  /** jobs that hold a slot */
  holders: number;
  /** jobs that took a token and wait for a worker */
  waitingForWorker: number;
  /** when the bucket of its rate is full again */
  fullAt: number | undefined;
  /** nobody passes until then */
  readonly pausedUntil: number | undefined;
  /** when it was last looked at, nobody else could pass: who is let in next has waited */
  closed: boolean;
}

/** What a job takes of a limit key: a slot among those that may run, the slot of a serial key, or a token. */
export interface TakenSlot {
  readonly kind: "key" | "serial" | "rate";
  readonly limitKey: LimitKeyId;
}

/** Passed all its limit keys; or waits at one of them, maybe until a time that is known. */
export type AdmissionVerdict =
  | { readonly kind: "admitted"; readonly slots: readonly TakenSlot[] }
  | {
      readonly kind: "waits";
      readonly at: LimitRequirement;
      readonly reason: LimitReason;
      readonly until?: number;
      readonly slots: readonly TakenSlot[];
    };

interface ClosedReason {
  readonly reason: LimitReason;
  readonly until?: number;
}

/**
 * Lets one job through all its limit keys, or through none: nobody holds a slot of one while it waits for another. The one
 * exception is the slot of a serial key, which it takes as soon as it is free: otherwise one that came later could be
 * let in before it. A job has at most one and asks for it first, so that no two jobs wait for each other.
 *
 * `holdsSerialSlot`: it holds the slot of its serial key from before. Changes the limit keys that it takes something of.
 */
export function tryAdmit(
  requirements: readonly LimitRequirement[],
  holdsSerialSlot: boolean,
  limitKeys: ReadonlyMap<LimitKeyId, LimitKeyState>,
  now: number,
): AdmissionVerdict {
  const [first] = requirements;
  const serial = first !== undefined && limitKeys.get(first.limitKey)?.rule.serial === true ? first : undefined;
  const slots: TakenSlot[] = [];
  if (serial !== undefined && !holdsSerialSlot) {
    const limitKey = limitKeys.get(serial.limitKey) as LimitKeyState;
    if (limitKey.holders > 0) return { kind: "waits", at: serial, reason: "serial", slots };
    limitKey.holders++;
    slots.push({ kind: "serial", limitKey: serial.limitKey });
  }
  for (const at of requirements) {
    const closed = closedFor(limitKeys.get(at.limitKey) as LimitKeyState, at.cost, at === serial, now);
    if (closed !== undefined) return { kind: "waits", at, ...closed, slots };
  }
  for (const at of requirements) slots.push(...takeSlots(limitKeys.get(at.limitKey) as LimitKeyState, at, at === serial, now));
  return { kind: "admitted", slots };
}

/** `own`: the serial slot is the job's, so what is left to ask for is a token. */
function closedFor(
  { rule, holders, waitingForWorker, fullAt, pausedUntil }: LimitKeyState,
  cost: number,
  own: boolean,
  now: number,
): ClosedReason | undefined {
  if (pausedUntil !== undefined && pausedUntil > now) return { reason: "key_paused", until: pausedUntil };
  if (!own && holders >= slotsOf(rule)) return { reason: rule.serial === true ? "serial" : "concurrency" };
  if (rule.rate === undefined) return undefined;
  const price = Math.min(cost, rule.rate.burst);
  const wait = tokensIn(rule.rate, fullAt, now, price);
  if (wait > 0) return { reason: "rate", until: now + wait };
  if (waitingForWorker > 0 && (waitingForWorker + 1) * price > rule.rate.burst) return { reason: "rate", until: now + recheckIn(fullAt, now) };
  return undefined;
}

const MIN_RECHECK_MS = 20;
const MAX_RECHECK_MS = 1_000;

/**
 * Tokens are taken when a job becomes ready. Were they given out while no worker takes them, all of those jobs could
 * start at once; so no more than a burst of them waits for workers. Nothing is written when one starts: the longer none
 * was let in, the later the next look.
 */
function recheckIn(fullAt: number | undefined, now: number): number {
  return Math.min(MAX_RECHECK_MS, Math.max(MIN_RECHECK_MS, now - (fullAt ?? now)));
}

function takeSlots(limitKey: LimitKeyState, { limitKey: key, cost }: LimitRequirement, own: boolean, now: number): readonly TakenSlot[] {
  const { rate } = limitKey.rule;
  const slots: TakenSlot[] = [];
  if (!own && slotsOf(limitKey.rule) < Number.POSITIVE_INFINITY) {
    limitKey.holders++;
    slots.push({ kind: "key", limitKey: key });
  }
  if (rate !== undefined) {
    limitKey.fullAt = spend(rate, limitKey.fullAt, now, Math.min(cost, rate.burst));
    limitKey.waitingForWorker++;
    slots.push({ kind: "rate", limitKey: key });
  }
  return slots;
}

function slotsOf({ concurrency, serial }: LimitRule): number {
  return serial === true ? 1 : (concurrency ?? Number.POSITIVE_INFINITY);
}

/** How many of a limit queue it makes sense to look at: no more than could pass. */
export function slotsLeft({ rule, holders }: LimitKeyState, most: number): number {
  return Math.max(0, Math.min(most, slotsOf(rule) - holders));
}

/** Where nobody waits: closed to the next one if there is no slot left. */
export function updateClosed(limitKey: LimitKeyState): void {
  limitKey.closed = slotsLeft(limitKey, 1) === 0;
}

/** Somebody passed it. Where others wait, they go on waiting: it stays closed, whoever came through another limit key. */
function updateOpen(limitKey: LimitKeyState): void {
  if (!limitKey.closed) updateClosed(limitKey);
}

/** A job at the head of a limit queue, with what it must pass. */
export interface QueuedJob<Job> {
  readonly job: Job;
  readonly requirements: readonly LimitRequirement[];
  /** it holds the slot of its serial key from before */
  readonly holdsSerialSlot: boolean;
}

/** What became of the head of a limit queue. */
export interface AdmissionRound<Job> {
  readonly admitted: readonly { readonly job: Job; readonly slots: readonly TakenSlot[] }[];
  /** those that are let in have waited: they go to the admitted section of their lanes */
  readonly waited: boolean;
  /** those that were looked at and wait on, each at the limit key that is closed to it */
  readonly waiting: readonly {
    readonly job: Job;
    readonly at: LimitRequirement;
    readonly reason: LimitReason;
    readonly slots: readonly TakenSlot[];
    readonly hasSerialSlot: boolean;
  }[];
  /** when to look at limit keys again */
  readonly limitChecks: ReadonlyMap<LimitKeyId, number>;
  /** the limit key is closed, so that nobody behind them can pass either */
  readonly closed: boolean;
}

/**
 * Lets in the first of a limit key's queue, in order. One that another limit key is closed to goes to wait there, so that it is in
 * nobody's way here; one that this limit key is closed to ends the round, so that nobody overtakes it. Changes the limit keys.
 */
export function admitFromQueue<Job>(
  limitKey: LimitKeyId,
  limitQueue: readonly QueuedJob<Job>[],
  limitKeys: ReadonlyMap<LimitKeyId, LimitKeyState>,
  now: number,
): AdmissionRound<Job> {
  const own = limitKeys.get(limitKey) as LimitKeyState;
  const waited = own.closed;
  const admitted: AdmissionRound<Job>["admitted"][number][] = [];
  const waiting: AdmissionRound<Job>["waiting"][number][] = [];
  const limitChecks = new Map<LimitKeyId, number>();
  for (const { job, requirements, holdsSerialSlot } of limitQueue) {
    // Its last slot was taken through another limit key: as at every full one, nobody is looked at.
    if (own.rule.serial !== true && slotsLeft(own, 1) === 0) return { admitted, waiting, waited, limitChecks, closed: true };
    const verdict = tryAdmit(requirements, holdsSerialSlot, limitKeys, now);
    if (verdict.kind === "admitted") {
      admitted.push({ job, slots: verdict.slots });
      for (const { limitKey: required } of requirements) updateOpen(limitKeys.get(required) as LimitKeyState);
      continue;
    }
    const { at, reason, slots, until } = verdict;
    const hasSerialSlot = (holdsSerialSlot || slots.length > 0) && at === requirements[0];
    waiting.push({ job, at, reason, slots, hasSerialSlot });
    (limitKeys.get(at.limitKey) as LimitKeyState).closed = true;
    if (until !== undefined) limitChecks.set(at.limitKey, Math.min(until, limitChecks.get(at.limitKey) ?? until));
    if (at.limitKey === limitKey) return { admitted, waiting, waited, limitChecks, closed: true };
  }
  return { admitted, waiting, waited, limitChecks, closed: false };
}

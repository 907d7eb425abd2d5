import type { GateKey, GateReason, LimitRule, Pass } from "./limit.js";
import { spend, tokensIn } from "./rate.js";

/** A gate as it stands while somebody holds its lock. */
export interface Gate {
  readonly rule: LimitRule;
  /** jobs that hold a place or the turn */
  held: number;
  /** jobs that took a token and wait for a worker */
  unstarted: number;
  /** when the bucket of its rate is full again */
  fullAt: number | undefined;
  /** nobody passes until then */
  readonly pausedUntil: number | undefined;
  /** when it was last looked at, nobody else could pass: who is let in next has waited */
  closed: boolean;
}

/** What a job takes of a gate: a place among those that may run, the turn of a serial key, or a token. */
export interface TakenSlot {
  readonly kind: "key" | "serial" | "rate";
  readonly gate: GateKey;
}

/** Passed all its gates; or waits at one of them, maybe until a time that is known. */
export type Verdict =
  | { readonly kind: "admitted"; readonly slots: readonly TakenSlot[] }
  | { readonly kind: "waits"; readonly at: Pass; readonly reason: GateReason; readonly until?: number; readonly slots: readonly TakenSlot[] };

interface Closed {
  readonly reason: GateReason;
  readonly until?: number;
}

/**
 * Lets one job through all its gates, or through none: nobody holds a place of one while it waits for another. The one
 * exception is the turn of a serial key, which it takes as soon as it is free: otherwise one that came later could be
 * let in before it. A job has at most one and asks for it first, so that no two jobs wait for each other.
 *
 * `keepsTurn`: it holds its turn from before. Changes the gates that it takes something of.
 */
export function pass(passes: readonly Pass[], keepsTurn: boolean, gates: ReadonlyMap<GateKey, Gate>, now: number): Verdict {
  const [first] = passes;
  const serial = first !== undefined && gates.get(first.gate)?.rule.serial === true ? first : undefined;
  const slots: TakenSlot[] = [];
  if (serial !== undefined && !keepsTurn) {
    const gate = gates.get(serial.gate) as Gate;
    if (gate.held > 0) return { kind: "waits", at: serial, reason: "serial", slots };
    gate.held++;
    slots.push({ kind: "serial", gate: serial.gate });
  }
  for (const at of passes) {
    const closed = closedTo(gates.get(at.gate) as Gate, at.cost, at === serial, now);
    if (closed !== undefined) return { kind: "waits", at, ...closed, slots };
  }
  for (const at of passes) slots.push(...take(gates.get(at.gate) as Gate, at, at === serial, now));
  return { kind: "admitted", slots };
}

/** `own`: the turn is the job's, so what is left to ask for is a token. */
function closedTo({ rule, held, unstarted, fullAt, pausedUntil }: Gate, cost: number, own: boolean, now: number): Closed | undefined {
  if (pausedUntil !== undefined && pausedUntil > now) return { reason: "key_paused", until: pausedUntil };
  if (!own && held >= placesOf(rule)) return { reason: rule.serial === true ? "serial" : "concurrency" };
  if (rule.rate === undefined) return undefined;
  const price = Math.min(cost, rule.rate.burst);
  const wait = tokensIn(rule.rate, fullAt, now, price);
  if (wait > 0) return { reason: "rate", until: now + wait };
  if (unstarted > 0 && (unstarted + 1) * price > rule.rate.burst) return { reason: "rate", until: now + lookAgain(fullAt, now) };
  return undefined;
}

const SOONEST = 20;
const LATEST = 1_000;

/**
 * Tokens are taken when a job becomes ready. Were they given out while no worker takes them, all of those jobs could
 * start at once; so no more than a burst of them waits for workers. Nothing is written when one starts: the longer none
 * was let in, the later the next look.
 */
function lookAgain(fullAt: number | undefined, now: number): number {
  return Math.min(LATEST, Math.max(SOONEST, now - (fullAt ?? now)));
}

function take(gate: Gate, { gate: key, cost }: Pass, own: boolean, now: number): readonly TakenSlot[] {
  const { rate } = gate.rule;
  const slots: TakenSlot[] = [];
  if (!own && placesOf(gate.rule) < Number.POSITIVE_INFINITY) {
    gate.held++;
    slots.push({ kind: "key", gate: key });
  }
  if (rate !== undefined) {
    gate.fullAt = spend(rate, gate.fullAt, now, Math.min(cost, rate.burst));
    gate.unstarted++;
    slots.push({ kind: "rate", gate: key });
  }
  return slots;
}

function placesOf({ concurrency, serial }: LimitRule): number {
  return serial === true ? 1 : (concurrency ?? Number.POSITIVE_INFINITY);
}

/** How many of a line it makes sense to look at: no more than could pass. */
export function roomOf({ rule, held }: Gate, most: number): number {
  return Math.max(0, Math.min(most, placesOf(rule) - held));
}

/** Where nobody waits: closed to the next one if there is no place left. */
export function lookedAt(gate: Gate): void {
  gate.closed = roomOf(gate, 1) === 0;
}

/** Somebody passed it. Where others wait, they go on waiting: it stays closed, whoever came through another gate. */
function stillOpen(gate: Gate): void {
  if (!gate.closed) lookedAt(gate);
}

/** A job at the head of a line, with what it must pass. */
export interface InLine<Job> {
  readonly job: Job;
  readonly passes: readonly Pass[];
  /** it holds its turn of a serial key from before */
  readonly keepsTurn: boolean;
}

/** What became of the head of a line. */
export interface Round<Job> {
  readonly admitted: readonly { readonly job: Job; readonly slots: readonly TakenSlot[] }[];
  /** those that are let in have waited: they go to the front of their lanes */
  readonly waited: boolean;
  /** those that were looked at and wait on, each at the gate that is closed to it */
  readonly waiting: readonly {
    readonly job: Job;
    readonly at: Pass;
    readonly reason: GateReason;
    readonly slots: readonly TakenSlot[];
    readonly turn: boolean;
  }[];
  /** when to look at gates again */
  readonly knocks: ReadonlyMap<GateKey, number>;
  /** the gate is closed, so that nobody behind them can pass either */
  readonly closed: boolean;
}

/**
 * Lets in the first of a gate's line, in order. One that another gate is closed to goes to wait there, so that it is in
 * nobody's way here; one that this gate is closed to ends the round, so that nobody overtakes it. Changes the gates.
 */
export function letIn<Job>(gate: GateKey, line: readonly InLine<Job>[], gates: ReadonlyMap<GateKey, Gate>, now: number): Round<Job> {
  const own = gates.get(gate) as Gate;
  const waited = own.closed;
  const admitted: Round<Job>["admitted"][number][] = [];
  const waiting: Round<Job>["waiting"][number][] = [];
  const knocks = new Map<GateKey, number>();
  for (const { job, passes, keepsTurn } of line) {
    // Its last place was taken through another gate: as at every full one, nobody is looked at.
    if (own.rule.serial !== true && roomOf(own, 1) === 0) return { admitted, waiting, waited, knocks, closed: true };
    const verdict = pass(passes, keepsTurn, gates, now);
    if (verdict.kind === "admitted") {
      admitted.push({ job, slots: verdict.slots });
      for (const { gate: passed } of passes) stillOpen(gates.get(passed) as Gate);
      continue;
    }
    const { at, reason, slots, until } = verdict;
    const turn = (keepsTurn || slots.length > 0) && at === passes[0];
    waiting.push({ job, at, reason, slots, turn });
    (gates.get(at.gate) as Gate).closed = true;
    if (until !== undefined) knocks.set(at.gate, Math.min(until, knocks.get(at.gate) ?? until));
    if (at.gate === gate) return { admitted, waiting, waited, knocks, closed: true };
  }
  return { admitted, waiting, waited, knocks, closed: false };
}

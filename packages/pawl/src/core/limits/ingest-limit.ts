import { checkKeys, checkObject, checkWhole, invalid } from "../values/option.js";
import { checkRate, type Rate, type RateOptions, spend, tokens, tokensIn } from "./token-bucket.js";

/** How many jobs may come in under one name, and how many may wait there. */
export interface Ingest {
  readonly rate?: Rate;
  /** jobs that are ready or parked */
  readonly depth?: number;
}

export interface IngestOptions {
  readonly rate?: string | RateOptions;
  readonly depth?: number;
}

const KEYS: ReadonlySet<string> = new Set(["rate", "depth"] satisfies readonly (keyof IngestOptions)[]);
const MAX_DEPTH = 1_000_000_000;

export function checkIngest(option: string, value: unknown): Ingest {
  const { rate, depth } = checkObject(option, value) as IngestOptions;
  checkKeys(value as object, KEYS, `${option}.`);
  if (rate === undefined && depth === undefined) throw invalid(option, "it limits nothing; null takes it away");
  return {
    ...(rate === undefined ? {} : { rate: checkRate(`${option}.rate`, rate) }),
    ...(depth === undefined ? {} : { depth: checkWhole(`${option}.depth`, depth, 1, MAX_DEPTH) }),
  };
}

/** An ingest limit and what it is on. */
export interface IngestLimit extends Ingest {
  readonly kind: "tenant" | "queue";
  readonly name: string;
}

/** What is remembered of one limit between two calls. */
export interface IngestState {
  /** when the bucket of its rate is full again */
  readonly fullAt?: number;
  /** the depth as it was last counted, and jobs let in since then */
  readonly depth: number;
  readonly since: number;
  readonly countedAt?: number;
  /** not counted again before this */
  readonly countAgainAt?: number;
  /** jobs that left it per ms, between the last two counts */
  readonly drain?: number;
}

export const UNUSED: IngestState = { depth: 0, since: 0 };

/** New jobs that are let in together or not at all. */
export interface IngestDemand {
  readonly perLimit: readonly {
    /** which of the limits, by index */
    readonly limit: number;
    readonly jobs: number;
    /** those of them that wait from now on, and not for their time or other jobs */
    readonly waiting: number;
  }[];
}

export type IngestAdmission =
  | { readonly kind: "admitted" }
  | { readonly kind: "refused"; readonly by: Pick<IngestLimit, "kind" | "name">; readonly limit: "rate" | "depth"; readonly retryAfter: number };

/**
 * Judges demands one by one, each seeing what those before it took. A demand larger than the burst is let in by a full
 * bucket and leaves it in debt: the rate holds over time, and a batch is not cut into pieces for it.
 */
export function admitIngest(
  limits: readonly IngestLimit[],
  before: readonly IngestState[],
  demands: readonly IngestDemand[],
  now: number,
): { readonly states: readonly IngestState[]; readonly admissions: readonly IngestAdmission[] } {
  const states = [...before];
  const admissions = demands.map(({ perLimit }): IngestAdmission => {
    let refused: Extract<IngestAdmission, { kind: "refused" }> | undefined;
    for (const { limit, jobs, waiting } of perLimit) {
      const { kind, name, rate, depth } = limits[limit] as IngestLimit;
      const state = states[limit] as IngestState;
      const short: readonly ["rate" | "depth", number][] = [
        ["rate", rate === undefined ? 0 : rateWait(rate, state, jobs, now)],
        ["depth", depth === undefined ? 0 : depthWait(depth, state, waiting, now)],
      ];
      // The longest wait is the one that matters: after a shorter one it would be refused again.
      for (const [by, wait] of short) {
        if (wait > (refused?.retryAfter ?? 0)) refused = { kind: "refused", by: { kind, name }, limit: by, retryAfter: Math.ceil(wait) };
      }
    }
    if (refused !== undefined) return refused;
    for (const { limit, jobs, waiting } of perLimit)
      states[limit] = taken(limits[limit] as IngestLimit, states[limit] as IngestState, jobs, waiting, now);
    return { kind: "admitted" };
  });
  return { states, admissions };
}

function taken({ rate }: IngestLimit, state: IngestState, jobs: number, waiting: number, now: number): IngestState {
  return { ...state, since: state.since + waiting, ...(rate === undefined ? {} : { fullAt: spend(rate, state.fullAt, now, jobs) }) };
}

function rateWait(rate: Rate, { fullAt }: IngestState, jobs: number, now: number): number {
  const needed = Math.min(jobs, rate.burst);
  return tokens(rate, fullAt, now) >= needed ? 0 : tokensIn(rate, fullAt, now, needed);
}

/** ms between looks of one that was told to wait and of whom nothing is known */
const DEFAULT_WAIT_MS = 1_000;
const MAX_WAIT_MS = 60_000;

/** As with the rate: a demand larger than the limit is let in where nothing waits. */
function depthWait(limit: number, state: IngestState, waiting: number, now: number): number {
  const excess = state.depth + state.since + Math.min(waiting, limit) - limit;
  if (waiting === 0 || excess <= 0) return 0;
  const untilCount = Math.max(1, (state.countAgainAt ?? now) - now);
  const drained = state.drain === undefined || state.drain === 0 ? DEFAULT_WAIT_MS : excess / state.drain;
  return Math.min(MAX_WAIT_MS, Math.max(untilCount, drained));
}

/** ms between counts: at least so many, and so many times what the last one took, so that counting never costs much. */
const MIN_COUNT_INTERVAL_MS = 50;
const COUNT_SHARE = 20;
/** ms after which it is counted though there seems to be room: jobs come to wait by other ways, too */
const COUNT_VALID_MS = 10_000;

/**
 * Whether the depth must be counted before a demand is judged. Between two counts it is taken to be what was counted and
 * all that was let in since: never less than it is by that, so while there is room by it there is nothing to count.
 */
export function needsCount({ depth }: Ingest, state: IngestState, waiting: number, now: number): boolean {
  if (depth === undefined || waiting === 0) return false;
  if (state.countedAt === undefined || now - state.countedAt >= COUNT_VALID_MS) return true;
  return state.depth + state.since + waiting > depth && now >= (state.countAgainAt ?? 0);
}

/** How many that would wait from now on are asked for under each limit. */
export function waitingOf(limits: readonly IngestLimit[], demands: readonly IngestDemand[]): readonly number[] {
  const sums = new Array<number>(limits.length).fill(0);
  for (const { perLimit } of demands) for (const { limit, waiting } of perLimit) (sums[limit] as number) += waiting;
  return sums;
}

/** The state after a count that took `cost` ms. */
export function counted(state: IngestState, depth: number, now: number, cost: number): IngestState {
  const { countedAt } = state;
  const left = Math.max(0, state.depth + state.since - depth);
  return {
    ...state,
    depth,
    since: 0,
    countedAt: now,
    countAgainAt: now + Math.max(MIN_COUNT_INTERVAL_MS, COUNT_SHARE * cost),
    ...(countedAt === undefined || now <= countedAt ? {} : { drain: left / (now - countedAt) }),
  };
}

import { type Lane, laneKey, sameLane } from "../jobs/lane.js";
import { divideClaim, type PlannedQuota } from "./divide-claim.js";
import type { LaneEntry, LaneState } from "./lane-state.js";
import type { PolicySet } from "./policy-set.js";

/*
 * How a worker decides what to claim.
 *
 * 1. Whether to claim. The first claim goes out at once. A second one goes beside it only where it should find something: the
 *    last answer showed a backlog, a wakeup came since, or many lanes were not requested.
 * 2. How many jobs. As many as can start soon: the free slots and the jobs that would start within the look-ahead, without
 *    those that are in hand or requested. Where every free slot is covered, it waits until there is room for a good batch.
 * 3. Jobs that run at most once are claimed into free slots only, with nothing else in hand or requested.
 * 4. Which lanes. Of each priority the next 128 tenants in turn that have room, more where lanes have a few jobs each.
 * 5. How many jobs of each lane, by fair shares of the worker's time: see `divideClaim`.
 * 6. Lanes under a limit of their queue, task or tenant are claimed apart, one such claim at a time.
 *
 * A lane is known to have work from the wakeup or the poll that names it until an answer shows that it is empty. What an answer
 * shows besides, `recordAnswer` keeps for the next plan.
 *
 * There is no clock, no chance and no I/O in it. `lanes` is changed in place: copying 10,000 lanes for each claim would be too slow.
 */

/** How many jobs of one lane a claim may take. */
export interface Quota {
  readonly lane: Lane;
  readonly quota: number;
}

/** The jobs in a worker's hand. */
export interface WorkerLoad {
  /** slots with nothing in them */
  readonly free: number;
  /** jobs claimed and not started */
  readonly unstarted: number;
  /** jobs beyond the free slots that could start soon */
  readonly ahead: number;
}

/** The numbers that bound a claim at this moment. */
export interface PlanLoad {
  readonly worker: WorkerLoad;
  /** claims that are not answered yet */
  readonly pending: readonly PlannedClaim[];
  readonly maxJobsPerClaim: number;
  /** ms of slots for which jobs are claimed ahead */
  readonly timeAhead: number;
  /** monotonic ms */
  readonly now: number;
  /** how many more jobs of the lane may be taken */
  room(lane: Lane): number;
  /** Takes room for so many jobs of the lane. Answers how many there was room for: lanes share what bounds them. */
  reserve(lane: Lane, jobs: number): number;
}

/** A claim to send. */
export interface PlannedClaim {
  readonly quotas: readonly PlannedQuota[];
  /** jobs of all quotas together */
  readonly jobs: number;
  /** its lanes are under limits of queues, tasks or tenants */
  readonly isLimited: boolean;
  /** it may take jobs that run at most once: until it is answered nothing else may take their slots */
  readonly isExclusive: boolean;
  /** among the wakeups, polls and claims of its worker */
  readonly sequence: number;
}

/** The answer of a planned claim. */
export interface PlanAnswer {
  /** lane by lane, in the order of the quotas */
  readonly jobs: readonly { readonly lane: Lane }[];
  /** lanes that may have more, though they gave less than their quota */
  readonly more: readonly Lane[];
  /** whether a limit keeps back jobs of the lane */
  isHeldBack(lane: Lane): boolean;
}

export const MAX_PENDING_CLAIMS = 2;
/** Lanes that are worth a claim of their own. */
const MIN_LANES_FOR_SECOND_CLAIM = 32;
const NO_CLAIMS: readonly PlannedClaim[] = [];

/** The claims to send now: none, one, or two if some lanes are under limits. Ask again until there is none. */
export function plan(lanes: LaneState, policies: PolicySet, load: PlanLoad): readonly PlannedClaim[] {
  const { worker, pending, maxJobsPerClaim } = load;
  if (lanes.size === 0 || !isWorthAClaim(lanes, pending)) return NO_CLAIMS;
  const { free } = worker;
  const inHand = worker.unstarted + jobsOf(pending);
  const size = sizeOfClaim(free, Math.min(worker.ahead, MAX_PENDING_CLAIMS * maxJobsPerClaim), inHand, maxJobsPerClaim);
  if (size <= 0) return NO_CLAIMS;
  const turn = atMostOnceTurn(lanes, pending, free > 0 && inHand === 0);
  if (turn === "wait") return NO_CLAIMS;
  const isExclusive = turn === "now";
  return planClaims(lanes, policies, load, { limit: isExclusive ? Math.min(size, free) : size, isExclusive });
}

/**
 * The answer of a claim shows which lanes have nothing left, whether there may be more, and how many jobs lanes have. A lane that
 * gave less than its quota, in a claim that was not full, has nothing left, unless a limit kept it back or the store says so.
 */
export function recordAnswer(lanes: LaneState, claim: PlannedClaim, answer: PlanAnswer): void {
  const { quotas, isLimited } = claim;
  const count = answer.jobs.length;
  if (!isLimited) lanes.recordYield(quotas.length, claim.jobs, count);
  const hasMore = count >= claim.jobs || forgetEmptyLanes(lanes, claim, answer);
  // A claim under limits may be cut short by them, so it says nothing of the other lanes.
  if (!isLimited) lanes.hasBacklog = hasMore;
}

function isWorthAClaim({ size, hasBacklog, hasWakeup }: LaneState, pending: readonly PlannedClaim[]): boolean {
  if (pending.length === 0) return true;
  if (pending.length >= MAX_PENDING_CLAIMS) return false;
  return hasBacklog || hasWakeup || size - lanesOf(pending) >= MIN_LANES_FOR_SECOND_CLAIM;
}

function sizeOfClaim(free: number, ahead: number, inHand: number, max: number): number {
  const size = Math.min(max, free + ahead - inHand);
  // Every free slot is covered: what is left is a matter of batch size, so let a good one gather.
  return inHand >= free && size < Math.min(max, ahead / MAX_PENDING_CLAIMS) ? 0 : size;
}

/**
 * Jobs that run at most once are dead if their worker vanishes with them, started or not. So they are claimed into free slots
 * only, with no other job in hand and no other claim under way. After one claim without them that moment is waited for, so
 * that a stream of others cannot keep them out for ever.
 */
function atMostOnceTurn(lanes: LaneState, pending: readonly PlannedClaim[], isIdle: boolean): "now" | "no" | "wait" {
  for (const { isExclusive } of pending) if (isExclusive) return "wait";
  if (lanes.atMostOnceLanes === 0) return "no";
  if (isIdle) {
    lanes.atMostOncePassedOver = false;
    return "now";
  }
  if (lanes.atMostOncePassedOver || lanes.atMostOnceLanes === lanes.size) return "wait";
  lanes.atMostOncePassedOver = true;
  return "no";
}

function planClaims(
  lanes: LaneState,
  policies: PolicySet,
  load: PlanLoad,
  { limit, isExclusive }: { readonly limit: number; readonly isExclusive: boolean },
): readonly PlannedClaim[] {
  const { now, timeAhead } = load;
  const hasLimited = load.pending.some(({ isLimited }) => isLimited);
  const room = ({ lane, atMostOnce }: LaneEntry) =>
    (atMostOnce && !isExclusive) || (hasLimited && policies.isLimited(lane)) ? 0 : Math.min(limit, load.room(lane));
  const quotas = reserve(divideClaim(lanes, policies, { limit, room, timeAhead, now }), load);
  for (const { entry } of quotas) lanes.recordTurn(entry, now);
  const limited = quotas.filter(({ lane }) => policies.isLimited(lane));
  const others = limited.length === 0 ? quotas : quotas.filter(({ lane }) => !policies.isLimited(lane));
  if (others.length > 0) lanes.hasWakeup = false;
  return [others, limited]
    .filter(({ length }) => length > 0)
    .map((all) => ({ quotas: all, jobs: sumOf(all), isLimited: all === limited, isExclusive, sequence: lanes.nextSequence() }));
}

/** The quotas cut to the room that is left, lane after lane. */
function reserve(quotas: readonly PlannedQuota[], load: PlanLoad): readonly PlannedQuota[] {
  const reserved: PlannedQuota[] = [];
  for (const planned of quotas) {
    const quota = load.reserve(planned.lane, planned.quota);
    if (quota > 0) reserved.push(quota === planned.quota ? planned : { ...planned, quota });
  }
  return reserved;
}

/** Forgets lanes that have nothing left. Answers whether any lane may have more. */
function forgetEmptyLanes(lanes: LaneState, { quotas, sequence }: PlannedClaim, { jobs, more, isHeldBack }: PlanAnswer): boolean {
  const unsure = more.length === 0 ? undefined : new Set(more.map(laneKey));
  let hasMore = unsure !== undefined;
  let next = 0;
  for (const { entry, lane, quota } of quotas) {
    const first = next;
    while (next < jobs.length && sameLane((jobs[next] as { readonly lane: Lane }).lane, lane)) next++;
    if (next - first >= quota) hasMore = true;
    else if (unsure?.has(entry.key) !== true && !isHeldBack(lane)) lanes.forget(entry.key, sequence);
  }
  return hasMore;
}

function jobsOf(claims: readonly PlannedClaim[]): number {
  let sum = 0;
  for (const { jobs } of claims) sum += jobs;
  return sum;
}

function lanesOf(claims: readonly PlannedClaim[]): number {
  let sum = 0;
  for (const { quotas } of claims) sum += quotas.length;
  return sum;
}

function sumOf(quotas: readonly PlannedQuota[]): number {
  let sum = 0;
  for (const { quota } of quotas) sum += quota;
  return sum;
}

import { isLocked } from "../access/encrypted-value.js";
import type { Failure } from "../jobs/failure.js";
import type { JobId } from "../jobs/id.js";
import { type Intent, isFinished, type JobRecord, type JobState } from "../jobs/job.js";
import { movedBy } from "../jobs/spread.js";
import { type AbleWorkers, startOf as startAt } from "../limits/able-workers.js";
import type { Lack } from "../limits/capacity.js";
import type { LimitReason } from "../limits/limit-rule.js";
import { START_RATE_MEMORY_MS } from "../limits/start-rate.js";
import type { PolicyKind } from "../sharing/policy.js";

/** Why a job is where it is. Instants are ms since 1970 inside, and dates as people read them. */
export type Reason<Time = number> =
  | { readonly kind: "finished"; readonly state: JobState; readonly at?: Time; readonly failure?: Failure }
  | { readonly kind: "running"; readonly worker?: string; readonly since?: Time; readonly until?: Time; readonly intent?: Intent }
  /** the job itself, or all of its queue, task or tenant */
  | { readonly kind: "paused"; readonly what: "job" | PolicyKind; readonly name: string }
  /** `on`: some of those it waits for, of so many */
  | { readonly kind: "blocked"; readonly on: readonly Parent[]; readonly count: number }
  | ({ readonly kind: "limit_key" } & LimitKeyReason<Time>)
  | { readonly kind: "due"; readonly at: Time /** ms of it are its part of a spread */; readonly spreadBy?: number }
  | { readonly kind: "retrying"; readonly at: Time; readonly attempts: number; readonly failure?: Failure }
  /** whoever had it last lacks the master key of its input; `at`: when it is offered again */
  | { readonly kind: "undecryptable"; readonly at?: Time }
  /** no live worker can run it */
  | { readonly kind: "unserved"; readonly lacks: readonly Lack[] }
  /** `until`: when one job may try again; absent if somebody opened it by hand */
  | { readonly kind: "breaker_open"; readonly task: string; readonly tenant: string; readonly until?: Time }
  | ({ readonly kind: "policy_limit" } & PolicyLimitReason<Time>)
  /** it took workers down: it is claimed alone, by a worker with nothing else to do */
  | { readonly kind: "suspect"; readonly crashes: number }
  /** all slots of the workers that can run it are taken, and `shut` more of them may start none of its kind. How many of how many workers, and since when the oldest handler runs, is for those to know who see all tenants */
  | { readonly kind: "full"; readonly slots?: number; readonly workers?: number; readonly shut?: number; readonly since?: Time }
  /** jobs of its lane before it; `more`: at least so many */
  | { readonly kind: "queued_behind"; readonly ahead: number; readonly more?: true };

export interface Parent {
  readonly job: JobId;
  readonly state: JobState | "deleted";
}

/** A job that holds a slot of a key. */
export interface SlotHolder {
  readonly job: JobId;
  readonly state: JobState;
}

/** How the key stands that a job waits at. */
export interface LimitKeyReason<Time = number> {
  readonly limit: string;
  readonly key: string;
  readonly for: LimitReason;
  /** jobs that hold a slot, of so many slots */
  readonly held?: number;
  readonly most?: number;
  /** some of the others that hold one, where slots are what it waits for */
  readonly holders?: readonly SlotHolder[];
  /** jobs that wait there, itself included; `more`: at least so many */
  readonly waiting?: number;
  readonly more?: true;
  /** the token is there, or the pause is over */
  readonly until?: Time;
}

/** A limit on all of its queue, task or tenant that is reached. */
export interface PolicyLimitReason<Time = number> {
  readonly what: PolicyKind;
  readonly name: string;
  readonly limit: "concurrency" | "rate";
  readonly most: number;
  /** not told to whom only a tenant's own jobs are shown */
  readonly held?: number;
  readonly until?: Time;
}

/** All that decides when a job runs, seen at one moment. */
export interface JobSituation {
  readonly now: number;
  readonly job: JobRecord;
  readonly holder?: { readonly worker: string; readonly since: number; readonly until: number };
  readonly parents: { readonly on: readonly Parent[]; readonly count: number };
  readonly suspect: boolean;
  /** ready jobs of its lane before it, or all of them while it is not ready itself */
  readonly inLane: { readonly ahead: number; readonly more: boolean };
  /** starts per ms of its lane, where they are known */
  readonly startRate?: number;
  /** the workers that can run it, where all of them say how full they are */
  readonly ableWorkers?: AbleWorkers;
  /** whether it may be told how many others are there */
  readonly discreet?: boolean;
  /** the part of the starts of its queue and task that is its lane's; absent: all */
  readonly part?: number;
  /** how many other queues and tasks with ready jobs the same workers serve */
  readonly beside?: number;
  readonly paused: readonly { readonly kind: PolicyKind; readonly name: string }[];
  readonly lacks: readonly Lack[];
  readonly breaker?: { readonly until?: number };
  readonly policyLimits: readonly PolicyLimitReason[];
  readonly limitKey?: LimitKeyReason;
}

export interface Explained {
  /** all that stands in its way, the decisive one first */
  readonly reasons: readonly Reason[];
  /** absent where it waits for something nobody can foresee */
  readonly start?: number;
}

/** What does not pass by itself comes first, then what must pass before the rest matters. */
export function explain(situation: JobSituation): Explained {
  const { job } = situation;
  if (isFinished(job.state)) return { reasons: [finished(job)] };
  if (job.state === "running") return { reasons: [running(situation)] };
  const reasons = [...pauses(situation), ...waits(situation), ...claims(situation)];
  const start = startOf(situation, reasons);
  return { reasons, ...(start === undefined ? {} : { start }) };
}

function finished({ state, finishedAt, failure }: JobRecord): Reason {
  return { kind: "finished", state, ...(finishedAt === undefined ? {} : { at: finishedAt }), ...(failure === undefined ? {} : { failure }) };
}

function running({ job, holder }: JobSituation): Reason {
  return { kind: "running", ...holder, ...(job.intent === undefined ? {} : { intent: job.intent }) };
}

function pauses({ job, paused }: JobSituation): readonly Reason[] {
  const own = job.parkedFor === "paused" || job.intent === "pause";
  return [
    ...(own ? [{ kind: "paused", what: "job", name: job.id } as const] : []),
    ...paused.map(({ kind, name }): Reason => ({ kind: "paused", what: kind, name })),
  ];
}

/** What keeps it from being ready. */
function waits({ now, job, parents, limitKey }: JobSituation): readonly Reason[] {
  const { id, state, runAt, options, attempts, failure } = job;
  const reasons: Reason[] = [];
  if (state === "blocked") reasons.push({ kind: "blocked", ...parents });
  if (limitKey !== undefined) reasons.push({ kind: "limit_key", ...limitKey });
  // A blocked job has no time of its own yet, but it will not run before it is due.
  const at = runAt ?? (state === "blocked" ? job.dueAt : undefined);
  const later = at !== undefined && at > now;
  if (isLocked(failure)) return [...reasons, { kind: "undecryptable", ...(later ? { at } : {}) }];
  if (!later) return reasons;
  const spreadBy = at === job.dueAt ? movedBy(id, options) : 0;
  if (attempts > 0) reasons.push({ kind: "retrying", at, attempts, ...(failure === undefined ? {} : { failure }) });
  else reasons.push({ kind: "due", at, ...(spreadBy === 0 ? {} : { spreadBy }) });
  return reasons;
}

/** What keeps it from being claimed. Of a job that is not ready, only what it would find in its way. */
function claims({ job, lacks, breaker, policyLimits, suspect, inLane, ableWorkers, discreet }: JobSituation): readonly Reason[] {
  const { task, tenant } = job.lane;
  const reasons: Reason[] = [];
  if (lacks.length > 0) reasons.push({ kind: "unserved", lacks });
  if (breaker !== undefined) reasons.push({ kind: "breaker_open", task, tenant, ...breaker });
  for (const policyLimit of policyLimits) reasons.push({ kind: "policy_limit", ...policyLimit });
  if (suspect) reasons.push({ kind: "suspect", crashes: job.crashes });
  if (job.state === "ready" && ableWorkers?.free === 0) reasons.push(discreet === true ? { kind: "full" } : fullOf(ableWorkers));
  if (job.state === "ready" || inLane.ahead > 0) reasons.push({ kind: "queued_behind", ahead: inLane.ahead, ...(inLane.more ? { more: true } : {}) });
  return reasons;
}

function fullOf({ slots, workers, shut, oldest }: AbleWorkers): Reason {
  return { kind: "full", slots, workers, ...(shut === 0 ? {} : { shut }), ...(oldest === undefined ? {} : { since: oldest }) };
}

/** The latest of the times that are known, unless one of them is not. */
function startOf(situation: JobSituation, reasons: readonly Reason[]): number | undefined {
  let start = situation.now;
  for (const reason of reasons) {
    const at = overAt(reason, situation);
    if (at === undefined) return undefined;
    start = Math.max(start, at);
  }
  return start;
}

/** When a reason is over by itself. */
function overAt(reason: Reason, situation: JobSituation): number | undefined {
  const { now, job, startRate, inLane } = situation;
  switch (reason.kind) {
    case "due":
    case "retrying":
      return reason.at;
    // The one that may try is the first of its lane. What becomes of the others depends on how it fares.
    case "breaker_open":
      return inLane.ahead === 0 ? reason.until : undefined;
    case "limit_key":
      return reason.until;
    // Jobs are started under it all the time, and the pace they are started at is known.
    case "policy_limit":
      return reason.until ?? after(1, now, startRate);
    case "full":
      return startAfterJobs(0, situation);
    case "queued_behind":
      // Those before a job that waits for its time may be gone by then, and those in the slots, too.
      if (job.state !== "ready")
        return reason.ahead === 0 || startRate === undefined ? now : reason.more ? undefined : after(reason.ahead, now, startRate);
      return reason.more ? undefined : startAfterJobs(reason.ahead, situation);
    default:
      return undefined;
  }
}

/** ms; between jobs that are quicker than this passes as much time as they take */
const QUICK_JOB_MS = 100;
/** ms; of jobs that take longer too few are started lately to say how fast it goes */
const SLOW_JOB_MS = START_RATE_MEMORY_MS / 3;

/**
 * When a job with so many before it starts. By the slots, and how long jobs take, if only its own kind waits for
 * them; what others take of them, and what it costs to start quick ones, shows in how many were started lately.
 */
function startAfterJobs(ahead: number, { now, startRate, ableWorkers, part = 1, beside = 0 }: JobSituation): number | undefined {
  const byStartRate = ahead === 0 ? now : after(ahead, now, startRate);
  if (ableWorkers === undefined) return byStartRate;
  const first = startAt(ableWorkers, 0, now);
  // Where it may not take a free slot either, how fast its kind is started is all there is to go by.
  if (first === undefined) return ableWorkers.shut > 0 ? after(ahead + 1, now, startRate) : undefined;
  const { took, free } = ableWorkers;
  const byRate = took === undefined ? free > 0 : took < (beside > 0 ? SLOW_JOB_MS : QUICK_JOB_MS);
  if (byStartRate !== undefined && byRate) return Math.max(first, byStartRate);
  // A lane that has no part, since a higher priority comes first in all cases, starts when that is empty: nobody can say when.
  const before = ahead === 0 ? 0 : Math.floor((ahead / part) * (1 + beside));
  return Number.isFinite(before) ? startAt(ableWorkers, before, now) : undefined;
}

function after(jobs: number, now: number, startRate: number | undefined): number | undefined {
  return startRate === undefined || startRate === 0 ? undefined : now + jobs / startRate;
}

import type { Lack } from "./capacity.js";
import { type Crew, startOf as startAt } from "./crew.js";
import type { Failure } from "./failure.js";
import type { JobId } from "./id.js";
import { type Intent, isFinished, type JobRecord, type State } from "./job.js";
import type { GateReason } from "./limit.js";
import { PACE_MEMORY } from "./pace.js";
import type { PolicyKind } from "./policy.js";
import { isLocked } from "./sealed.js";
import { movedBy } from "./spread.js";

/** Why a job is where it is. Instants are ms since 1970. */
export type Reason =
  | { readonly kind: "finished"; readonly state: State; readonly at?: number; readonly failure?: Failure }
  | { readonly kind: "running"; readonly worker?: string; readonly since?: number; readonly until?: number; readonly asked?: Intent }
  /** the job itself, or all of its queue, task or tenant */
  | { readonly kind: "paused"; readonly what: "job" | PolicyKind; readonly name: string }
  /** `on`: some of those it waits for, of so many */
  | { readonly kind: "blocked"; readonly on: readonly Parent[]; readonly count: number }
  | ({ readonly kind: "limited" } & KeyStanding)
  | { readonly kind: "due"; readonly at: number /** ms of it are its part of a spread */; readonly spreadBy?: number }
  | { readonly kind: "retrying"; readonly at: number; readonly attempts: number; readonly failure?: Failure }
  /** whoever had it last lacks the master key of its input; `at`: when it is offered again */
  | { readonly kind: "locked"; readonly at?: number }
  /** no live worker can run it */
  | { readonly kind: "unserved"; readonly lacks: readonly Lack[] }
  /** `until`: when one job may try again; absent if somebody opened it by hand */
  | { readonly kind: "broken"; readonly task: string; readonly tenant: string; readonly until?: number }
  | ({ readonly kind: "capped" } & CapStanding)
  /** it took workers down: it is claimed alone, by a worker with nothing else to do */
  | { readonly kind: "suspect"; readonly crashes: number }
  /** all slots of the workers that can run it are taken, and `shut` more of them may start none of its kind. How many of how many workers, and since when the oldest handler runs, is for those to know who see all tenants */
  | { readonly kind: "full"; readonly slots?: number; readonly workers?: number; readonly shut?: number; readonly since?: number }
  /** jobs of its lane before it; `more`: at least so many */
  | { readonly kind: "behind"; readonly ahead: number; readonly more?: true };

export interface Parent {
  readonly job: JobId;
  readonly state: State | "gone";
}

/** A job that has a place at a key, or the turn of a serial one. */
export interface KeyHolder {
  readonly job: JobId;
  readonly state: State;
}

/** How the key stands that a job waits at. */
export interface KeyStanding {
  readonly limit: string;
  readonly key: string;
  readonly for: GateReason;
  /** jobs that hold a place, of so many places */
  readonly held?: number;
  readonly most?: number;
  /** some of the others that hold one, where places or the turn are what it waits for */
  readonly holders?: readonly KeyHolder[];
  /** jobs that wait there, itself included; `more`: at least so many */
  readonly waiting?: number;
  readonly more?: true;
  /** the token is there, or the pause is over */
  readonly until?: number;
}

/** A limit on all of its queue, task or tenant that is reached. */
export interface CapStanding {
  readonly what: PolicyKind;
  readonly name: string;
  readonly limit: "concurrency" | "rate";
  readonly most: number;
  /** not told to whom only a tenant's own jobs are shown */
  readonly held?: number;
  readonly until?: number;
}

/** All that decides when a job runs, seen at one moment. */
export interface Situation {
  readonly now: number;
  readonly job: JobRecord;
  readonly holder?: { readonly worker: string; readonly since: number; readonly until: number };
  readonly parents: { readonly on: readonly Parent[]; readonly count: number };
  readonly suspect: boolean;
  /** ready jobs of its lane before it, or all of them while it is not ready itself */
  readonly line: { readonly ahead: number; readonly more: boolean };
  /** starts per ms of its lane, where they are known */
  readonly pace?: number;
  /** the workers that can run it, where all of them say how full they are */
  readonly crew?: Crew;
  /** whether it may be told how many others are there */
  readonly discreet?: boolean;
  /** the part of the starts of its queue and task that is its lane's; absent: all */
  readonly part?: number;
  /** how many other queues and tasks with ready jobs the same workers serve */
  readonly beside?: number;
  readonly paused: readonly { readonly kind: PolicyKind; readonly name: string }[];
  readonly lacks: readonly Lack[];
  readonly breaker?: { readonly until?: number };
  readonly caps: readonly CapStanding[];
  readonly key?: KeyStanding;
}

export interface Explained {
  /** all that stands in its way, the decisive one first */
  readonly reasons: readonly Reason[];
  /** absent where it waits for something nobody can foresee */
  readonly start?: number;
}

/** What does not pass by itself comes first, then what must pass before the rest matters. */
export function explain(situation: Situation): Explained {
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

function running({ job, holder }: Situation): Reason {
  return { kind: "running", ...holder, ...(job.intent === undefined ? {} : { asked: job.intent }) };
}

function pauses({ job, paused }: Situation): readonly Reason[] {
  const own = job.parkedFor === "paused" || job.intent === "pause";
  return [
    ...(own ? [{ kind: "paused", what: "job", name: job.id } as const] : []),
    ...paused.map(({ kind, name }): Reason => ({ kind: "paused", what: kind, name })),
  ];
}

/** What keeps it from being ready. */
function waits({ now, job, parents, key }: Situation): readonly Reason[] {
  const { id, state, runAt, options, spent, failure } = job;
  const reasons: Reason[] = [];
  if (state === "blocked") reasons.push({ kind: "blocked", ...parents });
  if (key !== undefined) reasons.push({ kind: "limited", ...key });
  // A blocked job has no time of its own yet, but it will not run before it is due.
  const at = runAt ?? (state === "blocked" ? job.dueAt : undefined);
  const later = at !== undefined && at > now;
  if (isLocked(failure)) return [...reasons, { kind: "locked", ...(later ? { at } : {}) }];
  if (!later) return reasons;
  const spreadBy = at === job.dueAt ? movedBy(id, options) : 0;
  if (spent > 0) reasons.push({ kind: "retrying", at, attempts: spent, ...(failure === undefined ? {} : { failure }) });
  else reasons.push({ kind: "due", at, ...(spreadBy === 0 ? {} : { spreadBy }) });
  return reasons;
}

/** What keeps it from being claimed. Of a job that is not ready, only what it would find in its way. */
function claims({ job, lacks, breaker, caps, suspect, line, crew, discreet }: Situation): readonly Reason[] {
  const { task, tenant } = job.lane;
  const reasons: Reason[] = [];
  if (lacks.length > 0) reasons.push({ kind: "unserved", lacks });
  if (breaker !== undefined) reasons.push({ kind: "broken", task, tenant, ...breaker });
  for (const cap of caps) reasons.push({ kind: "capped", ...cap });
  if (suspect) reasons.push({ kind: "suspect", crashes: job.crashes });
  if (job.state === "ready" && crew?.free === 0) reasons.push(discreet === true ? { kind: "full" } : fullOf(crew));
  if (job.state === "ready" || line.ahead > 0) reasons.push({ kind: "behind", ahead: line.ahead, ...(line.more ? { more: true } : {}) });
  return reasons;
}

function fullOf({ slots, workers, shut, oldest }: Crew): Reason {
  return { kind: "full", slots, workers, ...(shut === 0 ? {} : { shut }), ...(oldest === undefined ? {} : { since: oldest }) };
}

/** The latest of the times that are known, unless one of them is not. */
function startOf(situation: Situation, reasons: readonly Reason[]): number | undefined {
  let start = situation.now;
  for (const reason of reasons) {
    const at = passes(reason, situation);
    if (at === undefined) return undefined;
    start = Math.max(start, at);
  }
  return start;
}

/** When a reason is over by itself. */
function passes(reason: Reason, situation: Situation): number | undefined {
  const { now, job, pace, line } = situation;
  switch (reason.kind) {
    case "due":
    case "retrying":
      return reason.at;
    // The one that may try is the first of its lane. What becomes of the others depends on how it fares.
    case "broken":
      return line.ahead === 0 ? reason.until : undefined;
    case "limited":
      return reason.until;
    // Jobs are started under it all the time, and the pace they are started at is known.
    case "capped":
      return reason.until ?? after(1, now, pace);
    case "full":
      return turnOf(0, situation);
    case "behind":
      // Those before a job that waits for its time may be gone by then, and those in the slots, too.
      if (job.state !== "ready") return reason.ahead === 0 || pace === undefined ? now : reason.more ? undefined : after(reason.ahead, now, pace);
      return reason.more ? undefined : turnOf(reason.ahead, situation);
    default:
      return undefined;
  }
}

/** ms; between jobs that are quicker than this passes as much time as they take */
const QUICK = 100;
/** ms; of jobs that take longer too few are started lately to say how fast it goes */
const SLOW = PACE_MEMORY / 3;

/**
 * When it is the turn of a job with so many before it. By the slots, and how long jobs take, if only its own kind waits for
 * them; what others take of them, and what it costs to start quick ones, shows in how many were started lately.
 */
function turnOf(ahead: number, { now, pace, crew, part = 1, beside = 0 }: Situation): number | undefined {
  const byPace = ahead === 0 ? now : after(ahead, now, pace);
  if (crew === undefined) return byPace;
  const first = startAt(crew, 0, now);
  // Where it may not take a free slot either, how fast its kind is started is all there is to go by.
  if (first === undefined) return crew.shut > 0 ? after(ahead + 1, now, pace) : undefined;
  const { took, free } = crew;
  const isPaced = took === undefined ? free > 0 : took < (beside > 0 ? SLOW : QUICK);
  if (byPace !== undefined && isPaced) return Math.max(first, byPace);
  // A lane that has no part, since a higher band comes first in all cases, starts when that is empty: nobody can say when.
  const before = ahead === 0 ? 0 : Math.floor((ahead / part) * (1 + beside));
  return Number.isFinite(before) ? startAt(crew, before, now) : undefined;
}

function after(jobs: number, now: number, pace: number | undefined): number | undefined {
  return pace === undefined || pace === 0 ? undefined : now + jobs / pace;
}

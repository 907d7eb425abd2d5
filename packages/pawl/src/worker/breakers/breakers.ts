import type { Lane } from "../../core/jobs/lane.js";
import type { Outcome } from "../../core/jobs/outcome.js";
import type { AnyTask } from "../../core/jobs/task.js";
import { type BreakerRule, type BreakerState, evidence } from "../../core/limits/breaker.js";
import { breakerRule } from "../../core/limits/breaker-check.js";
import { DEFAULTS } from "../../core/values/defaults.js";
import type { Clock } from "../../runtime/time/clock.js";
import { type Loop, loop } from "../../runtime/time/loop.js";
import { breakerKey } from "../../store/port/limits/breaker-record.js";
import type { BreakerRecord, BreakerRef, BreakerStore } from "../../store/port/limits/breakers.js";
import type { WorkerLimit } from "../claim/worker-limits.js";
import type { Attempt } from "../run/attempt.js";
import { BreakerCounts } from "./breaker-counts.js";

export interface BreakersDeps {
  readonly store: BreakerStore;
  readonly clock: Clock;
  /** of the tasks that have breakers */
  readonly rules: ReadonlyMap<string, BreakerRule>;
  /** some lanes may be claimed from that were not */
  readonly onRoom: () => void;
  /** a breaker has come to another state, as far as this worker knew */
  readonly onChange: (breaker: BreakerRef, state: BreakerState) => void;
  readonly onError: (error: unknown) => void;
}

/** When the breakers of each task open, for those that have any. */
export function breakerRules(served: readonly string[], tasks: ReadonlyMap<string, AnyTask>): ReadonlyMap<string, BreakerRule> {
  return new Map(
    served.flatMap((task) => {
      const rule = breakerRule(`${task}.breaker`, tasks.get(task)?.options.breaker);
      return rule === undefined ? [] : [[task, rule] as const];
    }),
  );
}

/** A breaker that is not closed, as this worker knows it. Times are monotonic ms. */
interface UnclosedBreaker {
  record: BreakerRecord;
  /** what was claimed before this was known says nothing of this turn, and was not let through by it */
  readonly learnedAt: number;
  probeAt: number;
  /** leave for one job, good until then */
  probeUntil: number;
  /** asked for in claims under way */
  pendingJobs: number;
  /** let through, and not over */
  probes: number;
}

/** ms between reports while there is something to report or to wait for */
const STEP_PAUSE_MS = 1_000;
/** pairs in one call */
const MAX_BREAKERS_PER_CALL = 1_000;
const NEVER = Number.NEGATIVE_INFINITY;

/**
 * What this worker knows of breakers, and tells of them. Lanes of an open one are not claimed from, but for one job by leave
 * of the store; those of a half-open one are, up to its limit. Nothing is asked of the store for lanes without failures
 * but a look now and then.
 */
export class Breakers implements WorkerLimit {
  /** What was let through is counted here, attempt by attempt. */
  readonly clusterWide = true;
  readonly until = "answer";
  readonly #counts: BreakerCounts;
  readonly #unclosed = new Map<string, UnclosedBreaker>();
  /** tasks with breakers that are open, and how many */
  readonly #openTasks = new Map<string, number>();
  /** standing breakers that lanes were asked about since the last step */
  readonly #refsToCheck = new Map<string, BreakerRef>();
  #loop: Loop | undefined;
  #refreshNeeded = true;
  #refreshedAt = NEVER;
  #changedAt = NEVER;
  #stepScheduled = false;

  constructor(private readonly deps: BreakersDeps) {
    this.#counts = new BreakerCounts(deps.rules);
  }

  start(): void {
    if (this.deps.rules.size === 0) return;
    const { clock, onError } = this.deps;
    this.#loop = loop({ clock, step: () => this.#step(), onError, backoff: { min: STEP_PAUSE_MS, max: DEFAULTS.capacity.sign }, patience: 30_000 });
  }

  /** Tells what is still untold. */
  async stop(): Promise<void> {
    const steps = this.#loop;
    if (steps === undefined) return;
    this.#loop = undefined;
    await steps.stop();
    if (this.#counts.isDue) await this.#report().catch(this.deps.onError);
  }

  /** Something was changed about what may be claimed: perhaps a breaker. Where much is, one look a second sees it all. */
  handleChange(): void {
    this.#refreshNeeded = true;
    const now = this.deps.clock.monotonic();
    if (now - this.#changedAt < STEP_PAUSE_MS) {
      this.#scheduleStep();
      return;
    }
    this.#changedAt = now;
    this.#loop?.wake();
  }

  /** None that is known of keeps anything back. */
  get areClosed(): boolean {
    return this.#unclosed.size === 0;
  }

  room(lane: Lane): number {
    if (this.#unclosed.size === 0) return Number.POSITIVE_INFINITY;
    const key = breakerKey(lane);
    const breaker = this.#unclosed.get(key);
    if (breaker === undefined || breaker.record.state === "checking") return Number.POSITIVE_INFINITY;
    const { state, limit = 0 } = breaker.record;
    const now = this.deps.clock.monotonic();
    // An open one is left alone until it may be probed: whatever else becomes of it is said by a wakeup, or the next look.
    if (!this.#refsToCheck.has(key) && (state === "half_open" || now >= breaker.probeAt - STEP_PAUSE_MS)) {
      this.#refsToCheck.set(key, breaker.record);
      this.#scheduleStep();
    }
    const most = state === "half_open" ? limit : now < breaker.probeUntil ? 1 : 0;
    return Math.max(0, most - breaker.pendingJobs - breaker.probes);
  }

  take(lane: Lane, count: number): void {
    if (this.#unclosed.size === 0) return;
    const breaker = this.#unclosed.get(breakerKey(lane));
    // A claim that was sent before this was known comes back uncounted.
    if (breaker !== undefined) breaker.pendingJobs = Math.max(0, breaker.pendingJobs + count);
  }

  /** Suspects are claimed by task, whosever they are: with one breaker of a task open, all of them wait. */
  admits(tasks: readonly string[]): readonly string[] {
    return this.#openTasks.size === 0 ? tasks : tasks.filter((task) => !this.#openTasks.has(task));
  }

  /** Jobs that came by a claim sent at `sentAt`: those that breakers let through are marked. */
  markProbes(attempts: readonly Attempt[], sentAt: number): void {
    if (this.#unclosed.size === 0) return;
    for (const attempt of attempts) {
      const breaker = this.#unclosed.get(breakerKey(attempt.job.lane));
      if (breaker === undefined || sentAt < breaker.learnedAt) continue;
      const { state, opening } = breaker.record;
      if (state !== "half_open" && !(state === "open" && sentAt < breaker.probeUntil)) continue;
      attempt.probeOf = opening;
      breaker.probes++;
      breaker.probeUntil = NEVER;
    }
  }

  /** Whether a job that was claimed before its breaker opened is to be given back unstarted. */
  blocks(attempt: Attempt): boolean {
    if (this.#unclosed.size === 0 || attempt.probeOf !== undefined) return false;
    return this.#unclosed.get(breakerKey(attempt.job.lane))?.record.state === "open";
  }

  recordOutcome({ job: { lane }, probeOf }: Attempt, outcome: Outcome, now: number): void {
    if (this.deps.rules.size === 0) return;
    const evidenceKind = evidence(outcome);
    if (evidenceKind === undefined) return;
    this.#counts.record(lane, evidenceKind, now, probeOf);
    if (this.#unclosed.size > 0 && this.#unclosed.get(breakerKey(lane))?.record.state === "checking")
      this.#counts.requestReport(lane.tenant, lane.task);
    if (this.#counts.isDue) this.#scheduleStep();
  }

  /** The attempt is over, whatever came of it. */
  release({ job: { lane }, probeOf }: Attempt): void {
    if (probeOf === undefined) return;
    const breaker = this.#unclosed.get(breakerKey(lane));
    if (breaker !== undefined && breaker.record.opening === probeOf) breaker.probes--;
  }

  #scheduleStep(): void {
    if (this.#stepScheduled || this.#loop === undefined) return;
    this.#stepScheduled = true;
    this.deps.clock.after(STEP_PAUSE_MS, () => {
      this.#stepScheduled = false;
      this.#loop?.wake();
    });
  }

  async #step(): Promise<number> {
    const { clock, store } = this.deps;
    if (this.#counts.isDue) await this.#report();
    const refsToCheck = [...this.#refsToCheck.values()].slice(0, MAX_BREAKERS_PER_CALL);
    for (const ref of refsToCheck) this.#refsToCheck.delete(breakerKey(ref));
    if (this.#refreshNeeded || clock.monotonic() - this.#refreshedAt >= DEFAULTS.capacity.sign) {
      this.#refreshNeeded = false;
      const since = clock.monotonic();
      const found = await store.listNotClosed();
      this.#replace(found, since);
      this.#refreshedAt = clock.monotonic();
    } else if (refsToCheck.length > 0) this.#learnOf(refsToCheck, await store.get(refsToCheck));
    await this.#probe(refsToCheck);
    // Whoever wants to be let through asks again, and is heard at this pace; the rest is for the next look.
    if (this.#counts.isDue || this.#refsToCheck.size > 0) this.#scheduleStep();
    return DEFAULTS.capacity.sign * (1 + 0.1 * clock.random());
  }

  async #report(): Promise<void> {
    const { clock, store } = this.deps;
    const reports = this.#counts.take(MAX_BREAKERS_PER_CALL, clock.monotonic());
    if (reports.length > 0) for (const record of await store.report(reports)) this.#learn(record);
  }

  async #probe(refsToCheck: readonly BreakerRef[]): Promise<void> {
    const { clock, store } = this.deps;
    const now = clock.monotonic();
    const due = refsToCheck.filter((ref) => now >= (this.#unclosed.get(breakerKey(ref))?.probeAt ?? Number.POSITIVE_INFINITY));
    if (due.length === 0) return;
    const granted = await store.probe(due);
    for (const record of granted) {
      this.#learn(record);
      const breaker = this.#unclosed.get(breakerKey(record));
      if (breaker !== undefined) breaker.probeUntil = now + ((record.probeAt ?? record.asOf) - record.asOf);
    }
    if (granted.length > 0) this.deps.onRoom();
  }

  #replace(found: readonly BreakerRecord[], since: number): void {
    const there = new Set(found.map(breakerKey));
    for (const [key, { record, learnedAt }] of this.#unclosed) if (!there.has(key) && learnedAt <= since) this.#forget(record);
    for (const record of found) this.#learn(record);
  }

  #learnOf(refs: readonly BreakerRef[], found: readonly BreakerRecord[]): void {
    const there = new Set(found.map(breakerKey));
    for (const ref of refs) if (!there.has(breakerKey(ref))) this.#forget(ref);
    for (const record of found) this.#learn(record);
  }

  #learn(record: BreakerRecord): void {
    if (record.state === "closed") {
      this.#forget(record);
      return;
    }
    const now = this.deps.clock.monotonic();
    const before = this.#unclosed.get(breakerKey(record));
    if (before?.record.state !== record.state) this.deps.onChange(record, record.state);
    const probeAt = record.probeAt === undefined ? Number.POSITIVE_INFINITY : now + record.probeAt - record.asOf;
    if (record.state === "checking") this.#counts.requestReport(record.tenant, record.task);
    if (before !== undefined && before.record.opening === record.opening) {
      this.#count(before.record, -1);
      const more = before.record.state !== record.state || (before.record.limit ?? 0) < (record.limit ?? 0);
      before.record = record;
      before.probeAt = probeAt;
      this.#count(record, 1);
      if (more) this.deps.onRoom();
      return;
    }
    if (before !== undefined) this.#count(before.record, -1);
    this.#unclosed.set(breakerKey(record), { record, learnedAt: now, probeAt, probeUntil: NEVER, pendingJobs: 0, probes: 0 });
    this.#count(record, 1);
  }

  #forget(ref: BreakerRef): void {
    const breaker = this.#unclosed.get(breakerKey(ref));
    if (breaker === undefined) return;
    this.#unclosed.delete(breakerKey(ref));
    this.#count(breaker.record, -1);
    this.deps.onChange(ref, "closed");
    this.deps.onRoom();
  }

  #count({ task, state }: BreakerRecord, by: 1 | -1): void {
    if (state !== "open") return;
    const count = (this.#openTasks.get(task) ?? 0) + by;
    if (count === 0) this.#openTasks.delete(task);
    else this.#openTasks.set(task, count);
  }
}

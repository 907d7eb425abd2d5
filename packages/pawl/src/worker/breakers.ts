import { type BreakerRule, type BreakerState, evidence } from "../core/breaker.js";
import { breakerRule } from "../core/breaker-check.js";
import { DEFAULTS } from "../core/defaults.js";
import type { Lane } from "../core/lane.js";
import type { Outcome } from "../core/outcome.js";
import type { Clock } from "../runtime/clock.js";
import { type Loop, loop } from "../runtime/loop.js";
import { breakerKey } from "../store/breaker-record.js";
import type { BreakerRecord, BreakerRef, BreakerStore } from "../store/port-breakers.js";
import type { Attempt } from "./attempt.js";
import { BreakerTallies } from "./breaker-tallies.js";
import type { Cap } from "./caps.js";
import type { AnyTask } from "./task.js";

export interface BreakersParts {
  readonly store: BreakerStore;
  readonly clock: Clock;
  /** of the tasks that have breakers */
  readonly rules: ReadonlyMap<string, BreakerRule>;
  /** some lanes may be offered that were not */
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
interface Known {
  record: BreakerRecord;
  /** what was claimed before this was known says nothing of this turn, and was not let through by it */
  readonly knownSince: number;
  probeAt: number;
  /** leave for one job, good until then */
  probeUntil: number;
  /** asked for in claims under way */
  asked: number;
  /** let through, and not over */
  passes: number;
}

/** ms between reports while there is something to report or to wait for */
const PACE = 1_000;
/** pairs in one call */
const BATCH = 1_000;
const NEVER = Number.NEGATIVE_INFINITY;

/**
 * What this worker knows of breakers, and tells of them. Lanes of an open one are not offered, but for one job by leave
 * of the store; those of a closing one are, up to its limit. Nothing is asked of the store for lanes without failures
 * but a look now and then.
 */
export class Breakers implements Cap {
  /** What was let through is counted here, attempt by attempt. */
  readonly ofAll = true;
  readonly until = "landing";
  readonly #tallies: BreakerTallies;
  readonly #known = new Map<string, Known>();
  /** tasks with breakers that are open, and how many */
  readonly #openTasks = new Map<string, number>();
  /** standing breakers that lanes were asked about since the last step */
  readonly #wanted = new Map<string, BreakerRef>();
  #loop: Loop | undefined;
  #look = true;
  #lookedAt = NEVER;
  #heardAt = NEVER;
  #pacing = false;

  constructor(private readonly parts: BreakersParts) {
    this.#tallies = new BreakerTallies(parts.rules);
  }

  start(): void {
    if (this.parts.rules.size === 0) return;
    const { clock, onError } = this.parts;
    this.#loop = loop({ clock, step: () => this.#step(), onError, backoff: { min: PACE, max: DEFAULTS.capacity.sign }, patience: 30_000 });
  }

  /** Tells what is still untold. */
  async stop(): Promise<void> {
    const steps = this.#loop;
    if (steps === undefined) return;
    this.#loop = undefined;
    await steps.stop();
    if (this.#tallies.isDue) await this.#report().catch(this.parts.onError);
  }

  /** Something was changed about what is offered: perhaps a breaker. Where much is, one look a second sees it all. */
  hear(): void {
    this.#look = true;
    const now = this.parts.clock.monotonic();
    if (now - this.#heardAt < PACE) {
      this.#soon();
      return;
    }
    this.#heardAt = now;
    this.#loop?.wake();
  }

  /** None that is known of keeps anything back. */
  get areClosed(): boolean {
    return this.#known.size === 0;
  }

  room(lane: Lane): number {
    if (this.#known.size === 0) return Number.POSITIVE_INFINITY;
    const key = breakerKey(lane);
    const known = this.#known.get(key);
    if (known === undefined || known.record.state === "doubted") return Number.POSITIVE_INFINITY;
    const { state, limit = 0 } = known.record;
    const now = this.parts.clock.monotonic();
    // An open one is left alone until it may be probed: whatever else becomes of it is said by a wake-up, or the next look.
    if (!this.#wanted.has(key) && (state === "closing" || now >= known.probeAt - PACE)) {
      this.#wanted.set(key, known.record);
      this.#soon();
    }
    const most = state === "closing" ? limit : now < known.probeUntil ? 1 : 0;
    return Math.max(0, most - known.asked - known.passes);
  }

  take(lane: Lane, count: number): void {
    if (this.#known.size === 0) return;
    const known = this.#known.get(breakerKey(lane));
    // A claim that was sent before this was known comes back uncounted.
    if (known !== undefined) known.asked = Math.max(0, known.asked + count);
  }

  /** Suspects are claimed by task, whosever they are: with one breaker of a task open, all of them wait. */
  admits(tasks: readonly string[]): readonly string[] {
    return this.#openTasks.size === 0 ? tasks : tasks.filter((task) => !this.#openTasks.has(task));
  }

  /** Jobs that came by a claim sent at `sentAt`: those that breakers let through are marked. */
  mark(attempts: readonly Attempt[], sentAt: number): void {
    if (this.#known.size === 0) return;
    for (const attempt of attempts) {
      const known = this.#known.get(breakerKey(attempt.job.lane));
      if (known === undefined || sentAt < known.knownSince) continue;
      const { state, turn } = known.record;
      if (state !== "closing" && !(state === "open" && sentAt < known.probeUntil)) continue;
      attempt.pass = turn;
      known.passes++;
      known.probeUntil = NEVER;
    }
  }

  /** Whether a job that was claimed before its breaker opened is to be given back unstarted. */
  bars(attempt: Attempt): boolean {
    if (this.#known.size === 0 || attempt.pass !== undefined) return false;
    return this.#known.get(breakerKey(attempt.job.lane))?.record.state === "open";
  }

  note({ job: { lane }, pass }: Attempt, outcome: Outcome, now: number): void {
    if (this.parts.rules.size === 0) return;
    const seen = evidence(outcome);
    if (seen === undefined) return;
    this.#tallies.note(lane, seen, now, pass);
    if (this.#known.size > 0 && this.#known.get(breakerKey(lane))?.record.state === "doubted") this.#tallies.ask(lane.tenant, lane.task);
    if (this.#tallies.isDue) this.#soon();
  }

  /** The attempt is over, whatever came of it. */
  over({ job: { lane }, pass }: Attempt): void {
    if (pass === undefined) return;
    const known = this.#known.get(breakerKey(lane));
    if (known !== undefined && known.record.turn === pass) known.passes--;
  }

  #soon(): void {
    if (this.#pacing || this.#loop === undefined) return;
    this.#pacing = true;
    this.parts.clock.after(PACE, () => {
      this.#pacing = false;
      this.#loop?.wake();
    });
  }

  async #step(): Promise<number> {
    const { clock, store } = this.parts;
    if (this.#tallies.isDue) await this.#report();
    const wanted = [...this.#wanted.values()].slice(0, BATCH);
    for (const ref of wanted) this.#wanted.delete(breakerKey(ref));
    if (this.#look || clock.monotonic() - this.#lookedAt >= DEFAULTS.capacity.sign) {
      this.#look = false;
      const since = clock.monotonic();
      const standing = await store.standing();
      this.#replace(standing, since);
      this.#lookedAt = clock.monotonic();
    } else if (wanted.length > 0) this.#learnOf(wanted, await store.get(wanted));
    await this.#probe(wanted);
    // Whoever wants to be let through asks again, and is heard at this pace; the rest is for the next look.
    if (this.#tallies.isDue || this.#wanted.size > 0) this.#soon();
    return DEFAULTS.capacity.sign * (1 + 0.1 * clock.random());
  }

  async #report(): Promise<void> {
    const { clock, store } = this.parts;
    const reports = this.#tallies.take(BATCH, clock.monotonic());
    if (reports.length > 0) for (const record of await store.report(reports)) this.#learn(record);
  }

  async #probe(wanted: readonly BreakerRef[]): Promise<void> {
    const { clock, store } = this.parts;
    const now = clock.monotonic();
    const due = wanted.filter((ref) => now >= (this.#known.get(breakerKey(ref))?.probeAt ?? Number.POSITIVE_INFINITY));
    if (due.length === 0) return;
    const granted = await store.probe(due);
    for (const record of granted) {
      this.#learn(record);
      const known = this.#known.get(breakerKey(record));
      if (known !== undefined) known.probeUntil = now + ((record.probeAt ?? record.asOf) - record.asOf);
    }
    if (granted.length > 0) this.parts.onRoom();
  }

  #replace(standing: readonly BreakerRecord[], since: number): void {
    const there = new Set(standing.map(breakerKey));
    for (const [key, { record, knownSince }] of this.#known) if (!there.has(key) && knownSince <= since) this.#forget(record);
    for (const record of standing) this.#learn(record);
  }

  #learnOf(asked: readonly BreakerRef[], found: readonly BreakerRecord[]): void {
    const there = new Set(found.map(breakerKey));
    for (const ref of asked) if (!there.has(breakerKey(ref))) this.#forget(ref);
    for (const record of found) this.#learn(record);
  }

  #learn(record: BreakerRecord): void {
    if (record.state === "closed") {
      this.#forget(record);
      return;
    }
    const now = this.parts.clock.monotonic();
    const before = this.#known.get(breakerKey(record));
    if (before?.record.state !== record.state) this.parts.onChange(record, record.state);
    const probeAt = record.probeAt === undefined ? Number.POSITIVE_INFINITY : now + record.probeAt - record.asOf;
    if (record.state === "doubted") this.#tallies.ask(record.tenant, record.task);
    if (before !== undefined && before.record.turn === record.turn) {
      this.#count(before.record, -1);
      const more = before.record.state !== record.state || (before.record.limit ?? 0) < (record.limit ?? 0);
      before.record = record;
      before.probeAt = probeAt;
      this.#count(record, 1);
      if (more) this.parts.onRoom();
      return;
    }
    if (before !== undefined) this.#count(before.record, -1);
    this.#known.set(breakerKey(record), { record, knownSince: now, probeAt, probeUntil: NEVER, asked: 0, passes: 0 });
    this.#count(record, 1);
  }

  #forget(ref: BreakerRef): void {
    const known = this.#known.get(breakerKey(ref));
    if (known === undefined) return;
    this.#known.delete(breakerKey(ref));
    this.#count(known.record, -1);
    this.parts.onChange(ref, "closed");
    this.parts.onRoom();
  }

  #count({ task, state }: BreakerRecord, by: 1 | -1): void {
    if (state !== "open") return;
    const count = (this.#openTasks.get(task) ?? 0) + by;
    if (count === 0) this.#openTasks.delete(task);
    else this.#openTasks.set(task, count);
  }
}

import { BOUNDS } from "../../core/bounds.js";
import { DEFAULTS } from "../../core/defaults.js";
import { type Duration, milliseconds } from "../../core/duration.js";
import { pawlError } from "../../core/error.js";
import type { BootId, JobId, LeaseId } from "../../core/id.js";
import type { Lane } from "../../core/lane.js";
import type { WorkerRef } from "../../core/lease.js";
import { checkName } from "../../core/name.js";
import { checkArray, checkDuration, checkPeriod, checkWhole, invalid } from "../../core/option.js";
import type { Outcome } from "../../core/outcome.js";
import { checkRetry } from "../../core/retry.js";
import type { Bus } from "../../runtime/bus.js";
import type { Clock } from "../../runtime/clock.js";
import type { Store } from "../../store/port.js";
import type { ClaimedJob, Settled } from "../../store/port-leases.js";
import type { LogEntry } from "../../store/port-records.js";
import type { Attempt } from "../attempt.js";
import { givenBack, refusal } from "../ending.js";
import type { HeldLease } from "../held-lease.js";
import { type Line, Notes } from "../notes.js";
import { settingsOf, type WorkerOptions } from "../options.js";
import { Plans } from "../plan.js";
import { quietly } from "../quietly.js";
import { Reports } from "../reports.js";
import { type AnyTask, type TaskDefaults, type TaskOptions, task } from "../task.js";
import { Dispatch } from "./dispatch.js";
import { Hand } from "./hand.js";
import { MOST_HELD, MOST_LANES } from "./held.js";
import type { Looks } from "./looks.js";
import { Rebuilt } from "./rebuilt.js";
import { checkEnding, type Holding, noted, outcomeOf, type ToldEnding, type ToldNote } from "./told.js";

/** Who a worker elsewhere is, and what it may have. */
export interface HostOptions {
  readonly name: string;
  /** one life of one worker: every one that is started has another */
  readonly boot: string;
  readonly lease?: Duration;
  /** whose jobs it may have, whatever it asks for */
  readonly tenants?: readonly string[];
  /** asked of jobs that it got through another process: whether it may have them at all */
  readonly allows?: (lane: Lane) => boolean;
}

/** A task that a worker elsewhere has, and how its jobs are run there; what is left out is as it was published. */
export interface HostedTask extends Pick<TaskOptions, "retry" | "timeout" | "atMostOnce" | "needs" | "breaker"> {
  readonly name: string;
}

/** What it serves and has, as a worker here would be told by its options; said with every claim, since any process may hear it. */
export interface ClaimAsk extends Pick<WorkerOptions, "concurrency" | "queues" | "bands" | "tenants" | "tags" | "amounts" | "reserve" | "slots"> {
  readonly tasks: readonly HostedTask[];
  /** jobs at most */
  readonly limit: number;
  /** how many of them it can start at once; all, if left out. The others it will start soon */
  readonly free?: number;
  /** how long to wait for the first of them */
  readonly wait?: Duration;
  /** what it has in hand; where it is left out, this process goes by what it gave out itself */
  readonly holding?: readonly Holding[];
  /** asked again with the same id, because the answer was lost: the same answer */
  readonly request?: string;
  readonly signal?: AbortSignal;
}

/** A lease and its jobs, for the worker to run. Times are ms, by the store's clock where they are instants. */
export interface HandedLease {
  readonly lease: LeaseId;
  /** when it was asked for, by the monotonic clock of this process, and by the store's */
  readonly claimedAt: number;
  readonly now: number;
  /** it must be renewed within */
  readonly duration: number;
  readonly suspect: boolean;
  readonly jobs: readonly HandedJob[];
}

export interface HandedJob extends Pick<ClaimedJob, "id" | "lane" | "options" | "dueAt" | "spent" | "crashes"> {
  /** encoded JSON; null: it was not readable, and the worker should say so */
  readonly input: string | null;
  readonly timeout: number;
}

export interface HostRenewal {
  readonly held: readonly LeaseId[];
  readonly lost: readonly LeaseId[];
  /** jobs that somebody asked to be cancelled */
  readonly cancel: readonly JobId[];
}

export interface HostParts {
  readonly store: Store;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly looks: Looks;
  /** throws once nothing more is to be claimed here */
  readonly checkOpen: () => void;
  /** per queue */
  readonly defaults: Readonly<Record<string, TaskDefaults>>;
  /** a task as it is registered: here, or by whoever runs it */
  readonly taskOf: (name: string) => Pick<AnyTask, "name" | "options"> | Promise<Pick<AnyTask, "name" | "options">>;
}

export const LONGEST_WAIT = 60_000;
export const MOST_ASKED = 1_000;
/** that come with endings, of all of them together */
const MOST_NOTES = 10_000;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * A worker that runs elsewhere, hosted by this process: it is claimed for here, by the rules of every worker, and its
 * outcomes are decided here. Everything it holds is in the store under its own boot, so any process can host it, and
 * another one goes on where this one ended.
 */
export class Host {
  readonly ref: WorkerRef;
  readonly #parts: HostParts;
  readonly #options: HostOptions;
  readonly #duration: number;
  readonly #tasks = new Map<string, AnyTask>();
  readonly #hand: Hand;
  readonly #reports: Reports;
  readonly #rebuilt: Rebuilt;
  readonly #complain: (step: string, error: unknown) => void;
  #plans: Plans;
  #dispatch: Dispatch | undefined;
  #serves = "";
  #last: { readonly request: string; readonly answer: Promise<readonly HandedLease[]> } | undefined;

  constructor(parts: HostParts, options: HostOptions) {
    const { name, boot, lease = DEFAULTS.lease.duration } = options;
    this.ref = { name: checkName("worker name", name), boot: checkBoot(boot) };
    this.#parts = parts;
    this.#options = options;
    this.#duration = checkDuration("lease", lease);
    this.#plans = new Plans(this.#tasks, parts.defaults);
    this.#reports = new Reports(parts.bus, name);
    this.#complain = quietly(parts.clock, (step, error) => this.#reports.failed(step, error));
    this.#hand = new Hand(this.#duration, (attempt, ran) => this.#dispatch?.over(attempt, ran));
    this.#rebuilt = new Rebuilt(parts.store, parts.clock, this.#duration);
  }

  /** Jobs to run, as soon as there are any; none, if there are none while it waits. */
  claim(ask: ClaimAsk): Promise<readonly HandedLease[]> {
    const { request } = ask;
    if (request !== undefined && request === this.#last?.request) return this.#last.answer;
    const answer = this.#claim(ask);
    if (request !== undefined) this.#last = { request, answer };
    answer.catch(() => {
      if (this.#last?.answer === answer) this.#last = undefined;
    });
    return answer;
  }

  /** Extends the leases that are still its own, by number. */
  async renew(leases: readonly LeaseId[]): Promise<HostRenewal> {
    const { store, clock } = this.#parts;
    const sentAt = clock.monotonic();
    // By then all of its jobs should have ended: one that hangs loses it, as it would here.
    const due = leases.filter((id) => sentAt < (this.#hand.lease(id)?.latest ?? Number.POSITIVE_INFINITY));
    const { held } = due.length === 0 ? { held: [] } : await store.leases.renew(this.ref, due, this.#duration);
    for (const id of held) this.#hand.renewed(id, sentAt);
    const kept = new Set(held);
    const lost = leases.filter((id) => !kept.has(id));
    for (const id of lost) this.#hand.drop(id);
    return { held, lost, cancel: await this.cancelled(held) };
  }

  /** Which jobs of these leases somebody asked to be cancelled. */
  async cancelled(leases: readonly LeaseId[]): Promise<readonly JobId[]> {
    if (leases.length === 0) return [];
    const asked = await this.#parts.store.leases.intents(this.ref, leases);
    return asked.filter(({ intent }) => intent === "cancel").map(({ job }) => job);
  }

  /** Records how attempts ended, in order. Again under the same lease, because the answer was lost, answers the same. */
  async settle(endings: readonly ToldEnding[]): Promise<readonly Settled[]> {
    const notes = endings.flatMap(({ lease, job, notes = [] }) => notes.map((note) => ({ lease, job, ...note })));
    for (const ending of endings) checkEnding(ending);
    if (notes.length > MOST_NOTES) throw invalid("notes", `there are more than ${MOST_NOTES} of them in one request`);
    if (notes.length > 0) await this.note(notes);
    const found = await this.#find(endings);
    const { clock, store } = this.#parts;
    const now = clock.monotonic();
    const missing = found.flatMap((attempt) => missingLine(attempt, now));
    if (missing.length > 0) await store.records.log(this.ref, missing);
    const sent: { readonly attempt: Attempt; readonly outcome: Outcome; readonly took: number; readonly key: string }[] = [];
    const answers = new Map<string, Settled>();
    endings.forEach(({ lease, job, told, took }, place) => {
      const attempt = found[place];
      const key = `${lease} ${job}`;
      // Told twice in one go: the first one counts.
      if (attempt === undefined || answers.has(key)) return;
      answers.set(key, "stale");
      const outcome = outcomeOf(told, attempt.job.options?.limits);
      sent.push({ attempt, outcome, took: Math.min(took ?? now - attempt.startedAt, now - attempt.lease.sentAt), key });
    });
    const patches = sent.map(({ attempt, outcome, took }) => {
      attempt.startedAt = now - took;
      return attempt.decide(outcome, now, clock.random);
    });
    const settled =
      sent.length === 0
        ? []
        : await store.leases.settle(
            this.ref,
            sent.map(({ attempt }, place) => attempt.settlement(patches[place] as (typeof patches)[number], now)),
          );
    sent.forEach(({ attempt, outcome, took, key }, place) => {
      const answer = settled[place] ?? "stale";
      const patch = patches[place] as (typeof patches)[number];
      answers.set(key, answer);
      if (this.#hand.find(attempt.lease.id, attempt.job.id) === attempt) {
        if (answer === "settled") this.#dispatch?.settled(attempt, outcome, took);
        this.#hand.over(attempt);
      }
      if (answer === "stale") this.#reports.stale(attempt, patch.outcome);
      else this.#reports.settled(attempt, patch, took);
    });
    this.#dispatch?.room();
    return endings.map(({ lease, job }) => answers.get(`${lease} ${job}`) ?? "stale");
  }

  /** Log lines and progress of attempts that run. Those of a lost lease are let go. */
  async note(notes: readonly ToldNote[]): Promise<void> {
    const lines = notes.map(noted);
    const { store, clock } = this.#parts;
    const now = clock.monotonic();
    const mine = await this.#find(notes);
    const entries = notes.flatMap(({ lease, job, level, ago = 0 }, place): LogEntry[] => {
      const attempt = mine[place];
      const line = lines[place] as Line;
      if (attempt === undefined) return [];
      attempt.notes ??= new Notes();
      if (level !== "progress" && !attempt.notes.admits(line)) return [];
      const { tenant } = attempt.job.lane;
      return [{ lease, job, tenant, at: attempt.lease.storeTime(Math.max(now - ago, attempt.lease.sentAt)), level, ...line }];
    });
    if (entries.length > 0) await store.records.log(this.ref, entries);
  }

  /** What a job recorded under that name; undefined: nothing. */
  async recall(at: { readonly lease: LeaseId; readonly job: JobId }, name: string): Promise<string | undefined> {
    if ((await this.#find([at]))[0] === undefined) throw pawlError("lease_lost", { job: at.job });
    return this.#parts.store.records.recall(at.job, checkName("key", name));
  }

  /** Records what an effect returned. The first one wins, and is answered. */
  async record(at: { readonly lease: LeaseId; readonly job: JobId }, name: string, value: string, ttl: number): Promise<string> {
    const { lease, job } = at;
    const [held] = await this.#find([at]);
    if (held === undefined) throw pawlError("lease_lost", { job });
    const size = Buffer.byteLength(value);
    const limit = BOUNDS.recorded;
    if (size > limit) throw pawlError("output_unencodable", { job, reason: `what ${name} returned is ${size} bytes, over the limit of ${limit}` });
    const { tenant } = held.job.lane;
    const kept = await this.#parts.store.records.record(this.ref, { lease, job, tenant, name: checkName("key", name), value, ttl });
    if (kept === "stale") throw pawlError("lease_lost", { job });
    return kept.value;
  }

  /** The worker is gone, or quiet for so long that it is gone for this process. What it holds stays its own in the store. */
  async stop(): Promise<void> {
    await this.#dispatch?.stop();
  }

  async #claim(ask: ClaimAsk): Promise<readonly HandedLease[]> {
    this.#parts.checkOpen();
    const { clock } = this.#parts;
    const limit = checkWhole("limit", ask.limit, 0, MOST_ASKED);
    const free = Math.min(limit, checkWhole("free", ask.free ?? limit, 0, MOST_ASKED));
    const wait = Math.min(LONGEST_WAIT, milliseconds(ask.wait ?? 0));
    const holding = ask.holding === undefined ? undefined : checkHolding(ask.holding);
    const dispatch = await this.#dispatchFor(ask);
    this.#hand.sweep(clock.monotonic());
    if (limit === 0) return [];
    const leases = await dispatch.ask({ limit, free, wait, ...(ask.signal === undefined ? {} : { signal: ask.signal }) }, holding);
    return leases.flatMap((lease) => this.#handOut(lease, dispatch));
  }

  /** What claims for it; another one, if it serves something else than before, or its tasks were changed. */
  async #dispatchFor(ask: ClaimAsk): Promise<Dispatch> {
    const { store, looks, clock, defaults } = this.#parts;
    const options = this.#serving(ask);
    const found = await Promise.all(checkArray("tasks", ask.tasks).map((one) => this.#taskOf(one as HostedTask)));
    const serves = JSON.stringify([options, found.map(({ name, options }) => [name, options])]);
    if (this.#dispatch !== undefined && serves === this.#serves) return this.#dispatch;
    this.#serves = serves;
    const tasks = new Map(found.map((one) => [one.name, one]));
    for (const [name, one] of tasks) this.#tasks.set(name, one);
    this.#plans = new Plans(this.#tasks, defaults);
    const settings = settingsOf({ ...options, tasks: [...tasks.keys()] }, tasks);
    void this.#dispatch?.stop().catch((error) => this.#complain("stop claiming", error));
    const dispatch = new Dispatch({
      store,
      looks,
      worker: this.ref,
      clock,
      settings,
      tasks,
      plans: this.#plans,
      reports: this.#reports,
      suspects: () => this.#hand.suspects,
      handed: () => this.#hand.size,
      running: () => this.#hand.open(),
      onUnasked: (leases) => void this.#giveBack(leases),
      onError: this.#complain,
    });
    for (const { job } of this.#hand.open()) dispatch.held.taken(job.lane);
    this.#dispatch = dispatch;
    return dispatch;
  }

  /** What it asks for, as options of a worker, and within what it may have. */
  #serving({ concurrency, queues, bands, tenants, tags, amounts, reserve, slots }: ClaimAsk): WorkerOptions {
    const own = this.#options.tenants;
    if (own !== undefined && tenants?.every((tenant) => own.includes(tenant)) === false) throw invalid("tenants", "some of them are not its own");
    const asked = { concurrency, queues, bands, tenants: tenants ?? own, tags, amounts, reserve, slots };
    const given = Object.fromEntries(Object.entries(asked).filter(([, value]) => value !== undefined));
    return { ...given, name: this.ref.name, lease: this.#duration };
  }

  /** From here on the worker runs them; those that are not to be run any more are ended instead. */
  #handOut(lease: HeldLease, dispatch: Dispatch): readonly HandedLease[] {
    const now = this.#parts.clock.monotonic();
    const storeNow = lease.storeTime(now);
    this.#hand.add(lease);
    this.#reports.claimed(lease);
    const refused: [Attempt, Outcome][] = [];
    const jobs: HandedJob[] = [];
    for (const attempt of lease.attempts) {
      const { id, lane, input, options, dueAt, spent, crashes } = attempt.job;
      const why = this.#whyNot(attempt, storeNow, dispatch);
      if (why !== undefined) {
        refused.push([attempt, why]);
        continue;
      }
      attempt.begin(now);
      dispatch.begun(attempt);
      this.#reports.started(attempt);
      jobs.push({ id, lane, input: input ?? null, options, dueAt, spent, crashes, timeout: Math.max(0, Math.round(attempt.endBy - now)) });
    }
    if (refused.length > 0) void this.#end(refused).catch((error) => this.#complain("end what is not to be run", error));
    return jobs.length === 0
      ? []
      : [{ lease: lease.id, claimedAt: lease.sentAt, now: lease.storeTime(lease.sentAt), duration: this.#duration, suspect: lease.suspect, jobs }];
  }

  #whyNot(attempt: Attempt, now: number, dispatch: Dispatch): Outcome | undefined {
    return refusal(attempt, now) ?? (dispatch.bars(attempt) ? givenBack(attempt) : undefined);
  }

  async #giveBack(leases: readonly HeldLease[]): Promise<void> {
    for (const lease of leases) this.#hand.add(lease);
    try {
      await this.#end(leases.flatMap(({ attempts }) => attempts.map((attempt): [Attempt, Outcome] => [attempt, givenBack(attempt)])));
    } catch (error) {
      // Then the leases run out.
      this.#complain("give back what nobody waits for", error);
    }
  }

  /** Ends attempts that were never begun. */
  async #end(endings: readonly (readonly [Attempt, Outcome])[]): Promise<void> {
    const { store, clock } = this.#parts;
    const now = clock.monotonic();
    const settlements = endings.map(([attempt, outcome]) => {
      attempt.startedAt = now;
      return attempt.settlement(attempt.decide(outcome, now, clock.random), now);
    });
    await store.leases.settle(this.ref, settlements);
    for (const [attempt] of endings) this.#hand.over(attempt);
    this.#dispatch?.room();
  }

  /** The attempts that were handed out here; the others as the store knows them, if this worker may have them. */
  async #find(asked: readonly Pick<ToldEnding, "lease" | "job" | "run">[]): Promise<readonly (Attempt | undefined)[]> {
    const found = asked.map(({ lease, job }) => this.#hand.find(lease, job));
    if (!found.includes(undefined)) return found;
    // However often a job is named, it is read once.
    const reads = new Map<JobId, Promise<ClaimedJob | undefined>>();
    const readOnce = (job: JobId) => {
      const read = reads.get(job) ?? this.#rebuilt.job(job);
      reads.set(job, read);
      return read;
    };
    return Promise.all(
      found.map(async (known, place) => {
        if (known !== undefined) return known;
        const { lease, job, run } = asked[place] as (typeof asked)[number];
        const read = await readOnce(job);
        if (read === undefined || this.#options.allows?.(read.lane) === false) return undefined;
        return this.#rebuilt.attempt(lease, read, { ...(await this.#planOf(read.lane)), ...run });
      }),
    );
  }

  /** A task whose code is elsewhere. */
  async #taskOf({ name, ...given }: HostedTask): Promise<AnyTask> {
    const published = await this.#parts.taskOf(checkName("task", name));
    const { input: _, ...options } = { ...published.options, ...given };
    if (options.retry !== undefined) checkRetry(options.retry);
    if (options.timeout !== undefined) checkPeriod(`${name}.timeout`, options.timeout);
    return task(name, options as TaskOptions, () => {
      throw pawlError("task_unknown", { task: name });
    });
  }

  async #planOf(lane: ClaimedJob["lane"]) {
    if (!this.#tasks.has(lane.task)) this.#tasks.set(lane.task, await this.#taskOf({ name: lane.task }));
    return this.#plans.of(lane) as NonNullable<ReturnType<Plans["of"]>>;
  }
}

/** Told with its end: how much of what an attempt said is not stored. */
function missingLine(attempt: Attempt | undefined, now: number): readonly LogEntry[] {
  const message = attempt?.notes?.missing();
  if (attempt === undefined || message === undefined) return [];
  const { lease, job } = attempt;
  return [{ lease: lease.id, job: job.id, tenant: job.lane.tenant, at: lease.storeTime(now), level: "warn", message }];
}

function checkBoot(boot: string): BootId {
  if (typeof boot !== "string" || !UUID.test(boot)) throw invalid("boot", "it is not a UUID in lower case");
  return boot as BootId;
}

function checkHolding(holding: readonly Holding[]): readonly Holding[] {
  if (checkArray("holding", holding).length > MOST_LANES) throw invalid("holding", `it names more than ${MOST_LANES} lanes`);
  let sum = 0;
  for (const { count } of holding) sum += checkWhole("holding.count", count, 0, MOST_HELD);
  if (sum > MOST_HELD) throw invalid("holding", `it counts more than ${MOST_HELD} jobs`);
  return holding;
}

import type { InstanceId, JobId, LeaseId } from "../../core/jobs/id.js";
import type { Lane } from "../../core/jobs/lane.js";
import type { WorkerRef } from "../../core/jobs/lease.js";
import type { Outcome } from "../../core/jobs/outcome.js";
import { checkRetry } from "../../core/jobs/retry.js";
import { type AnyTask, type JobDefaults, type TaskOptions, task } from "../../core/jobs/task.js";
import { BOUNDS } from "../../core/values/bounds.js";
import { DEFAULTS } from "../../core/values/defaults.js";
import { type Duration, milliseconds } from "../../core/values/duration.js";
import { pawlError } from "../../core/values/error.js";
import { checkName } from "../../core/values/name.js";
import { checkArray, checkDuration, checkPeriod, checkWhole, invalid } from "../../core/values/option.js";
import type { Bus } from "../../runtime/process/bus.js";
import type { Clock } from "../../runtime/time/clock.js";
import type { Store } from "../../store/port/index.js";
import type { ClaimedJob, Settled } from "../../store/port/settle/leases.js";
import type { LogEntry } from "../../store/port/settle/records.js";
import { settingsOf, type WorkerOptions } from "../options.js";
import { WorkerEvents } from "../report-events.js";
import type { Attempt } from "../run/attempt.js";
import { AttemptLog, type StoredLogLine } from "../run/attempt-log.js";
import { refusal, releaseOutcome } from "../run/outcome-of.js";
import { TaskPlans } from "../run/task-plan.js";
import type { HeldLease } from "../settle/held-lease.js";
import { throttleErrors } from "../throttle-errors.js";
import { Dispatch } from "./dispatch.js";
import { MAX_HELD_JOBS, MAX_LANES } from "./held-job-counts.js";
import type { LanePoll } from "./lane-poll.js";
import { ReconstructedAttempts } from "./reconstructed-attempts.js";
import { RemoteLeases } from "./remote-leases.js";
import { type AttemptOutcome, type AttemptReport, checkAttemptOutcome, type HeldJobs, outcomeOf, storedLine } from "./reported-outcome.js";

/** Who a worker elsewhere is, and what it may have. */
export interface HostOptions {
  readonly name: string;
  /** one life of one worker: every one that is started has another */
  readonly instance: string;
  readonly leaseDuration?: Duration;
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
export interface RemoteClaimRequest extends Pick<WorkerOptions, "concurrency" | "queues" | "priorities" | "tenants" | "provides" | "reserve"> {
  readonly tasks: readonly HostedTask[];
  /** jobs at most */
  readonly limit: number;
  /** how many of them it can start at once; all, if left out. The others it will start soon */
  readonly freeSlots?: number;
  /** how long to wait for the first of them */
  readonly wait?: Duration;
  /** what it has in hand; where it is left out, this process goes by what it gave out itself */
  readonly heldJobs?: readonly HeldJobs[];
  /** asked again with the same id, because the answer was lost: the same answer */
  readonly idempotencyKey?: string;
  readonly signal?: AbortSignal;
}

/** A lease and its jobs, for the worker to run. Times are ms, by the store's clock where they are instants. */
export interface RemoteLease {
  readonly lease: LeaseId;
  /** when it was asked for, by the monotonic clock of this process, and by the store's */
  readonly claimedAt: number;
  readonly now: number;
  /** it must be renewed within */
  readonly duration: number;
  readonly suspect: boolean;
  readonly jobs: readonly LeasedJob[];
}

export interface LeasedJob extends Pick<ClaimedJob, "id" | "lane" | "options" | "dueAt" | "attempts" | "crashes"> {
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

export interface HostDeps {
  readonly store: Store;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly lanePoll: LanePoll;
  /** throws once nothing more is to be claimed here */
  readonly checkOpen: () => void;
  /** per queue */
  readonly defaults: Readonly<Record<string, JobDefaults>>;
  /** a task as it is registered: here, or by whoever runs it */
  readonly taskOf: (name: string) => Pick<AnyTask, "name" | "options"> | Promise<Pick<AnyTask, "name" | "options">>;
}

export const MAX_WAIT_MS = 60_000;
export const MAX_JOBS_PER_CLAIM = 1_000;
/** that come with outcomes, of all of them together */
const MAX_REPORTS = 10_000;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * A worker that runs elsewhere, hosted by this process: it is claimed for here, by the rules of every worker, and its
 * outcomes are decided here. Everything it holds is in the store under its own instance, so any process can host it, and
 * another one goes on where this one ended.
 */
export class Host {
  readonly ref: WorkerRef;
  readonly #deps: HostDeps;
  readonly #options: HostOptions;
  readonly #duration: number;
  readonly #tasks = new Map<string, AnyTask>();
  readonly #remoteLeases: RemoteLeases;
  readonly #events: WorkerEvents;
  readonly #reconstructed: ReconstructedAttempts;
  readonly #reportError: (step: string, error: unknown) => void;
  #plans: TaskPlans;
  #dispatch: Dispatch | undefined;
  #serves = "";
  #last: { readonly idempotencyKey: string; readonly answer: Promise<readonly RemoteLease[]> } | undefined;

  constructor(deps: HostDeps, options: HostOptions) {
    const { name, instance, leaseDuration = DEFAULTS.lease.duration } = options;
    this.ref = { name: checkName("worker name", name), instance: checkInstance(instance) };
    this.#deps = deps;
    this.#options = options;
    this.#duration = checkDuration("lease", leaseDuration);
    this.#plans = new TaskPlans(this.#tasks, deps.defaults);
    this.#events = new WorkerEvents(deps.bus, name);
    this.#reportError = throttleErrors(deps.clock, (step, error) => this.#events.failed(step, error));
    this.#remoteLeases = new RemoteLeases(this.#duration, (attempt, ran) => this.#dispatch?.attemptOver(attempt, ran));
    this.#reconstructed = new ReconstructedAttempts(deps.store, deps.clock, this.#duration);
  }

  /** Jobs to run, as soon as there are any; none, if there are none while it waits. */
  claim(claimRequest: RemoteClaimRequest): Promise<readonly RemoteLease[]> {
    const { idempotencyKey } = claimRequest;
    if (idempotencyKey !== undefined && idempotencyKey === this.#last?.idempotencyKey) return this.#last.answer;
    const answer = this.#claim(claimRequest);
    if (idempotencyKey !== undefined) this.#last = { idempotencyKey, answer };
    answer.catch(() => {
      if (this.#last?.answer === answer) this.#last = undefined;
    });
    return answer;
  }

  /** Extends the leases that are still its own, by number. */
  async renew(leases: readonly LeaseId[]): Promise<HostRenewal> {
    const { store, clock } = this.#deps;
    const sentAt = clock.monotonic();
    // By then all of its jobs should have ended: one that hangs loses it, as it would here.
    const due = leases.filter((id) => sentAt < (this.#remoteLeases.lease(id)?.latest ?? Number.POSITIVE_INFINITY));
    const { held } = due.length === 0 ? { held: [] } : await store.leases.renew(this.ref, due, this.#duration);
    for (const id of held) this.#remoteLeases.renewed(id, sentAt);
    const confirmed = new Set(held);
    const lost = leases.filter((id) => !confirmed.has(id));
    for (const id of lost) this.#remoteLeases.drop(id);
    return { held, lost, cancel: await this.cancelled(held) };
  }

  /** Which jobs of these leases somebody asked to be cancelled. */
  async cancelled(leases: readonly LeaseId[]): Promise<readonly JobId[]> {
    if (leases.length === 0) return [];
    const wanted = await this.#deps.store.leases.intents(this.ref, leases);
    return wanted.filter(({ intent }) => intent === "cancel").map(({ job }) => job);
  }

  /** Records how attempts ended, in order. Again under the same lease, because the answer was lost, answers the same. */
  async settle(outcomes: readonly AttemptOutcome[]): Promise<readonly Settled[]> {
    const notes = outcomes.flatMap(({ lease, job, notes = [] }) => notes.map((note) => ({ lease, job, ...note })));
    for (const attemptOutcome of outcomes) checkAttemptOutcome(attemptOutcome);
    if (notes.length > MAX_REPORTS) throw invalid("notes", `there are more than ${MAX_REPORTS} of them in one request`);
    if (notes.length > 0) await this.note(notes);
    const found = await this.#find(outcomes);
    const { clock, store } = this.#deps;
    const now = clock.monotonic();
    const missing = found.flatMap((attempt) => missingLine(attempt, now));
    if (missing.length > 0) await store.records.log(this.ref, missing);
    const sent: { readonly attempt: Attempt; readonly outcome: Outcome; readonly took: number; readonly key: string }[] = [];
    const answers = new Map<string, Settled>();
    outcomes.forEach(({ lease, job, reportedOutcome, duration }, index) => {
      const attempt = found[index];
      const key = `${lease} ${job}`;
      // Told twice in one go: the first one counts.
      if (attempt === undefined || answers.has(key)) return;
      answers.set(key, "stale");
      const outcome = outcomeOf(reportedOutcome, attempt.job.options?.limits);
      sent.push({ attempt, outcome, took: Math.min(duration ?? now - attempt.startedAt, now - attempt.lease.sentAt), key });
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
            sent.map(({ attempt }, index) => attempt.settlement(patches[index] as (typeof patches)[number], now)),
          );
    sent.forEach(({ attempt, outcome, took, key }, index) => {
      const answer = settled[index] ?? "stale";
      const patch = patches[index] as (typeof patches)[number];
      answers.set(key, answer);
      if (this.#remoteLeases.find(attempt.lease.id, attempt.job.id) === attempt) {
        if (answer === "settled") this.#dispatch?.settled(attempt, outcome, took);
        this.#remoteLeases.finish(attempt);
      }
      if (answer === "stale") this.#events.stale(attempt, patch.outcome);
      else this.#events.settled(attempt, patch, took);
    });
    this.#dispatch?.claimIfUseful();
    return outcomes.map(({ lease, job }) => answers.get(`${lease} ${job}`) ?? "stale");
  }

  /** Log lines and progress of attempts that run. Those of a lost lease are let go. */
  async note(notes: readonly AttemptReport[]): Promise<void> {
    const lines = notes.map(storedLine);
    const { store, clock } = this.#deps;
    const now = clock.monotonic();
    const attempts = await this.#find(notes);
    const entries = notes.flatMap(({ lease, job, level, ago = 0 }, index): LogEntry[] => {
      const attempt = attempts[index];
      const line = lines[index] as StoredLogLine;
      if (attempt === undefined) return [];
      attempt.log ??= new AttemptLog();
      if (level !== "progress" && !attempt.log.admits(line)) return [];
      const { tenant } = attempt.job.lane;
      return [{ lease, job, tenant, at: attempt.lease.storeTime(Math.max(now - ago, attempt.lease.sentAt)), level, ...line }];
    });
    if (entries.length > 0) await store.records.log(this.ref, entries);
  }

  /** What a job recorded under that name; undefined: nothing. */
  async recall(at: { readonly lease: LeaseId; readonly job: JobId }, name: string): Promise<string | undefined> {
    if ((await this.#find([at]))[0] === undefined) throw pawlError("lease_lost", { job: at.job });
    return this.#deps.store.records.recall(at.job, checkName("key", name));
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
    const confirmed = await this.#deps.store.records.record(this.ref, { lease, job, tenant, name: checkName("key", name), value, ttl });
    if (confirmed === "stale") throw pawlError("lease_lost", { job });
    return confirmed.value;
  }

  /** The worker is gone, or quiet for so long that it is gone for this process. What it holds stays its own in the store. */
  async stop(): Promise<void> {
    await this.#dispatch?.stop();
  }

  async #claim(claimRequest: RemoteClaimRequest): Promise<readonly RemoteLease[]> {
    this.#deps.checkOpen();
    const { clock } = this.#deps;
    const limit = checkWhole("limit", claimRequest.limit, 0, MAX_JOBS_PER_CLAIM);
    const free = Math.min(limit, checkWhole("free", claimRequest.freeSlots ?? limit, 0, MAX_JOBS_PER_CLAIM));
    const wait = Math.min(MAX_WAIT_MS, milliseconds(claimRequest.wait ?? 0));
    const heldJobs = claimRequest.heldJobs === undefined ? undefined : checkHeldJobs(claimRequest.heldJobs);
    const dispatch = await this.#dispatchFor(claimRequest);
    this.#remoteLeases.sweep(clock.monotonic());
    if (limit === 0) return [];
    const leases = await dispatch.poll(
      { limit, free, wait, ...(claimRequest.signal === undefined ? {} : { signal: claimRequest.signal }) },
      heldJobs,
    );
    return leases.flatMap((lease) => this.#deliver(lease, dispatch));
  }

  /** What claims for it; another one, if it serves something else than before, or its tasks were changed. */
  async #dispatchFor(claimRequest: RemoteClaimRequest): Promise<Dispatch> {
    const { store, lanePoll, clock, defaults } = this.#deps;
    const options = this.#workerOptionsOf(claimRequest);
    const found = await Promise.all(checkArray("tasks", claimRequest.tasks).map((one) => this.#taskOf(one as HostedTask)));
    const serves = JSON.stringify([options, found.map(({ name, options }) => [name, options])]);
    if (this.#dispatch !== undefined && serves === this.#serves) return this.#dispatch;
    this.#serves = serves;
    const tasks = new Map(found.map((one) => [one.name, one]));
    for (const [name, one] of tasks) this.#tasks.set(name, one);
    this.#plans = new TaskPlans(this.#tasks, defaults);
    const settings = settingsOf({ ...options, tasks: [...tasks.keys()] }, tasks);
    void this.#dispatch?.stop().catch((error) => this.#reportError("stop claiming", error));
    const dispatch = new Dispatch({
      store,
      lanePoll,
      worker: this.ref,
      clock,
      settings,
      tasks,
      plans: this.#plans,
      events: this.#events,
      suspects: () => this.#remoteLeases.suspects,
      leasedJobs: () => this.#remoteLeases.size,
      running: () => this.#remoteLeases.open(),
      onUndelivered: (leases) => void this.#returnJobs(leases),
      onError: this.#reportError,
    });
    for (const { job } of this.#remoteLeases.open()) dispatch.heldJobCounts.addJobs(job.lane);
    this.#dispatch = dispatch;
    return dispatch;
  }

  /** What it asks for, as options of a worker, and within what it may have. */
  #workerOptionsOf({ concurrency, queues, priorities, tenants, provides, reserve }: RemoteClaimRequest): WorkerOptions {
    const own = this.#options.tenants;
    if (own !== undefined && tenants?.every((tenant) => own.includes(tenant)) === false) throw invalid("tenants", "some of them are not its own");
    const wanted = { concurrency, queues, priorities, tenants: tenants ?? own, provides, reserve };
    const fields = Object.fromEntries(Object.entries(wanted).filter(([, value]) => value !== undefined));
    return { ...fields, name: this.ref.name, leaseDuration: this.#duration };
  }

  /** From here on the worker runs them; those that are not to be run any more are ended instead. */
  #deliver(lease: HeldLease, dispatch: Dispatch): readonly RemoteLease[] {
    const now = this.#deps.clock.monotonic();
    const storeNow = lease.storeTime(now);
    this.#remoteLeases.add(lease);
    this.#events.claimed(lease);
    const notRun: [Attempt, Outcome][] = [];
    const jobs: LeasedJob[] = [];
    for (const attempt of lease.attempts) {
      const { id, lane, input, options, dueAt, attempts, crashes } = attempt.job;
      const why = this.#whyNot(attempt, storeNow, dispatch);
      if (why !== undefined) {
        notRun.push([attempt, why]);
        continue;
      }
      attempt.begin(now);
      dispatch.attemptStarted(attempt);
      this.#events.started(attempt);
      jobs.push({ id, lane, input: input ?? null, options, dueAt, attempts, crashes, timeout: Math.max(0, Math.round(attempt.endBy - now)) });
    }
    if (notRun.length > 0) void this.#end(notRun).catch((error) => this.#reportError("end what is not to be run", error));
    return jobs.length === 0
      ? []
      : [{ lease: lease.id, claimedAt: lease.sentAt, now: lease.storeTime(lease.sentAt), duration: this.#duration, suspect: lease.suspect, jobs }];
  }

  #whyNot(attempt: Attempt, now: number, dispatch: Dispatch): Outcome | undefined {
    return refusal(attempt, now) ?? (dispatch.blocks(attempt) ? releaseOutcome(attempt) : undefined);
  }

  async #returnJobs(leases: readonly HeldLease[]): Promise<void> {
    for (const lease of leases) this.#remoteLeases.add(lease);
    try {
      await this.#end(leases.flatMap(({ attempts }) => attempts.map((attempt): [Attempt, Outcome] => [attempt, releaseOutcome(attempt)])));
    } catch (error) {
      // Then the leases run out.
      this.#reportError("give back what nobody waits for", error);
    }
  }

  /** Ends attempts that were never begun. */
  async #end(outcomes: readonly (readonly [Attempt, Outcome])[]): Promise<void> {
    const { store, clock } = this.#deps;
    const now = clock.monotonic();
    const settlements = outcomes.map(([attempt, outcome]) => {
      attempt.startedAt = now;
      return attempt.settlement(attempt.decide(outcome, now, clock.random), now);
    });
    await store.leases.settle(this.ref, settlements);
    for (const [attempt] of outcomes) this.#remoteLeases.finish(attempt);
    this.#dispatch?.claimIfUseful();
  }

  /** The attempts that were leased here; the others as the store knows them, if this worker may have them. */
  async #find(refs: readonly Pick<AttemptOutcome, "lease" | "job" | "taskOptions">[]): Promise<readonly (Attempt | undefined)[]> {
    const found = refs.map(({ lease, job }) => this.#remoteLeases.find(lease, job));
    if (!found.includes(undefined)) return found;
    // However often a job is named, it is read once.
    const reads = new Map<JobId, Promise<ClaimedJob | undefined>>();
    const readOnce = (job: JobId) => {
      const read = reads.get(job) ?? this.#reconstructed.job(job);
      reads.set(job, read);
      return read;
    };
    return Promise.all(
      found.map(async (attempt, index) => {
        if (attempt !== undefined) return attempt;
        const { lease, job, taskOptions } = refs[index] as (typeof refs)[number];
        const read = await readOnce(job);
        if (read === undefined || this.#options.allows?.(read.lane) === false) return undefined;
        return this.#reconstructed.attempt(lease, read, { ...(await this.#planOf(read.lane)), ...taskOptions });
      }),
    );
  }

  /** A task whose code is elsewhere. */
  async #taskOf({ name, ...fields }: HostedTask): Promise<AnyTask> {
    const published = await this.#deps.taskOf(checkName("task", name));
    const { input: _, ...options } = { ...published.options, ...fields };
    if (options.retry !== undefined) checkRetry(options.retry);
    if (options.timeout !== undefined) checkPeriod(`${name}.timeout`, options.timeout);
    return task(name, options as TaskOptions, () => {
      throw pawlError("task_unknown", { task: name });
    });
  }

  async #planOf(lane: ClaimedJob["lane"]) {
    if (!this.#tasks.has(lane.task)) this.#tasks.set(lane.task, await this.#taskOf({ name: lane.task }));
    return this.#plans.of(lane) as NonNullable<ReturnType<TaskPlans["of"]>>;
  }
}

/** Told with its end: how much of what an attempt said is not stored. */
function missingLine(attempt: Attempt | undefined, now: number): readonly LogEntry[] {
  const message = attempt?.log?.missing();
  if (attempt === undefined || message === undefined) return [];
  const { lease, job } = attempt;
  return [{ lease: lease.id, job: job.id, tenant: job.lane.tenant, at: lease.storeTime(now), level: "warn", message }];
}

function checkInstance(instance: string): InstanceId {
  if (typeof instance !== "string" || !UUID.test(instance)) throw invalid("instance", "it is not a UUID in lower case");
  return instance as InstanceId;
}

function checkHeldJobs(heldJobs: readonly HeldJobs[]): readonly HeldJobs[] {
  if (checkArray("heldJobs", heldJobs).length > MAX_LANES) throw invalid("heldJobs", `it names more than ${MAX_LANES} lanes`);
  let sum = 0;
  for (const { count } of heldJobs) sum += checkWhole("heldJobs.count", count, 0, MAX_HELD_JOBS);
  if (sum > MAX_HELD_JOBS) throw invalid("heldJobs", `it counts more than ${MAX_HELD_JOBS} jobs`);
  return heldJobs;
}

import type { Lane } from "../../core/jobs/lane.js";
import type { WorkerRef } from "../../core/jobs/lease.js";
import type { PlannedQuota } from "../../core/sharing/claim-plan.js";
import { Backoff } from "../../runtime/time/backoff.js";
import type { Clock } from "../../runtime/time/clock.js";
import { type Loop, loop } from "../../runtime/time/loop.js";
import type { Store, Wakeup } from "../../store/port/index.js";
import type { Claimed, ClaimRequest, LimitedClaim } from "../../store/port/settle/leases.js";
import type { WorkerSettings } from "../options.js";
import type { TaskPlans } from "../run/task-plan.js";
import { ClaimPlanner } from "./claim-planner.js";
import { type HandoffWaiter, handoffWaiterOf } from "./wait-for-handoff.js";
import type { WorkerLimit } from "./worker-limits.js";

/** What the claimer asks of the jobs in hand. */
export interface WorkerLoad {
  /** slots with nothing in them */
  readonly free: number;
  /** jobs claimed and not started */
  readonly unstarted: number;
  /** jobs beyond the free slots that could start soon */
  readonly ahead: number;
  readonly suspects: number;
}

/** What it needs of a store. */
export type ClaimStore = Pick<Store, "policies" | "receivesWakeups" | "handoff"> & {
  readonly leases: Pick<Store["leases"], "claim" | "claimLimited" | "claimSuspect">;
  readonly lanes: Pick<Store["lanes"], "live">;
};

/** Whoever brings a worker its jobs: the claimer, or one that asks a service for them. */
export interface JobSource {
  readonly lanes: number;
  readonly inFlight: number;
  readonly planner: Pick<ClaimPlanner, "limits" | "shareOf" | "shut" | "tenantDurations">;
  /** Looks for work already, and takes none before it is started. */
  startPolling?(): void;
  start(): void;
  stop(): Promise<void>;
  handleWakeup(wakeup: Wakeup): void;
  jobSettled(lane: Lane): void;
  claimIfUseful(): void;
}

export interface ClaimerDeps {
  readonly store: ClaimStore;
  readonly worker: WorkerRef;
  readonly clock: Clock;
  readonly settings: WorkerSettings;
  readonly plans: TaskPlans;
  /** what bounds the jobs of lanes here */
  readonly limits: readonly WorkerLimit[];
  readonly load: WorkerLoad;
  /** whether any job of its tasks would do now: nothing bounds them here but its slots */
  readonly takesAny?: () => boolean;
  readonly onClaimed: (claimed: Claimed, sentAt: number, suspect: boolean) => void;
  readonly onStalled: (idleFor: number) => void;
  readonly onError: (step: string, error: unknown) => void;
}

/** A claim that is not answered yet. */
interface PendingClaim {
  readonly quotas: readonly PlannedQuota[];
  readonly limit: number;
  /** by the limits of queues, tasks and tenants: one at a time, beside the others */
  readonly limited: boolean;
  readonly suspect: boolean;
  /** of a suspect's: those it may be of */
  readonly tasks?: readonly string[];
  /** takes jobs that may run at most once: nothing else may take the slots meant for them */
  readonly exclusive: boolean;
}

const MAX_PENDING_CLAIMS = 2;
/** As many lanes as make a claim of their own worth while. */
const MIN_LANES_FOR_SECOND_CLAIM = 32;
const STALLED_AFTER_MS = 30_000;
const STALL_CHECK_MS = 5_000;
/** Once it accepts connections again, claims resume within this. */
const MAX_BACKOFF_MS = 1_500;

/**
 * Decides when to claim and how much: what can start soon and no more, out of the lanes that `ClaimPlanner` knows to have work.
 * An idle worker asks the store once per poll and nothing else.
 */
export class Claimer implements JobSource {
  readonly planner: ClaimPlanner;
  readonly #pendingClaims = new Set<PendingClaim>();
  readonly #backoff: Backoff;
  #requestedJobs = 0;
  #atMostOncePassedOver = false;
  #suspects = false;
  /** counts what is heard and asked, to tell which came first */
  #sequence = 0;
  #wakeupSequence = 0;
  #claimSequence = 0;
  /** whether the last claim showed that there may be more */
  #backlog = false;
  #polling = false;
  #claiming = false;
  #backingOff = false;
  #waitingSince: number | undefined;
  #handoffWaiter: HandoffWaiter | undefined;
  #hasPolled = false;
  #nextPollAt = 0;
  #poll: Loop | undefined;
  #cancelWatch: (() => void) | undefined;
  #onIdle: (() => void)[] = [];

  constructor(private readonly deps: ClaimerDeps) {
    const { clock, settings, plans, limits } = deps;
    this.planner = new ClaimPlanner({ clock, settings, plans, limits, onRoom: () => this.claimIfUseful() });
    this.#backoff = new Backoff(clock, { min: 50, max: MAX_BACKOFF_MS });
  }

  get lanes(): number {
    return this.planner.lanes;
  }

  get inFlight(): number {
    return this.#pendingClaims.size;
  }

  startPolling(): void {
    const { clock, onError } = this.deps;
    this.#polling = true;
    this.#poll = loop({
      clock,
      step: () => this.#refresh(),
      onError: (error) => onError("look for work", error),
      backoff: { min: 50, max: MAX_BACKOFF_MS },
      patience: STALLED_AFTER_MS,
    });
  }

  start(): void {
    if (!this.#polling) this.startPolling();
    this.#claiming = true;
    this.#handoffWaiter = handoffWaiterOf(this.deps);
    this.#watchForStalls();
    this.claimIfUseful();
  }

  /** No claim goes out from here on. Answers when those under way have come back. */
  stop(): Promise<void> {
    this.#polling = false;
    this.#claiming = false;
    void this.#poll?.stop();
    this.#cancelWatch?.();
    this.planner.stop();
    const handoffStopped = this.#handoffWaiter?.stop() ?? Promise.resolve();
    if (this.#pendingClaims.size === 0) return handoffStopped;
    return new Promise<void>((resolve) => this.#onIdle.push(resolve)).then(() => handoffStopped);
  }

  handleWakeup(wakeup: Wakeup): void {
    if (!this.#polling) return;
    if (wakeup.kind === "lanes" || wakeup.kind === "look") this.#poll?.wake();
    if (wakeup.kind !== "ready") return;
    this.#wakeupSequence = ++this.#sequence;
    this.#handoffWaiter?.workArrived();
    this.planner.addLanes(wakeup.lanes, this.#sequence);
    this.claimIfUseful();
  }

  /** The store knows that a job of the lane is over: what it held of limits is free. */
  jobSettled(lane: Lane): void {
    if (this.planner.jobSettled(lane)) this.claimIfUseful();
  }

  /** Claims if it is worth it. Called whenever something changed, so it is cheap when nothing did. */
  claimIfUseful(): void {
    if (!this.#claiming || this.#backingOff) return;
    if (this.#suspects) this.#claimSuspect();
    while (this.#mayClaim() && this.#claimSome());
    this.#handoffWaiter?.update(this.#hasPolled && this.lanes === 0 && this.#pendingClaims.size === 0);
  }

  /** A second claim beside the first only where it should find something: a backlog, what was heard of since, or many lanes unasked. */
  #mayClaim(): boolean {
    if (this.#pendingClaims.size === 0) return true;
    if (this.#pendingClaims.size >= MAX_PENDING_CLAIMS) return false;
    return this.#backlog || this.#wakeupSequence > this.#claimSequence || this.lanes - this.#pendingLanes >= MIN_LANES_FOR_SECOND_CLAIM;
  }

  get #pendingLanes(): number {
    let count = 0;
    for (const { quotas } of this.#pendingClaims) count += quotas.length;
    return count;
  }

  get #hasLimitedClaim(): boolean {
    for (const { limited } of this.#pendingClaims) if (limited) return true;
    return false;
  }

  #claimSome(): boolean {
    if (this.lanes === 0) return false;
    const { load, settings } = this.deps;
    const { free } = load;
    const pending = load.unstarted + this.#requestedJobs;
    const ahead = Math.min(load.ahead, MAX_PENDING_CLAIMS * settings.maxJobsPerClaim);
    const size = Math.min(settings.maxJobsPerClaim, free + ahead - pending);
    if (size <= 0) return false;
    // Every free slot is spoken for: what is left is a matter of batch size, so let a good one gather.
    if (pending >= free && size < Math.min(settings.maxJobsPerClaim, ahead / MAX_PENDING_CLAIMS)) return false;
    const atMostOnce = this.#atMostOnceTurn(pending);
    if (atMostOnce === "wait") return false;
    const limit = atMostOnce === "now" ? Math.min(size, free) : size;
    const quotas = this.planner.plan(limit, { atMostOnce: atMostOnce === "now", limited: !this.#hasLimitedClaim });
    if (quotas.length === 0) return false;
    const limited = quotas.filter(({ lane }) => this.planner.isLimited(lane));
    const plain = limited.length === 0 ? quotas : quotas.filter(({ lane }) => !this.planner.isLimited(lane));
    if (plain.length > 0) this.#send(plain, atMostOnce === "now");
    if (limited.length > 0) this.#sendLimited(limited, atMostOnce === "now");
    return true;
  }

  /**
   * Jobs that run at most once are dead if their worker vanishes with them, started or not. So they are claimed into
   * free slots only, while the worker has no other jobs, and with no other claim under way; after one claim without them, that moment is
   * waited for, so that a stream of others cannot keep them out for ever.
   */
  #atMostOnceTurn(pending: number): "now" | "no" | "wait" {
    for (const pendingClaim of this.#pendingClaims) if (pendingClaim.exclusive) return "wait";
    if (this.planner.atMostOnceLanes === 0) return "no";
    if (pending === 0 && this.deps.load.free > 0) {
      this.#atMostOncePassedOver = false;
      return "now";
    }
    if (this.#atMostOncePassedOver || this.planner.atMostOnceLanes === this.lanes) return "wait";
    this.#atMostOncePassedOver = true;
    return "no";
  }

  #send(quotas: readonly PlannedQuota[], exclusive: boolean): void {
    const sequence = this.#sequence++;
    this.#claimSequence = sequence;
    const request = this.#requestFor(quotas);
    const limit = sum(quotas);
    this.#execute(
      { quotas, limit, exclusive, limited: false, suspect: false },
      () => this.deps.store.leases.claim(request),
      (claimed) => {
        this.planner.recordYield(quotas.length, limit, claimed?.jobs.length ?? 0);
        this.#backlog = isFull(claimed, limit) || this.planner.recordAnswer(quotas, claimed, sequence);
      },
    );
  }

  #sendLimited(quotas: readonly PlannedQuota[], exclusive: boolean): void {
    const sequence = this.#sequence++;
    const request = this.#requestFor(quotas);
    const limit = sum(quotas);
    let answer: LimitedClaim = { claimed: undefined, reached: [] };
    this.#execute(
      { quotas, limit, exclusive, limited: true, suspect: false },
      async () => {
        answer = await this.deps.store.leases.claimLimited(request);
        return answer.claimed;
      },
      (claimed) => {
        this.planner.limitsReached(answer.reached);
        if (!isFull(claimed, limit)) this.planner.recordAnswer(quotas, claimed, sequence);
      },
    );
  }

  #requestFor(quotas: readonly PlannedQuota[]): ClaimRequest {
    const { worker, settings } = this.deps;
    return { worker, quotas, duration: settings.leaseDuration };
  }

  /** One at a time: if it takes this worker down again, it takes down nobody else's job with it, and is known by that. */
  #claimSuspect(): void {
    const { store, worker, settings, load } = this.deps;
    if (load.suspects > 0 || load.free === 0 || this.#pendingClaims.size >= MAX_PENDING_CLAIMS) return;
    const { queues, priorities, tenants, leaseDuration: duration } = settings;
    const { limits } = this.planner;
    const tasks = limits.admits(settings.tasks);
    if (tasks.length === 0) return;
    this.#suspects = false;
    limits.takeAny(tasks, 1);
    const filters = { ...(priorities === undefined ? {} : { priorities }), ...(tenants === undefined ? {} : { tenants }) };
    this.#execute(
      { quotas: [], limit: 1, exclusive: false, limited: false, suspect: true, tasks },
      () => store.leases.claimSuspect({ worker, queues, tasks, ...filters, duration }),
      (claimed) => {
        this.#suspects = claimed !== undefined;
      },
    );
  }

  #execute(pendingClaim: PendingClaim, claim: () => Promise<Claimed | undefined>, onAnswer: (claimed: Claimed | undefined) => void): void {
    const { clock, onClaimed, onError } = this.deps;
    const sentAt = clock.monotonic();
    this.#pendingClaims.add(pendingClaim);
    this.#requestedJobs += pendingClaim.limit;
    this.#waitingSince ??= sentAt;
    claim().then(
      (claimed) => {
        this.#waitingSince = undefined;
        this.#backoff.reset();
        this.#finish(pendingClaim);
        onAnswer(claimed);
        if (claimed !== undefined) onClaimed(claimed, sentAt, pendingClaim.suspect);
        this.claimIfUseful();
      },
      (error: unknown) => {
        this.#finish(pendingClaim);
        onError("claim", error);
        this.#backOff();
      },
    );
  }

  /** Once per claim: one given up as stalled may still come in, and its jobs are as good as any others. */
  #finish(pendingClaim: PendingClaim): void {
    if (!this.#pendingClaims.delete(pendingClaim)) return;
    this.#requestedJobs -= pendingClaim.limit;
    this.planner.release(pendingClaim.quotas);
    if (pendingClaim.tasks !== undefined) this.planner.limits.takeAny(pendingClaim.tasks, -1);
    if (this.#pendingClaims.size === 0) for (const resolve of this.#onIdle.splice(0)) resolve();
  }

  /** A look at thousands of lanes takes its time: while wakeups ask for one after the other, claims have as much. */
  async #refresh(): Promise<number> {
    const { store, settings, clock } = this.deps;
    const began = clock.monotonic();
    if (began < this.#nextPollAt) return this.#nextPollAt - began;
    const since = this.#sequence++;
    const live = await store.lanes.live(settings.queues, settings.tasks);
    await this.planner.refresh(live, store.policies, since);
    this.#suspects = live.suspects;
    this.#hasPolled = true;
    this.claimIfUseful();
    const now = clock.monotonic();
    this.#nextPollAt = now + (now - began);
    // Spread, so that many workers do not look all at once; never sooner than the poll, so that rest stays cheap.
    return settings.pollInterval * (store.receivesWakeups() ? 2 : 1) * (1 + 0.2 * clock.random());
  }

  #backOff(): void {
    if (this.#backingOff) return;
    this.#backingOff = true;
    this.deps.clock.after(this.#backoff.next(), () => {
      this.#backingOff = false;
      this.claimIfUseful();
    });
  }

  /** Work is known, slots are free, and no claim has come back for long: whatever the reason, begin anew, and say so. */
  #watchForStalls(): void {
    const { clock, load, onStalled } = this.deps;
    this.#cancelWatch = clock.after(STALL_CHECK_MS, () => {
      this.#watchForStalls();
      if (this.lanes === 0 || load.free === 0) {
        this.#waitingSince = undefined;
        return;
      }
      const now = clock.monotonic();
      this.#waitingSince ??= now;
      if (now - this.#waitingSince >= STALLED_AFTER_MS) {
        onStalled(now - this.#waitingSince);
        this.#waitingSince = undefined;
        for (const pendingClaim of [...this.#pendingClaims]) this.#finish(pendingClaim);
        this.#backingOff = false;
        this.#poll?.wake();
      }
      this.claimIfUseful();
    });
  }
}

function isFull(claimed: Claimed | undefined, limit: number): boolean {
  return claimed !== undefined && claimed.jobs.length >= limit;
}

function sum(quotas: readonly PlannedQuota[]): number {
  let total = 0;
  for (const { quota } of quotas) total += quota;
  return total;
}

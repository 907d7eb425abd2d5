import type { Lane } from "../../core/jobs/lane.js";
import type { WorkerRef } from "../../core/jobs/lease.js";
import type { Took } from "../../core/limits/capacity.js";
import { MAX_PENDING_CLAIMS, type PlanLoad, type PlannedClaim, plan, recordAnswer, type WorkerLoad } from "../../core/sharing/claim-plan.js";
import type { Share } from "../../core/sharing/fair-share.js";
import { LaneState } from "../../core/sharing/lane-state.js";
import { PolicySet } from "../../core/sharing/policy-set.js";
import { Backoff } from "../../runtime/time/backoff.js";
import type { Clock } from "../../runtime/time/clock.js";
import { type Loop, loop } from "../../runtime/time/loop.js";
import type { LiveLanes } from "../../store/port/claim/lanes.js";
import type { Store, Wakeup } from "../../store/port/index.js";
import type { Claimed, ClaimRequest, LimitedClaim } from "../../store/port/settle/leases.js";
import type { WorkerSettings } from "../options.js";
import type { TaskPlans } from "../run/task-plan.js";
import { LimitBackoff } from "./limit-backoff.js";
import { type PendingClaim, PendingClaims } from "./pending-claims.js";
import { planLoadOf } from "./plan-load.js";
import { type HandoffWaiter, handoffWaiterOf } from "./wait-for-handoff.js";
import { type WorkerLimit, WorkerLimits } from "./worker-limits.js";

/** The jobs in a worker's hand, and how many of them are suspects. */
export interface ClaimerLoad extends WorkerLoad {
  readonly suspects: number;
}

/** The verbs of a store that a claimer needs. */
export type ClaimStore = Pick<Store, "policies" | "receivesWakeups" | "handoff"> & {
  readonly leases: Pick<Store["leases"], "claim" | "claimLimited" | "claimSuspect">;
  readonly lanes: Pick<Store["lanes"], "live">;
};

/** Brings a worker its jobs: the claimer, or a client that asks a service for them. */
export interface JobSource {
  /** lanes known to have work */
  readonly lanes: number;
  /** claims that are not answered yet */
  readonly inFlight: number;
  /** bounds the jobs of each lane; claimed jobs are counted in it until their handlers end */
  readonly limits: WorkerLimits;
  /** The share that is charged for the time of a lane's jobs. */
  shareOf(lane: Lane): Share;
  /** Some lanes with work of which this worker can take nothing now, though it may have free slots. */
  fullLanes(): readonly Lane[];
  /** How long jobs of the tenants that share this worker take lately. */
  tenantDurations(): readonly Took[] | undefined;
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
  readonly load: ClaimerLoad;
  /** whether any job of its tasks would do now: nothing bounds them here but its slots */
  readonly takesAny?: () => boolean;
  readonly onClaimed: (claimed: Claimed, sentAt: number, suspect: boolean) => void;
  readonly onStalled: (idleFor: number) => void;
  readonly onError: (step: string, error: unknown) => void;
}

const STALLED_AFTER_MS = 30_000;
const STALL_CHECK_MS = 5_000;
/** Once it accepts connections again, claims resume within this. */
const MAX_BACKOFF_MS = 1_500;
/** tenants whose durations are reported */
const MAX_TENANT_DURATIONS = 200;
/** lanes without room that are reported */
const MAX_FULL_LANES = 20;

/**
 * Sends the claims that `plan` decides on. It keeps the lanes, policies and load that a plan is made of, and says when to plan: when a
 * wakeup or the poll names lanes, a claim is answered, a job is settled, or a slot is free. An idle worker asks the store once
 * per poll and nothing else.
 */
export class Claimer implements JobSource {
  readonly limits: WorkerLimits;
  readonly #lanes: LaneState;
  readonly #pending: PendingClaims;
  readonly #load: PlanLoad;
  readonly #limitBackoff: LimitBackoff;
  readonly #serves: (lane: Lane) => boolean;
  readonly #backoff: Backoff;
  #policies = new PolicySet([]);
  #policyVersion = "0";
  #suspects = false;
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
    this.#limitBackoff = new LimitBackoff(clock, () => this.claimIfUseful());
    this.limits = new WorkerLimits([...limits, this.#limitBackoff]);
    this.#lanes = new LaneState((lane) => plans.of(lane)?.atMostOnce === true);
    this.#pending = new PendingClaims(this.limits, plans);
    this.#load = planLoadOf(deps, this.limits, this.#pending);
    const serves = servedBy(settings);
    this.#serves = (lane) => serves(lane) && this.limits.serves(lane);
    this.#backoff = new Backoff(clock, { min: 50, max: MAX_BACKOFF_MS });
  }

  get lanes(): number {
    return this.#lanes.size;
  }

  get inFlight(): number {
    return this.#pending.count;
  }

  shareOf(lane: Lane): Share {
    return this.#lanes.shareOf(lane, this.#policies);
  }

  fullLanes(): readonly Lane[] {
    if (this.deps.limits.every(({ clusterWide }) => clusterWide === true)) return [];
    const full: Lane[] = [];
    for (const lane of this.#lanes.lanes()) {
      if (full.length === MAX_FULL_LANES) break;
      if (this.limits.isFull(lane)) full.push(lane);
    }
    return full;
  }

  tenantDurations(): readonly Took[] | undefined {
    return this.#lanes.tenantDurations(MAX_TENANT_DURATIONS);
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
    this.#limitBackoff.stop();
    const handoffStopped = this.#handoffWaiter?.stop() ?? Promise.resolve();
    if (this.#pending.count === 0) return handoffStopped;
    return new Promise<void>((resolve) => this.#onIdle.push(resolve)).then(() => handoffStopped);
  }

  handleWakeup(wakeup: Wakeup): void {
    if (!this.#polling) return;
    if (wakeup.kind === "lanes" || wakeup.kind === "look") this.#poll?.wake();
    if (wakeup.kind !== "ready") return;
    const { clock } = this.deps;
    this.#handoffWaiter?.workArrived();
    this.#lanes.add(wakeup.lanes.filter(this.#serves), this.#policies, clock.monotonic(), clock.random());
    this.claimIfUseful();
  }

  /** The store knows that a job of the lane is over: what it held of limits is free. */
  jobSettled(lane: Lane): void {
    if (this.#limitBackoff.jobSettled(lane)) this.claimIfUseful();
  }

  /** Claims if it is worth it. Called whenever something changed, so it is cheap when nothing did. */
  claimIfUseful(): void {
    if (!this.#claiming || this.#backingOff) return;
    if (this.#suspects) this.#claimSuspect();
    for (let claims = this.#plan(); claims.length > 0; claims = this.#plan()) for (const claim of claims) this.#send(claim);
    this.#handoffWaiter?.update(this.#hasPolled && this.lanes === 0 && this.#pending.count === 0);
  }

  #plan(): readonly PlannedClaim[] {
    return plan(this.#lanes, this.#policies, this.#load);
  }

  #send(claim: PlannedClaim): void {
    const { store, worker, settings } = this.deps;
    const request: ClaimRequest = { worker, quotas: claim.quotas, duration: settings.leaseDuration };
    if (claim.isLimited) this.#sendLimited(claim, request);
    else
      this.#execute(
        claim,
        () => store.leases.claim(request),
        (claimed) => this.#recordAnswer(claim, claimed),
      );
  }

  #sendLimited(claim: PlannedClaim, request: ClaimRequest): void {
    let answer: LimitedClaim = { claimed: undefined, reached: [] };
    this.#execute(
      claim,
      async () => {
        answer = await this.deps.store.leases.claimLimited(request);
        return answer.claimed;
      },
      (claimed) => {
        this.#limitBackoff.reached(answer.reached);
        this.#recordAnswer(claim, claimed);
      },
    );
  }

  #recordAnswer(claim: PlannedClaim, claimed: Claimed | undefined): void {
    const isHeldBack = (lane: Lane) => this.#limitBackoff.room(lane) === 0;
    recordAnswer(this.#lanes, claim, { jobs: claimed?.jobs ?? [], more: claimed?.more ?? [], isHeldBack });
  }

  /** One at a time: if it takes this worker down again, it takes down nobody else's job with it, and is known by that. */
  #claimSuspect(): void {
    const { store, worker, settings, load } = this.deps;
    if (load.suspects > 0 || load.free === 0 || this.#pending.count >= MAX_PENDING_CLAIMS) return;
    const { queues, priorities, tenants, leaseDuration: duration } = settings;
    const tasks = this.limits.admits(settings.tasks);
    if (tasks.length === 0) return;
    this.#suspects = false;
    const filters = { ...(priorities === undefined ? {} : { priorities }), ...(tenants === undefined ? {} : { tenants }) };
    this.#execute(
      { quotas: [], jobs: 1, isLimited: false, isExclusive: false, sequence: this.#lanes.nextSequence(), suspectOf: tasks },
      () => store.leases.claimSuspect({ worker, queues, tasks, ...filters, duration }),
      (claimed) => {
        this.#suspects = claimed !== undefined;
      },
    );
  }

  #execute(pendingClaim: PendingClaim, claim: () => Promise<Claimed | undefined>, onAnswer: (claimed: Claimed | undefined) => void): void {
    const { clock, onClaimed, onError } = this.deps;
    const sentAt = clock.monotonic();
    this.#pending.add(pendingClaim);
    this.#waitingSince ??= sentAt;
    claim().then(
      (claimed) => {
        this.#waitingSince = undefined;
        this.#backoff.reset();
        this.#finish(pendingClaim);
        onAnswer(claimed);
        if (claimed !== undefined) onClaimed(claimed, sentAt, pendingClaim.suspectOf !== undefined);
        this.claimIfUseful();
      },
      (error: unknown) => {
        this.#finish(pendingClaim);
        onError("claim", error);
        this.#backOff();
      },
    );
  }

  #finish(claim: PendingClaim): void {
    this.#pending.remove(claim);
    if (this.#pending.count === 0) for (const resolve of this.#onIdle.splice(0)) resolve();
  }

  /** A look at thousands of lanes takes its time: while wakeups ask for one after the other, claims have as much. */
  async #refresh(): Promise<number> {
    const { store, settings, clock } = this.deps;
    const began = clock.monotonic();
    if (began < this.#nextPollAt) return this.#nextPollAt - began;
    const since = this.#lanes.nextSequence();
    const live = await store.lanes.live(settings.queues, settings.tasks);
    await this.#readPolicies(live.version);
    this.#replaceLanes(live, since);
    this.#suspects = live.suspects;
    this.#hasPolled = true;
    this.claimIfUseful();
    const now = clock.monotonic();
    this.#nextPollAt = now + (now - began);
    // Spread, so that many workers do not look all at once; never sooner than the poll, so that rest stays cheap.
    return settings.pollInterval * (store.receivesWakeups() ? 2 : 1) * (1 + 0.2 * clock.random());
  }

  /** Policies are read again when the poll sees that one has changed. */
  async #readPolicies(seen: string): Promise<void> {
    if (seen === this.#policyVersion) return;
    const { store, clock } = this.deps;
    const { policies, version } = await store.policies.list();
    this.#policyVersion = version;
    this.#policies = new PolicySet(policies);
    this.#lanes.applyPolicies(this.#policies, clock.monotonic(), clock.random());
  }

  #replaceLanes(live: LiveLanes, since: number): void {
    const { clock } = this.deps;
    const lanes = live.lanes.filter(this.#serves);
    this.limits.refreshed(lanes);
    this.#lanes.replace(lanes, since, this.#policies, clock.monotonic(), clock.random());
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
        for (const pendingClaim of [...this.#pending.all]) this.#finish(pendingClaim);
        this.#backingOff = false;
        this.#poll?.wake();
      }
      this.claimIfUseful();
    });
  }
}

function servedBy({ queues, tasks, priorities, tenants }: WorkerSettings): (lane: Lane) => boolean {
  const [ofQueues, ofTasks, ofPriorities, ofTenants] = [queues, tasks, priorities, tenants].map((names) => names && new Set<unknown>(names));
  return ({ queue, task, priority, tenant }) =>
    ofTasks?.has(task) !== false && ofQueues?.has(queue) !== false && ofPriorities?.has(priority) !== false && ofTenants?.has(tenant) !== false;
}

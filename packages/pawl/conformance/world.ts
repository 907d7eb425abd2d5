import { expect } from "vitest";
import type { DeathPolicy } from "../src/core/jobs/dependency.js";
import type { IdSuffix, InstanceId, JobId } from "../src/core/jobs/id.js";
import type { Enqueued, JobOptions, JobRecord, JobRequest, NewJob, Priority } from "../src/core/jobs/job.js";
import type { Lane } from "../src/core/jobs/lane.js";
import type { WorkerRef } from "../src/core/jobs/lease.js";
import { attemptsSoFar, decide, type Outcome } from "../src/core/jobs/outcome.js";
import type { RetryPolicy } from "../src/core/jobs/retry.js";
import type { UniqueRule } from "../src/core/jobs/unique-key.js";
import type { Store } from "../src/store/port/index.js";
import type { Claimed, ClaimedJob, Settled, Settlement } from "../src/store/port/settle/leases.js";
import { dutiesOf } from "./duties.js";

/** When every test begins. */
export const START = Date.UTC(2026, 0, 15, 12);
export const SECOND = 1_000;
export const MINUTE = 60_000;
export const HOUR = 3_600_000;
export const DAY = 86_400_000;
/** ms a lease lasts in these tests */
export const LEASE = 15_000;

/** The store's clock, owned by the test. */
export class TestClock {
  #now = START;
  readonly now = (): number => this.#now;
  advance(ms: number): void {
    this.#now += ms;
  }
}

export const ANA: WorkerRef = { name: "ana", instance: "00000000-0000-4000-8000-00000000000a" as InstanceId };
export const BOB: WorkerRef = { name: "bob", instance: "00000000-0000-4000-8000-00000000000b" as InstanceId };
/** Ana after a restart: the same name, another life. */
export const ANA_REBORN: WorkerRef = { name: "ana", instance: "00000000-0000-4000-8000-00000000000c" as InstanceId };

/** An id that no job has. */
export const NOBODY = "0199ffff-ffff-7fff-bfff-ffffffffffff" as JobId;

/** A job in the words of a test; what is left out is the plainest. */
export interface Spec {
  readonly queue?: string;
  readonly priority?: Priority;
  readonly tenant?: string;
  readonly task?: string;
  readonly input?: string;
  readonly options?: JobOptions;
  readonly delay?: number;
  readonly runAt?: number;
  /** its digest stands for the task and the input */
  readonly idempotencyKey?: string;
  readonly unique?: UniqueRule;
  readonly after?: readonly JobId[];
  readonly onDependencyDeath?: DeathPolicy;
}

export function lane(spec: Spec = {}): Lane {
  return { queue: spec.queue ?? "default", priority: spec.priority ?? 5, tenant: spec.tenant ?? "acme", task: spec.task ?? "work" };
}

/** As a scheduler makes it, with a digest that can be read. */
export function jobRequest(id: string, task = "work", input = "null"): JobRequest {
  return { id, digest: `${task} ${input}` };
}

export interface ClaimSpec {
  readonly worker?: WorkerRef;
  readonly lanes?: readonly Lane[];
  readonly limit?: number;
  readonly duration?: number;
}

/** A worker's hold on one job. */
export interface HeldJob {
  readonly worker: WorkerRef;
  readonly claimed: Claimed;
  readonly job: ClaimedJob;
}

/** One store, its clock, and the verbs as tests say them. */
export class World {
  #idSuffixes = 0;
  constructor(
    readonly store: Store,
    readonly clock: TestClock,
  ) {}

  /** Id suffixes grow, so that ids of jobs due at the same time are in the order of their making. */
  idSuffix(): IdSuffix {
    this.#idSuffixes += 1;
    return `7000-8000-${this.#idSuffixes.toString(16).padStart(12, "0")}` as IdSuffix;
  }

  newJob(spec: Spec = {}): NewJob {
    const { options, delay, runAt, idempotencyKey, unique, after } = spec;
    return {
      idSuffix: this.idSuffix(),
      lane: lane(spec),
      input: spec.input ?? "null",
      options: unique === undefined ? options : { ...options, uniqueKey: unique.key },
      ...(delay === undefined ? {} : { delay }),
      ...(runAt === undefined ? {} : { runAt }),
      ...(idempotencyKey === undefined ? {} : { idempotencyKey: jobRequest(idempotencyKey, lane(spec).task, spec.input) }),
      ...(unique === undefined ? {} : { unique }),
      ...(after === undefined ? {} : { dependsOn: { parents: after, onDependencyDeath: spec.onDependencyDeath ?? "die" } }),
    };
  }

  async enqueue(...specs: readonly Spec[]): Promise<readonly Enqueued[]> {
    return this.store.jobs.enqueue(specs.map((spec) => this.newJob(spec)));
  }

  /** Enqueues one job that nothing stands in the way of. */
  async add(spec: Spec = {}): Promise<JobId> {
    const [answer] = await this.enqueue(spec);
    if (answer?.kind !== "created") throw new Error(`expected a new job, got ${JSON.stringify(answer)}`);
    return answer.id;
  }

  async get(id: JobId): Promise<JobRecord> {
    const job = await this.store.jobs.get("everyone", id);
    if (job === undefined) throw new Error(`there is no job ${id}`);
    return job;
  }

  async state(id: JobId): Promise<string> {
    return (await this.store.jobs.get("everyone", id))?.state ?? "deleted";
  }

  async claim({ worker = ANA, lanes = [lane()], limit = 100, duration = LEASE }: ClaimSpec = {}): Promise<Claimed | undefined> {
    return this.store.leases.claim({ worker, quotas: lanes.map((of) => ({ lane: of, quota: limit })), duration });
  }

  /** The ids a claim gives out, in order. */
  async claimIds(spec: ClaimSpec = {}): Promise<readonly JobId[]> {
    return (await this.claim(spec))?.jobs.map(({ id }) => id) ?? [];
  }

  /** Claims everything in the lanes under one lease, and answers with the hold on each job. */
  async holdAll(spec: ClaimSpec = {}): Promise<readonly HeldJob[]> {
    const claimed = await this.claim(spec);
    return claimed === undefined ? [] : claimed.jobs.map((job) => ({ worker: spec.worker ?? ANA, claimed, job }));
  }

  /** Claims the one job that is next in the lane. */
  async hold(spec: ClaimSpec = {}): Promise<HeldJob> {
    const [held] = await this.holdAll({ ...spec, limit: 1 });
    if (held === undefined) throw new Error("nothing to claim");
    return held;
  }

  async claimSuspect(spec: { worker?: WorkerRef; queues?: readonly string[]; tasks?: readonly string[] } = {}): Promise<Claimed | undefined> {
    const { worker = ANA, queues = ["default"], tasks = ["work"] } = spec;
    return this.store.leases.claimSuspect({ worker, queues, tasks, duration: LEASE });
  }

  async holdSuspect(worker: WorkerRef = ANA): Promise<HeldJob> {
    const claimed = await this.claimSuspect({ worker });
    const job = claimed?.jobs[0];
    if (claimed === undefined || job === undefined) throw new Error("no suspect to claim");
    return { worker, claimed, job };
  }

  /** What a worker sends for an outcome; decided by core, without chance. */
  settlement(held: HeldJob, outcome: Outcome, retry: RetryPolicy = [MINUTE, MINUTE, MINUTE]): Settlement {
    const { claimed, job } = held;
    const now = this.clock.now();
    const patch = decide(attemptsSoFar(job, job.options, now), outcome, retry, () => 0);
    return {
      lease: claimed.lease,
      job: job.id,
      at: job.at,
      lane: job.lane,
      patch,
      startedAt: claimed.now,
      finishedAt: now,
      ...(job.options?.limits === undefined && job.limited !== true ? {} : { limited: true }),
    };
  }

  async settle(held: HeldJob, outcome: Outcome, retry?: RetryPolicy): Promise<Settled> {
    const [answer] = await this.store.leases.settle(held.worker, [this.settlement(held, outcome, retry)]);
    return answer as Settled;
  }

  /** Settles jobs of one worker in one call. */
  async settleAll(held: readonly HeldJob[], outcome: Outcome, retry?: RetryPolicy): Promise<readonly Settled[]> {
    return this.store.leases.settle(
      held[0]?.worker ?? ANA,
      held.map((one) => this.settlement(one, outcome, retry)),
    );
  }

  /** Claims the next job of the lane, expects it to be `id`, and settles it. */
  async run(id: JobId, outcome: Outcome = SUCCEEDED, retry?: RetryPolicy, spec: ClaimSpec = {}): Promise<void> {
    const held = await this.hold(spec);
    expect(held.job.id).toBe(id);
    expect(await this.settle(held, outcome, retry)).toBe("settled");
  }

  /** The worker vanishes: nothing is heard of it until its leases have ended and are reaped. */
  async vanish(): Promise<void> {
    this.clock.advance(LEASE);
    await dutiesOf(this.store).reap(1_000);
  }

  /** A job that two workers vanished with. */
  async suspect(spec: Spec = {}): Promise<JobId> {
    const id = await this.add(spec);
    for (let crash = 0; crash < 2; crash++) {
      await this.hold({ lanes: [lane(spec)] });
      await this.vanish();
    }
    return id;
  }
}

export const SUCCEEDED: Outcome = { kind: "succeeded" };
export const RELEASED: Outcome = { kind: "released" };
export const FAILED: Outcome = { kind: "failed", failure: { kind: "error", name: "TypeError", message: "no" }, retryable: true };
export const KILLED: Outcome = { kind: "failed", failure: { kind: "error", name: "RangeError", message: "never" }, retryable: false };
export const SNOOZED: Outcome = { kind: "snoozed", delay: MINUTE };

import { expect } from "vitest";
import type { JobId, LeaseId } from "../src/core/jobs/id.js";
import type { AttemptRecord, JobRecord, JobState } from "../src/core/jobs/job.js";
import type { WorkerRef } from "../src/core/jobs/lease.js";
import { allowed, ENTRY, type Verb } from "../src/core/jobs/lifecycle.js";
import type { Store } from "../src/store/port/index.js";
import type { Claimed } from "../src/store/port/settle/leases.js";
import { everyJob } from "./invariants.js";
import type { TestClock } from "./world.js";

/** A claim that both stores answered alike, but for the number of its lease. */
export interface PairLease {
  readonly worker: WorkerRef;
  readonly model: Claimed;
  readonly real: Claimed;
}

type Side = "model" | "real";

/** Two stores that are asked the same and must look the same; ids are equal because both get the same id suffixes and clock. */
export class StorePair {
  readonly jobs: JobId[] = [];
  readonly leases: PairLease[] = [];
  #seen = new Map<JobId, JobRecord>();
  #apart = 0;

  constructor(
    readonly model: Store,
    readonly real: Store,
    readonly clock: TestClock,
  ) {}

  /**
   * A span of time that ends when no other does. What comes first of two that end in the same millisecond is each
   * store's own affair. The clock moves by whole seconds, so a number of ms of its own sets every end apart.
   */
  apart(ms: number): number {
    if (ms === 0) return 0;
    this.#apart += 1;
    if (this.#apart > 999) throw new Error("the story is too long to keep its ends apart");
    return ms + this.#apart;
  }

  /** Asks both and compares the answers. */
  async both<T>(ask: (store: Store, side: Side) => Promise<T>): Promise<T> {
    const expected = await ask(this.model, "model");
    expect(await ask(this.real, "real"), "the answer").toEqual(expected);
    return expected;
  }

  async claim(worker: WorkerRef, ask: (store: Store) => Promise<Claimed | undefined>): Promise<void> {
    const [model, real] = [await ask(this.model), await ask(this.real)];
    expect(real && plainClaim(real), "the claim").toEqual(model && plainClaim(model));
    if (model !== undefined && real !== undefined) this.leases.push({ worker, model, real });
  }

  /** 0 is the newest: small numbers are the likely ones, and the newest are those that something can happen to. */
  lease(number: number): PairLease | undefined {
    return this.leases.at(-1 - (number % Math.max(1, this.leases.length)));
  }

  job(number: number): JobId | undefined {
    return this.jobs.at(-1 - (number % Math.max(1, this.jobs.length)));
  }

  /** Compares all that can be seen, and holds what changed against the lifecycle table. */
  async compare(verb: Verb | undefined, tasks: readonly string[]): Promise<void> {
    const [model, real] = [await everyJob(this.model), await everyJob(this.real)];
    expect(real.map(plain), "the jobs").toEqual(model.map(plain));
    await this.both((store) => store.records.counts());
    await this.both((store) => store.lanes.live(undefined, tasks));
    await this.both((store) => store.lanes.paused());
    // Who is next at which key, and how many tokens there are.
    await this.both((store) => store.limits.list({}, { limit: 100 }));
    await this.both(async (store) => {
      const { now, due } = await store.duties.poll();
      return { now, promoteIn: due.get("promote"), reapIn: due.get("reap") };
    });
    await this.#compareHistories(model.filter((job) => !same(job, this.#seen.get(job.id))));
    this.#checkTransitions(verb, real);
    this.#seen = new Map(real.map((job) => [job.id, job]));
  }

  async compareAll(): Promise<void> {
    await this.#compareHistories(await everyJob(this.model));
  }

  async #compareHistories(jobs: readonly JobRecord[]): Promise<void> {
    for (const { id } of jobs) {
      const [model, real] = [await this.model.jobs.history("everyone", id), await this.real.jobs.history("everyone", id)];
      const named = (history: readonly AttemptRecord[], side: Side) => history.map((line) => this.#plainLine(line, side));
      expect(named(real, "real"), `the history of ${id}`).toEqual(named(model, "model"));
      await this.both((store) => store.jobs.logs("everyone", id));
    }
  }

  #checkTransitions(verb: Verb | undefined, after: readonly JobRecord[]): void {
    const now = new Map(after.map((job) => [job.id, job.state]));
    for (const [id, { state: from }] of this.#seen) {
      const to = now.get(id) ?? "deleted";
      if (from === to) continue;
      // A job moves by the verb, or as a dependent of one that did, or let in at its key, or because an enqueue took its key.
      const verbs = ([verb, "unblock", "admit", verb === "enqueue" ? "cancel" : undefined] as const).filter((one) => one !== undefined);
      expect(
        verbs.some((one) => allowed(from, one, to)),
        `${id} went from ${from} to ${to} by ${verb}`,
      ).toBe(true);
    }
    for (const [id, state] of now) {
      if (this.#seen.has(id)) continue;
      const entries = ENTRY.enqueue as readonly JobState[];
      const byBatch = entries.some((entry) => allowed(entry, "cancel", state));
      expect(verb === "enqueue" && (entries.includes(state) || byBatch), `${id} began as ${state} by ${verb}`).toBe(true);
    }
  }

  /** Lease numbers differ between stores: a claim is named by its index, an entry without a worker by being one. */
  #plainLine(line: AttemptRecord, side: Side): object {
    const index = this.leases.findIndex((pair) => pair[side].lease === line.lease);
    return { ...plain(line), lease: index < 0 ? "mark" : index };
  }
}

export function leaseOf(pair: PairLease, side: Side): LeaseId {
  return pair[side].lease;
}

function plainClaim({ now, jobs }: Claimed): object {
  return { now, jobs: jobs.map(({ at: _, ...job }) => ({ ...job, options: job.options ?? {} })) };
}

/** All words are core's, so they are the same. With which of several dead parents a job dies is the store's choice. */
function plain<T extends JobRecord | AttemptRecord>(record: T): T {
  const { failure } = record;
  return failure?.kind === "dependency" ? { ...record, failure: { kind: failure.kind, name: failure.name } } : record;
}

function same(a: JobRecord, b: JobRecord | undefined): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

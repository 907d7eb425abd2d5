import { pawlError } from "../core/error.js";
import type { JobId, LeaseId } from "../core/id.js";
import type { JobOptions, Priority } from "../core/job.js";
import { decode } from "../core/json.js";
import type { WorkerRef } from "../core/lease.js";
import type { Claimed, ClaimedJob, LeaseStore, RecordStore, Settled, Store } from "../store/port.js";
import { endingOf } from "./endings.js";
import { refusing } from "./refusing.js";
import type { Wire } from "./wire.js";

/** A lease as it came, and ms after the request arrived at which it began. */
export interface Pulled {
  readonly claimed: Claimed;
  readonly after: number;
  readonly suspect: boolean;
}

interface WireJob {
  readonly id: JobId;
  readonly task: string;
  readonly queue: string;
  readonly priority: Priority;
  readonly tenant: string;
  readonly attempt: number;
  readonly input: unknown;
  readonly unreadable?: true;
  readonly dueAt: number;
  readonly crashes: number;
  readonly options?: JobOptions;
}
interface WireLease extends Omit<Pulled, "claimed"> {
  readonly lease: LeaseId;
  readonly now: number;
  readonly jobs: readonly WireJob[];
}

/** what the service takes at once */
const MOST_ENDINGS = 1_000;
const MOST_BYTES = 4 * 1_048_576;

/**
 * The side of a store that a worker works on, as the pull protocol: it settles, renews and notes through the service,
 * which claims for it, says what it serves and looks after its breakers.
 */
export class PullStore {
  readonly #wire: Wire;
  readonly #worker: () => object;
  readonly #leaseOf = new Map<JobId, LeaseId>();
  /** the store's clock, at a moment of ours */
  #clock = { store: 0, here: 0 };

  constructor(wire: Wire, worker: () => object) {
    this.#wire = wire;
    this.#worker = worker;
  }

  async claim(ask: object, wait: number, signal: AbortSignal): Promise<readonly Pulled[]> {
    const body = this.#bodyOf(ask);
    const { leases } = (await this.#wire.json({
      method: "POST",
      path: "/v1/leases",
      body,
      // It carries an id of its own.
      repeatable: true,
      timeout: wait + 15_000,
      signal,
    })) as { leases: readonly WireLease[] };
    const here = this.#wire.clock.monotonic();
    return leases.map(({ lease, now, after, suspect, jobs }) => {
      this.#clock = { store: now, here };
      return { claimed: { lease, now, jobs: jobs.map((job) => this.#took(lease, job)) }, after, suspect };
    });
  }

  /** As a worker knows a store. */
  asStore(): Store {
    const nothing = async () => {};
    const none = async () => [];
    const refused = refusing<Store>("a worker's store");
    return {
      ...refused,
      lanes: refused.lanes,
      policies: refused.policies,
      jobs: refused.jobs,
      tasks: refused.tasks,
      duties: refused.duties,
      schedules: refused.schedules,
      leases: this.#leases(),
      records: this.#records(),
      // Its host says so for it.
      workers: { publish: nothing, live: none, retire: async () => void (await this.#post("retire", {})) },
      breakers: { report: none, probe: none, get: none, list: none, standing: none, force: refused.breakers.force },
      engine: { engine: "postgres", place: this.#wire.url.origin, version: "", durability: "none", schema: 0 },
      onHint: () => () => {},
      hint: () => {},
      hearsOthers: () => true,
      close: nothing,
    };
  }

  #leases(): LeaseStore {
    const refused = refusing<LeaseStore>("claiming by lanes");
    return {
      claim: refused.claim,
      claimLimited: refused.claimLimited,
      claimSuspect: refused.claimSuspect,
      reap: refused.reap,
      renew: async (_: WorkerRef, leases) => (await this.#post("renew", { leases })) as { held: readonly LeaseId[] },
      intents: async (_: WorkerRef, leases) => {
        const { cancel } = (await this.#post("notices", { leases })) as { cancel: readonly JobId[] };
        return cancel.map((job) => ({ job, intent: "cancel" as const }));
      },
      settle: async (_: WorkerRef, settlements) => {
        const answers: Settled[] = [];
        let batch: string[] = [];
        let size = 0;
        const send = async () => {
          const body = `${this.#bodyOf({}).slice(0, -1)},"endings":[${batch.join(",")}]}`;
          const told = (await this.#wire.json({ method: "POST", path: "/v1/leases/settle", body, repeatable: true })) as {
            answers: readonly Settled[];
          };
          answers.push(...told.answers);
          batch = [];
          size = 0;
        };
        for (const settlement of settlements) {
          const ending = JSON.stringify(endingOf(settlement));
          if (batch.length >= MOST_ENDINGS || (batch.length > 0 && size + ending.length > MOST_BYTES)) await send();
          batch.push(ending);
          size += ending.length;
        }
        if (batch.length > 0) await send();
        for (const { job } of settlements) this.#leaseOf.delete(job);
        return answers;
      },
      transaction: async () => {
        throw pawlError("transaction_unsupported", { engine: "remote" });
      },
    };
  }

  #records(): RecordStore {
    return {
      counts: refusing<RecordStore>("counting").counts,
      log: async (_: WorkerRef, entries) => {
        const { store, here } = this.#clock;
        const now = store + this.#wire.clock.monotonic() - here;
        const notes = entries.map(({ at, data, ...entry }) => ({
          ...entry,
          ago: Math.max(0, now - at),
          ...(data === undefined ? {} : { data: decode(data) }),
        }));
        await this.#post("notes", { notes });
      },
      recall: async (job, name) => {
        const { found, value } = (await this.#post("recall", { ...this.#at(job), name })) as { found: boolean; value?: unknown };
        return found ? JSON.stringify(value) : undefined;
      },
      record: async (_: WorkerRef, { lease, job, name, value, ttl }) => {
        const kept = (await this.#post("record", { lease, job, name, value: decode(value), ttl })) as { value: unknown };
        return { value: JSON.stringify(kept.value) };
      },
    };
  }

  #took(lease: LeaseId, { id, task, queue, priority, tenant, attempt, input, unreadable, dueAt, crashes, options }: WireJob): ClaimedJob {
    this.#leaseOf.set(id, lease);
    const text = unreadable === true ? undefined : JSON.stringify(input);
    return { id, lane: { queue, band: priority, tenant, task }, input: text, options, dueAt, spent: attempt - 1, crashes };
  }

  #at(job: JobId): { readonly lease: LeaseId; readonly job: JobId } {
    const lease = this.#leaseOf.get(job);
    if (lease === undefined) throw pawlError("lease_lost", { job });
    return { lease, job };
  }

  #bodyOf(body: object): string {
    return JSON.stringify({ worker: this.#worker(), ...body });
  }

  /** All of them can be repeated: the fence and the first record decide. */
  #post(verb: string, body: object): Promise<unknown> {
    return this.#wire.json({ method: "POST", path: `/v1/leases/${verb}`, body: this.#bodyOf(body), repeatable: true });
  }
}

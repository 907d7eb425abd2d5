import { pawlError } from "../core/error.js";
import type { JobId, LeaseId } from "../core/id.js";
import { decode } from "../core/json.js";
import type { WorkerRef } from "../core/lease.js";
import type { Store } from "../store/port.js";
import type { Claimed, ClaimedJob, LeaseStore } from "../store/port-leases.js";
import type { RecordStore } from "../store/port-records.js";
import type { PulledAnswers, PulledJob, PulledLease, PulledNotices, PulledRecord, PulledRenewal } from "../worker/host/wire.js";
import { endingOf } from "./endings.js";
import { packs } from "./packs.js";
import { refusing } from "./refusing.js";
import type { Call, Wire } from "./wire.js";

/** A lease as it came, and ms after the request arrived at which it began. */
export interface Pulled {
  readonly claimed: Claimed;
  readonly after: number;
  readonly suspect: boolean;
}

/** ms; a renewal that comes later is of no use, and the next try is the renewer's own */
const RENEW_WITHIN = 5_000;

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

  /** It carries an id of its own, so it can be repeated like the rest. */
  async claim(ask: object, how: Pick<Call, "timeout" | "tries" | "signal">): Promise<readonly Pulled[]> {
    const { leases } = (await this.#send("/v1/leases", this.#bodyOf(ask), how)) as { leases: readonly PulledLease[] };
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
      renew: async (_: WorkerRef, leases) => {
        const told = await this.#postAll<PulledRenewal>("renew", "leases", leases, { timeout: RENEW_WITHIN, tries: 1 });
        const held = told.flatMap((one) => one.held);
        if (held.length < leases.length) this.#lose(leases, new Set(held));
        return { held };
      },
      intents: async (_: WorkerRef, leases) => {
        const told = await this.#postAll<PulledNotices>("notices", "leases", leases);
        return told.flatMap(({ cancel }) => cancel.map((job) => ({ job, intent: "cancel" as const })));
      },
      settle: async (_: WorkerRef, settlements) => {
        const told = await this.#postAll<PulledAnswers>("settle", "endings", settlements.map(endingOf));
        // It may have come again meanwhile, under another lease.
        for (const { job, lease } of settlements) if (this.#leaseOf.get(job) === lease) this.#leaseOf.delete(job);
        // What the service makes no sense of is not going to be settled, however often it is told: its lease runs out.
        return told.flatMap(({ answers }) => answers.map((answer) => (answer === "refused" ? "stale" : answer)));
      },
      transaction: async () => {
        throw pawlError("transaction_unsupported", { engine: "remote" });
      },
    };
  }

  #records(): RecordStore {
    return {
      counts: refusing<RecordStore>("counting").counts,
      standing: refusing<RecordStore>("counting").standing,
      log: async (_: WorkerRef, entries) => {
        const { store, here } = this.#clock;
        const now = store + this.#wire.clock.monotonic() - here;
        const notes = entries.map(({ lease, job, level, message, at, data }) => ({
          lease,
          job,
          level,
          message,
          ago: Math.max(0, now - at),
          ...(data === undefined ? {} : { data: decode(data) }),
        }));
        await this.#postAll("notes", "notes", notes);
      },
      recall: async (job, name) => {
        const { found, value } = (await this.#post("recall", { ...this.#at(job), name })) as PulledRecord;
        return found ? JSON.stringify(value) : undefined;
      },
      record: async (_: WorkerRef, { lease, job, name, value, ttl }) => {
        const kept = (await this.#post("record", { lease, job, name, value: decode(value), ttl })) as { value: unknown };
        return { value: JSON.stringify(kept.value) };
      },
    };
  }

  #took(lease: LeaseId, { id, task, queue, priority, tenant, attempt, input, unreadable, dueAt, crashes, options }: PulledJob): ClaimedJob {
    this.#leaseOf.set(id, lease);
    const text = unreadable === true ? undefined : JSON.stringify(input);
    return { id, lane: { queue, band: priority, tenant, task }, input: text, options, dueAt, spent: attempt - 1, crashes };
  }

  #at(job: JobId): { readonly lease: LeaseId; readonly job: JobId } {
    const lease = this.#leaseOf.get(job);
    if (lease === undefined) throw pawlError("lease_lost", { job });
    return { lease, job };
  }

  #lose(leases: readonly LeaseId[], held: ReadonlySet<LeaseId>): void {
    const lost = new Set(leases.filter((lease) => !held.has(lease)));
    for (const [job, lease] of this.#leaseOf) if (lost.has(lease)) this.#leaseOf.delete(job);
  }

  #bodyOf(body: object): string {
    return JSON.stringify({ worker: this.#worker(), ...body });
  }

  #post(verb: string, body: object): Promise<unknown> {
    return this.#send(`/v1/leases/${verb}`, this.#bodyOf(body));
  }

  /** Many values, in as many calls as it takes. */
  async #postAll<Told>(verb: string, field: string, values: readonly unknown[], how?: Partial<Call>): Promise<readonly Told[]> {
    const told: Told[] = [];
    for (const pack of packs(values.map((value) => JSON.stringify(value)))) {
      const body = `${this.#bodyOf({}).slice(0, -1)},"${field}":[${pack.join(",")}]}`;
      told.push((await this.#send(`/v1/leases/${verb}`, body, how)) as Told);
    }
    return told;
  }

  /** All of them can be repeated: the fence and the first record decide. */
  #send(path: string, body: string, how: Partial<Call> = {}): Promise<unknown> {
    return this.#wire.json({ ...how, method: "POST", path, body, repeatable: true, pool: "work" });
  }
}

import type { JobId, LeaseId } from "../../core/jobs/id.js";
import type { WorkerRef } from "../../core/jobs/lease.js";
import { pawlError } from "../../core/values/error.js";
import { decode } from "../../core/values/json.js";
import type { Store } from "../../store/port/index.js";
import type { Claimed, ClaimedJob, LeaseStore } from "../../store/port/settle/leases.js";
import type { RecordStore } from "../../store/port/settle/records.js";
import type { PulledIntents, PulledJob, PulledLease, PulledRecord, PulledRenewal, PulledResults } from "../../worker/remote/protocol.js";
import { SERVICE_CAPABILITIES } from "../capabilities.js";
import { chunksOf } from "../transport/chunks.js";
import type { HttpTransport, ServiceCall } from "../transport/http-transport.js";
import { unsupported } from "../unsupported.js";
import { pulledOutcome } from "./report-outcome.js";

/** A lease as it came, and ms after the request arrived at which it began. */
export interface PulledClaim {
  readonly claimed: Claimed;
  readonly beganAfter: number;
  readonly suspect: boolean;
}

/** ms; a renewal that comes later is of no use, and the next try is the renewer's own */
const RENEW_TIMEOUT_MS = 5_000;

/**
 * The side of a store that a worker works on, as the pull protocol: it settles, renews and notes through the service,
 * which claims for it, says what it serves and looks after its breakers.
 */
export class PullStore {
  readonly #transport: HttpTransport;
  readonly #worker: () => object;
  readonly #leaseOf = new Map<JobId, LeaseId>();
  /** the store's clock, at a moment of ours */
  #clock = { store: 0, here: 0 };

  constructor(transport: HttpTransport, worker: () => object) {
    this.#transport = transport;
    this.#worker = worker;
  }

  /** It carries an id of its own, so it can be repeated like the rest. */
  async claim(request: object, call: Pick<ServiceCall, "timeout" | "tries" | "signal">): Promise<readonly PulledClaim[]> {
    const { leases } = (await this.#send("/v1/leases/claim", this.#bodyOf(request), call)) as { leases: readonly PulledLease[] };
    const here = this.#transport.clock.monotonic();
    return leases.map(({ lease, now, beganAfter, suspect, jobs }) => {
      const storeNow = Date.parse(now);
      this.#clock = { store: storeNow, here };
      return { claimed: { lease, now: storeNow, jobs: jobs.map((job) => this.#toClaimedJob(lease, job)) }, beganAfter, suspect };
    });
  }

  /** As a worker knows a store. */
  asStore(): Store {
    const nothing = async () => {};
    const none = async () => [];
    const unsupportedStore = unsupported<Store>("a worker's store");
    return {
      ...unsupportedStore,
      lanes: unsupportedStore.lanes,
      policies: unsupportedStore.policies,
      jobs: unsupportedStore.jobs,
      tasks: unsupportedStore.tasks,
      duties: unsupportedStore.duties,
      schedules: unsupportedStore.schedules,
      leases: this.#leases(),
      records: this.#records(),
      // Its host says so for it.
      workers: { publish: nothing, live: none, retire: async () => void (await this.#post("retire", {})) },
      breakers: { report: none, probe: none, get: none, list: none, listNotClosed: none, force: unsupportedStore.breakers.force },
      engine: {
        engine: "service",
        place: this.#transport.url.origin,
        version: "",
        durability: "none",
        schema: 0,
        capabilities: SERVICE_CAPABILITIES,
      },
      onWakeup: () => () => {},
      sendWakeup: () => {},
      transactions: {
        join: () => {
          throw pawlError("transaction_unsupported", { engine: "remote" });
        },
        run: async () => {
          throw pawlError("transaction_unsupported", { engine: "remote" });
        },
      },
      receivesWakeups: () => true,
      close: nothing,
    };
  }

  #leases(): LeaseStore {
    const unsupportedStore = unsupported<LeaseStore>("claiming by lanes");
    return {
      claim: unsupportedStore.claim,
      claimLimited: unsupportedStore.claimLimited,
      claimSuspect: unsupportedStore.claimSuspect,
      renew: async (_: WorkerRef, leases) => {
        const responses = await this.#postAll<PulledRenewal>("renew", "leases", leases, { timeout: RENEW_TIMEOUT_MS, tries: 1 });
        const held = responses.flatMap((one) => one.held);
        if (held.length < leases.length) this.#lose(leases, new Set(held));
        return { held };
      },
      intents: async (_: WorkerRef, leases) => {
        const responses = await this.#postAll<PulledIntents>("intents", "leases", leases);
        return responses.flatMap(({ cancel }) => cancel.map((job) => ({ job, intent: "cancel" as const })));
      },
      settle: async (_: WorkerRef, settlements) => {
        const responses = await this.#postAll<PulledResults>("settle", "outcomes", settlements.map(pulledOutcome));
        // It may have come again meanwhile, under another lease.
        for (const { job, lease } of settlements) if (this.#leaseOf.get(job) === lease) this.#leaseOf.delete(job);
        // What the service makes no sense of is not going to be settled, however often it is told: its lease runs out.
        return responses.flatMap(({ results }) => results.map((answer) => (answer === "refused" ? "stale" : answer)));
      },
    };
  }

  #records(): RecordStore {
    return {
      counts: unsupported<RecordStore>("counting").counts,
      tenantCounts: unsupported<RecordStore>("counting").tenantCounts,
      log: async (_: WorkerRef, entries) => {
        const { store, here } = this.#clock;
        const now = store + this.#transport.clock.monotonic() - here;
        const notes = entries.map(({ lease, job, level, message, at, data }) => ({
          lease,
          job,
          level,
          message,
          ago: Math.max(0, now - at),
          ...(data === undefined ? {} : { data: decode(data) }),
        }));
        await this.#postAll("reports", "notes", notes);
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

  #toClaimedJob(
    lease: LeaseId,
    { id, task, queue, priority, tenant, attempt, input, undecryptable, dueAt, crashes, options }: PulledJob,
  ): ClaimedJob {
    this.#leaseOf.set(id, lease);
    const text = undecryptable === true ? undefined : JSON.stringify(input);
    return { id, lane: { queue, priority, tenant, task }, input: text, options, dueAt: Date.parse(dueAt), attempts: attempt - 1, crashes };
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
  async #postAll<Answer>(verb: string, field: string, values: readonly unknown[], how?: Partial<ServiceCall>): Promise<readonly Answer[]> {
    const responses: Answer[] = [];
    for (const chunk of chunksOf(values.map((value) => JSON.stringify(value)))) {
      const body = `${this.#bodyOf({}).slice(0, -1)},"${field}":[${chunk.join(",")}]}`;
      responses.push((await this.#send(`/v1/leases/${verb}`, body, how)) as Answer);
    }
    return responses;
  }

  /** All of them can be repeated: the fence and the first record decide. */
  #send(path: string, body: string, how: Partial<ServiceCall> = {}): Promise<unknown> {
    return this.#transport.json({ ...how, method: "POST", path, body, repeatable: true, pool: "work" });
  }
}

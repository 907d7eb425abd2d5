import type { Lane } from "./core/jobs/lane.js";
import { invalid } from "./core/values/option.js";
import type { Pawl } from "./pawl.js";
import type { LocalApiKeys } from "./scheduler/access/api-keys.js";
import type { Audit } from "./scheduler/access/audit.js";
import type { Encryption } from "./scheduler/access/encryption.js";
import type { Purges } from "./scheduler/access/tenants.js";
import type { Replies } from "./scheduler/jobs/replies.js";
import type { Backlog, BacklogOptions } from "./scheduler/observe/backlog.js";
import type { ClusterEvents } from "./scheduler/observe/event-tail.js";
import type { Scheduler } from "./scheduler/scheduler.js";
import type { WorkerOptions } from "./worker/options.js";
import type { Deliver, Pusher } from "./worker/push/pusher.js";
import type { Host, HostOptions } from "./worker/remote/host.js";

/** The parts of an open Pawl for a service on top of it. Where the store is behind a service itself, most of them are refused. */
export interface PawlService {
  /** API keys: a service lets its callers in by them. */
  readonly apiKeys: LocalApiKeys;
  /** The audit log: actions with their actors, and refusals. */
  readonly audit: Audit;
  /** Events of every process on the store; `pawl.on` hears those of this process alone. */
  readonly events: ClusterEvents;
  /** Answers kept for requests with an idempotency key. */
  readonly idempotency: Replies;
  /** The keys that jobs are encrypted with; see docs/protection.md. */
  readonly encryption: Encryption;
  /** Purges of tenants, requested here and carried out elsewhere. */
  readonly purges: Purges;
  /**
   * The scheduler of one caller, for its tenant if it has one. Callers share the threads that check costly inputs: the jobs of
   * a caller use its own share.
   */
  forCaller(caller: string, tenant?: string): Scheduler;
  /** Claims and settles here for a worker that runs elsewhere: the pull protocol is made of it. */
  host(worker: HostOptions): Host;
  /** Delivers the jobs of tasks that have a target. A worker of this process must run beside it: it polls for targets. */
  push(deliver: Deliver, options?: WorkerOptions): Promise<Pusher>;
  /** Waiting jobs: how many, for what, how long, and of whom. It scans nothing, so dashboards and alerts may call it often. */
  backlog(options?: BacklogOptions): Promise<Backlog>;
  /** Task, queue, priority and tenant of each job, of one tenant or all. Unknown jobs are left out. */
  lanesOf(jobs: readonly string[], options?: { readonly tenant?: string | undefined }): Promise<ReadonlyMap<string, Lane>>;
  /** How many handlers go on after the Pawl was closed, and keep the process alive. If there are any, the answer takes a second. */
  unended(): Promise<number>;
}

const services = new WeakMap<object, PawlService>();

/** Attaches the parts that `serviceOf` answers for this Pawl. Wrappers of a Pawl attach their own, too. */
export function attachService<P extends object>(pawl: P, service: PawlService): P {
  services.set(pawl, service);
  return pawl;
}

/** The parts of an open Pawl for a service on top of it. */
export function serviceOf(pawl: Pawl): PawlService {
  const service = services.get(pawl);
  if (service === undefined) throw invalid("pawl", "it is not what open answered");
  return service;
}

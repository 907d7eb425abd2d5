import { createHash } from "node:crypto";
import type { Duration, Pawl } from "pawl";
import { type Host, pawlError, permit, serviceOf } from "pawl/service";
import type { Principal } from "../http/access/principal.js";
import { ownerToEvict, shareOwner } from "../http/budgets/fair-share.js";

/** Who a worker says it is. */
export interface WorkerName {
  readonly name: string;
  readonly instance: string;
  readonly leaseDuration?: Duration;
}

interface WorkerSession {
  readonly owner: string;
  /** whose share it is of all that this process hosts */
  readonly share: string;
  readonly host: Host;
  lastCallAt: number;
  /** calls that are not answered */
  open: number;
}

/** ms of silence after which a worker is gone for this process */
const SESSION_TIMEOUT_MS = 60_000;
const SWEEP_INTERVAL_MS = 5_000;
/** hosted at a time, of all and of one credential: each costs some memory, and a look at the store now and then */
const MAX_SESSIONS = 10_000;
export const MAX_SESSIONS_PER_CREDENTIAL = 100;

/**
 * The workers that this process hosts. A session is a memory of what was handed out and nothing more: it begins with a
 * claim. What else a worker asks that this process has never heard of, since another one was killed, is answered without.
 */
export class WorkerSessions {
  readonly #sessions = new Map<string, WorkerSession>();
  readonly #sweeping: ReturnType<typeof setInterval>;

  constructor(
    private readonly pawl: Pawl,
    private readonly maxSessions = MAX_SESSIONS,
  ) {
    this.#sweeping = setInterval(() => this.#sweep(), SWEEP_INTERVAL_MS);
    this.#sweeping.unref();
  }

  get size(): number {
    return this.#sessions.size;
  }

  /** Calls the worker's host, and remembers it from here on. */
  async claiming<T>(principal: Principal, worker: WorkerName, call: (host: Host) => Promise<T>): Promise<T> {
    return this.#call(this.#of(principal, worker), call);
  }

  /** Calls the worker's host, or one for this call alone. */
  async with<T>(principal: Principal, worker: WorkerName, call: (host: Host) => Promise<T>): Promise<T> {
    const session = this.#sessions.get(keyOf(principal, worker));
    return session === undefined ? call(this.#host(principal, worker)) : this.#call(session, call);
  }

  /** It stays while calls are under way. */
  async #call<T>(session: WorkerSession, call: (host: Host) => Promise<T>): Promise<T> {
    session.open++;
    try {
      return await call(session.host);
    } finally {
      session.open--;
      session.lastCallAt = performance.now();
    }
  }

  async retire(principal: Principal, worker: WorkerName): Promise<void> {
    const key = keyOf(principal, worker);
    const session = this.#sessions.get(key);
    this.#sessions.delete(key);
    await session?.host.stop();
  }

  /** Their workers go on with another process. */
  async stop(): Promise<void> {
    clearInterval(this.#sweeping);
    const all = [...this.#sessions.values()];
    this.#sessions.clear();
    await Promise.all(all.map(({ host }) => host.stop()));
  }

  #of(principal: Principal, worker: WorkerName): WorkerSession {
    const key = keyOf(principal, worker);
    let session = this.#sessions.get(key);
    if (session === undefined) {
      const owner = ownerOf(principal);
      const own = [...this.#sessions.values()].filter((other) => other.owner === owner).length;
      const share = shareOwner(principal);
      if (own >= MAX_SESSIONS_PER_CREDENTIAL || (this.#sessions.size >= this.maxSessions && !this.#makeRoom(share)))
        throw pawlError("too_many_requests", { what: "a worker's session", retryAfter: SWEEP_INTERVAL_MS });
      session = { owner, share, host: this.#host(principal, worker), lastCallAt: performance.now(), open: 0 };
      this.#sessions.set(key, session);
    }
    return session;
  }

  /** Forgets the session that was silent for longest of whoever has most, if that is more than the caller would have. It begins anew with its next claim. */
  #makeRoom(requester: string): boolean {
    const heaviest = ownerToEvict(
      [...this.#sessions.values()].map(({ share }) => share),
      requester,
    );
    const [leastRecent] = [...this.#sessions].filter(([, { share }]) => share === heaviest).sort(([, a], [, b]) => a.lastCallAt - b.lastCallAt);
    if (leastRecent === undefined) return false;
    const [key, { host }] = leastRecent;
    this.#sessions.delete(key);
    void host.stop();
    return true;
  }

  #host(principal: Principal, { name, instance, leaseDuration }: WorkerName): Host {
    const { tenant } = principal;
    return serviceOf(this.pawl).host({
      name,
      instance: ownInstance(tenant, instance),
      ...(leaseDuration === undefined ? {} : { leaseDuration }),
      ...(tenant === undefined ? {} : { tenants: [tenant] }),
      allows: (lane) => permit(principal, "leases.write", { tenant: lane.tenant, task: lane.task, queue: lane.queue }).allowed,
    });
  }

  #sweep(): void {
    const now = performance.now();
    for (const [key, { host, lastCallAt, open }] of this.#sessions) {
      if (open > 0 || now - lastCallAt < SESSION_TIMEOUT_MS) continue;
      this.#sessions.delete(key);
      void host.stop();
    }
  }
}

function ownerOf({ tenant, name }: Principal): string {
  return JSON.stringify([tenant, name]);
}

function keyOf(principal: Principal, worker: WorkerName): string {
  return JSON.stringify([ownerOf(principal), worker.name, worker.instance, worker.leaseDuration]);
}

/**
 * The instance in the store is made of the tenant and what the worker says: the fence of one tenant's worker can then not be
 * that of another's, whoever learns or guesses its instance.
 */
export function ownInstance(tenant: string | undefined, instance: string): string {
  const hash = createHash("sha256")
    .update(JSON.stringify([tenant ?? null, instance]))
    .digest("hex");
  return `${hash.slice(0, 8)}-${hash.slice(8, 12)}-4${hash.slice(13, 16)}-8${hash.slice(17, 20)}-${hash.slice(20, 32)}`;
}

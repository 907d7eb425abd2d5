import type { WorkerRef } from "../../../core/jobs/lease.js";
import { systemClock } from "../../../runtime/time/clock.js";
import { type Db, NOW, statement } from "../connection/db.js";
import { AHEAD, existingMonths, startOf } from "../schema/partitions.js";

const REGISTER = statement(
  "register_worker",
  // An update, so that a row another connection wrote since the snapshot is answered, too.
  `insert into pawl.worker as w (instance, name, started_at, seen_at) values ($2::uuid, $3, ${NOW}, ${NOW})
   on conflict (instance) do update set seen_at = excluded.seen_at returning id`,
);

/** ms between signs of life of a worker, which asks for its number at every claim. */
const SIGN_OF_LIFE_MS = 86_400_000;
/** known by heart; any other is asked for again, which costs one statement */
const MAX_CACHED_IDS = 20_000;

/** A worker's instance as a small number, so that leases and attempts carry four bytes of it. */
export class WorkerIds {
  readonly #ids = new Map<string, { readonly id: Promise<number>; readonly renewAt: number }>();
  constructor(readonly db: Db) {}

  id(worker: WorkerRef): Promise<number> {
    const cached = this.#ids.get(worker.instance);
    const now = systemClock.monotonic();
    if (cached !== undefined && now < cached.renewAt) return cached.id;
    const id = this.#register(worker);
    // A failed registration is tried again by the next call.
    id.catch(() => this.#ids.delete(worker.instance));
    this.#ids.set(worker.instance, { id, renewAt: now + SIGN_OF_LIFE_MS });
    if (this.#ids.size > MAX_CACHED_IDS) this.#ids.delete(this.#ids.keys().next().value as string);
    return id;
  }

  async #register(worker: WorkerRef): Promise<number> {
    const [row] = await this.db.query<{ id: number }>(REGISTER, [this.db.now(), worker.instance, worker.name]);
    return (row as { id: number }).id;
  }
}

/**
 * Attempts of workers last seen before `$1` were in months that are gone. Jobs that outlived their month, and their
 * attempts with them, are looked through: no index leads there, so this is asked only when a month has gone.
 */
const FORGET = statement(
  "forget_workers",
  `with gone as (
     delete from pawl.worker w where w.seen_at < to_timestamp($1::float8 / 1000)
       and not exists (select from pawl.lease l where l.worker = w.id) and not exists (select from pawl.history_kept h where h.worker = w.id)
     returning 1)
   select count(*)::int as n from gone`,
);

/**
 * Lets go of instances long gone whose name no history shows. A worker's last attempt is at most a sign of life younger
 * than its last one, and in a month at most so many ahead of that as are made ahead.
 */
export async function forgetWorkers(db: Db): Promise<number> {
  const [oldest] = await existingMonths(db);
  if (oldest === undefined) return 0;
  const [row] = await db.query<{ n: number }>(FORGET, [startOf(oldest, -(AHEAD + 1)) - 2 * SIGN_OF_LIFE_MS]);
  return row?.n ?? 0;
}

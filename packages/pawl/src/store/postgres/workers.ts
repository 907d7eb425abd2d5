import type { WorkerRef } from "../../core/lease.js";
import { systemClock } from "../../runtime/clock.js";
import { type Db, NOW, statement } from "./db.js";
import { AHEAD, existingMonths, startOf } from "./partitions.js";

const REGISTER = statement(
  "register_worker",
  // An update, so that a row another connection wrote since the snapshot is answered, too.
  `insert into pawl.worker as w (boot, name, started_at, seen_at) values ($2::uuid, $3, ${NOW}, ${NOW})
   on conflict (boot) do update set seen_at = excluded.seen_at returning id`,
);

/** ms between signs of life of a worker, which asks for its number at every claim. */
const SIGN_OF_LIFE = 86_400_000;
/** known by heart; any other is asked for again, which costs one statement */
const MOST_KNOWN = 20_000;

/** A worker's boot as a small number, so that leases and attempts carry four bytes of it. */
export class Workers {
  readonly #ids = new Map<string, { readonly id: Promise<number>; readonly renewAt: number }>();
  constructor(readonly db: Db) {}

  id(worker: WorkerRef): Promise<number> {
    const known = this.#ids.get(worker.boot);
    const now = systemClock.monotonic();
    if (known !== undefined && now < known.renewAt) return known.id;
    const id = this.#register(worker);
    // A failed registration is tried again by the next call.
    id.catch(() => this.#ids.delete(worker.boot));
    this.#ids.set(worker.boot, { id, renewAt: now + SIGN_OF_LIFE });
    if (this.#ids.size > MOST_KNOWN) this.#ids.delete(this.#ids.keys().next().value as string);
    return id;
  }

  async #register(worker: WorkerRef): Promise<number> {
    const [row] = await this.db.query<{ id: number }>(REGISTER, [this.db.now(), worker.boot, worker.name]);
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
 * Lets go of boots long gone whose name no history shows. A worker's last attempt is at most a sign of life younger
 * than its last one, and in a month at most so many ahead of that as are made ahead.
 */
export async function forgetWorkers(db: Db): Promise<number> {
  const [oldest] = await existingMonths(db);
  if (oldest === undefined) return 0;
  const [row] = await db.query<{ n: number }>(FORGET, [startOf(oldest, -(AHEAD + 1)) - 2 * SIGN_OF_LIFE]);
  return row?.n ?? 0;
}

import type { WorkerRef } from "../../core/lease.js";
import { type Db, NOW, statement } from "./db.js";

const REGISTER = statement(
  "register_worker",
  // An update, so that a row another connection wrote since the snapshot is answered, too.
  `insert into pawl.worker as w (boot, name, started_at) values ($2::uuid, $3, ${NOW}) on conflict (boot) do update set name = w.name returning id`,
);

/** A worker's boot as a small number, so that leases and attempts carry four bytes of it. */
export class Workers {
  readonly #ids = new Map<string, Promise<number>>();
  constructor(readonly db: Db) {}

  id(worker: WorkerRef): Promise<number> {
    let id = this.#ids.get(worker.boot);
    if (id === undefined) {
      id = this.#register(worker);
      // A failed registration is tried again by the next call.
      id.catch(() => this.#ids.delete(worker.boot));
      this.#ids.set(worker.boot, id);
    }
    return id;
  }

  async #register(worker: WorkerRef): Promise<number> {
    const [row] = await this.db.query<{ id: number }>(REGISTER, [this.db.now(), worker.boot, worker.name]);
    return (row as { id: number }).id;
  }
}

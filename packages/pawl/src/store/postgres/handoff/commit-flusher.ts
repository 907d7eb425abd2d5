import type { JobId } from "../../../core/jobs/id.js";
import { pawlError } from "../../../core/values/error.js";
import { plainArray } from "../connection/arrays.js";
import { type Db, statement } from "../connection/db.js";

/**
 * All that was committed before it is on disk by the time it is answered; it leaves nothing behind but a note in the log. It asks for
 * the jobs as well: the server may have crashed since, and come back without them.
 */
const FLUSH = statement(
  "flush",
  `with noted as materialized (select pg_logical_emit_message(true, 'pawl', 'enqueued')::text as at)
   select j.id from noted cross join pawl.job j where j.id = any($1::uuid[])`,
);

interface FlushWaiter {
  readonly id: JobId;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Waits for the disk for jobs that were handed over. One at a time for all that have come: whoever waits holds no connection that
 * the next enqueue needs, however slow the disk.
 */
export class CommitFlusher {
  #waiting: FlushWaiter[] = [];
  #busy = false;

  constructor(private readonly db: Db) {}

  /** If it fails, the job may be there, and begun; whether it will be there after a crash nobody can say. */
  onDisk(id: JobId): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ id, resolve, reject });
      if (!this.#busy) void this.#flush();
    });
  }

  async #flush(): Promise<void> {
    this.#busy = true;
    while (this.#waiting.length > 0) {
      const these = this.#waiting;
      this.#waiting = [];
      await this.db.query<{ id: JobId }>(FLUSH, [plainArray(these.map(({ id }) => id))]).then(
        (rows) => {
          const found = new Set(rows.map(({ id }) => id));
          for (const { id, resolve, reject } of these) found.has(id) ? resolve() : reject(pawlError("enqueue_uncertain", { count: 1 }));
        },
        (error: unknown) => {
          for (const { reject } of these) reject(pawlError("enqueue_uncertain", { count: 1 }, error));
        },
      );
    }
    this.#busy = false;
  }
}

import type { JobId } from "../../../core/jobs/id.js";
import { pawlError } from "../../../core/values/error.js";
import type { Db } from "../connection/db.js";
import { sqlFile } from "../connection/sql-statement.js";

const FLUSH = sqlFile("handoff/flush.sql");

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
      await FLUSH.query<{ id: JobId }>(this.db, { jobs: these.map(({ id }) => id) }).then(
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

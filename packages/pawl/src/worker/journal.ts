import { BOUNDS } from "../core/bounds.js";
import type { LogLevel } from "../core/job.js";
import type { WorkerRef } from "../core/lease.js";
import type { Clock } from "../runtime/clock.js";
import type { Store } from "../store/port.js";
import type { LogEntry } from "../store/port-records.js";
import type { Attempt } from "./attempt.js";
import { encodeProgress, type Line, lineOf, Notes } from "./notes.js";
import { isRefused } from "./refused.js";

export interface JournalParts {
  readonly store: Store;
  readonly worker: WorkerRef;
  readonly clock: Clock;
  /** a call failed; what it carried is sent again, unless `onLost` says otherwise */
  readonly onError: (error: unknown) => void;
  /** so many lines will never be stored */
  readonly onLost: (lines: number, error: unknown) => void;
}

interface Waiting {
  readonly entry: LogEntry;
  readonly notes: Notes;
  readonly size: number;
}

const FLUSH_AFTER = 200;
const PROGRESS_EVERY = 500;
const MOST_PER_CALL = 1_000;
/** What is kept of lines that are too many or too large together: some room, so that not every further line drops another. */
const KEPT = 0.9;
const STOPPED = "the worker stopped before they were stored";

/** Log lines and progress of all attempts, sent in batches, and before the settlement that ends the lease they need. */
export class Journal {
  #waiting: Waiting[] = [];
  #waitingSize = 0;
  readonly #progressing = new Set<Attempt>();
  #sending: Promise<void> = Promise.resolve();
  #most = MOST_PER_CALL;
  #cancelTimer: (() => void) | undefined;
  #stopped = false;
  /** why the last call failed; nothing, if it did not */
  #failure: unknown;
  #lost = { lines: 0, error: undefined as unknown };

  constructor(private readonly parts: JournalParts) {}

  line(attempt: Attempt, level: LogLevel, message: unknown, data: unknown): void {
    const notes = notesOf(attempt);
    const line = lineOf(message, data);
    if (notes.admits(line)) this.#add(attempt, notes, level, line);
  }

  /** What Pawl itself has to say of an attempt: however much its handler said, it is kept. */
  remark(attempt: Attempt, level: LogLevel, message: string): void {
    this.#add(attempt, notesOf(attempt), level, lineOf(message, undefined));
  }

  /** Only the latest value counts, so only the latest is sent. Throws if it is too large. */
  progress(attempt: Attempt, value: unknown): void {
    const text = encodeProgress(attempt.job.id, value);
    const notes = notesOf(attempt);
    notes.progress = { text };
    notes.latest = value;
    this.#progressing.add(attempt);
    this.#arm();
  }

  /** Sends the rest of what an attempt said. Answers nothing if there is nothing to wait for. */
  close(attempt: Attempt): Promise<void> | undefined {
    const { notes } = attempt;
    if (notes === undefined) return undefined;
    this.#takeProgress(attempt, notes);
    const missing = notes.missing();
    if (missing !== undefined) this.#add(attempt, notes, "warn", { message: missing });
    return this.flush();
  }

  /** Never rejects: a line that cannot be stored must not keep its job from being settled. */
  flush(): Promise<void> {
    this.#sending = this.#sending.then(() => this.#send());
    return this.#sending;
  }

  /** What was not stored until now is lost. */
  stop(): void {
    this.#stopped = true;
    this.#cancelTimer?.();
    this.#lose(this.#waiting, STOPPED);
    this.#waiting = [];
    this.#waitingSize = 0;
    this.#tellLost();
  }

  #arm(): void {
    this.#cancelTimer ??= this.parts.clock.after(FLUSH_AFTER, () => {
      this.#cancelTimer = undefined;
      void this.flush();
    });
  }

  #add({ lease, job }: Attempt, notes: Notes, level: LogEntry["level"], line: Line): void {
    const at = lease.storeTime(this.parts.clock.monotonic());
    const entry = { lease: lease.id, job: job.id, tenant: job.lane.tenant, at, level, ...line };
    const size = Buffer.byteLength(line.message) + (line.data === undefined ? 0 : Buffer.byteLength(line.data));
    this.#waiting.push({ entry, notes, size });
    this.#waitingSize += size;
    this.#makeRoom();
    this.#arm();
  }

  #takeProgress(attempt: Attempt, notes: Notes): void {
    this.#progressing.delete(attempt);
    if (notes.progress === undefined) return;
    const { text } = notes.progress;
    notes.progress = undefined;
    notes.progressAt = this.parts.clock.monotonic();
    this.#add(attempt, notes, "progress", { message: "", data: text });
  }

  async #send(): Promise<void> {
    const now = this.parts.clock.monotonic();
    for (const attempt of this.#progressing) {
      const notes = notesOf(attempt);
      if (now - notes.progressAt >= PROGRESS_EVERY) this.#takeProgress(attempt, notes);
    }
    if (this.#progressing.size > 0) this.#arm();
    for (;;) {
      const batch = this.#take();
      if (batch.length === 0) break;
      const { store, worker, onError } = this.parts;
      try {
        await store.records.log(
          worker,
          batch.map(({ entry }) => entry),
        );
        this.#failure = undefined;
        this.#most = Math.min(MOST_PER_CALL, this.#most * 2);
      } catch (error) {
        onError(error);
        this.#failure = error;
        const refused = isRefused(error);
        // Smaller batches find the line at fault, and without it the others are taken.
        if (this.#stopped || (refused && batch.length === 1)) this.#lose(batch, STOPPED);
        else this.#putBack(batch);
        if (refused) this.#most = Math.max(1, Math.floor(batch.length / 2));
        else {
          if (!this.#stopped) this.#arm();
          break;
        }
      }
    }
    this.#tellLost();
  }

  /** The next ones, as many as one statement carries. Those whose lease has ended meanwhile would not be stored any more. */
  #take(): readonly Waiting[] {
    if (this.#waiting.some(({ notes }) => notes.settled)) {
      this.#lose(
        this.#waiting.filter(({ notes }) => notes.settled),
        "their jobs ended before they were stored",
      );
      this.#waiting = this.#waiting.filter(({ notes }) => !notes.settled);
      this.#waitingSize = sizeOf(this.#waiting);
    }
    let count = 0;
    let size = 0;
    while (count < this.#waiting.length && count < this.#most) {
      const next = (this.#waiting[count] as Waiting).size;
      if (count > 0 && size + next > BOUNDS.statement) break;
      size += next;
      count++;
    }
    this.#waitingSize -= size;
    return this.#waiting.splice(0, count);
  }

  #putBack(batch: readonly Waiting[]): void {
    this.#waiting = [...batch, ...this.#waiting];
    this.#waitingSize += sizeOf(batch);
    this.#makeRoom();
  }

  /** Lines are a help, not a record: while the store takes none, the oldest go. */
  #makeRoom(): void {
    if (this.#waiting.length <= BOUNDS.waitingLines && this.#waitingSize <= BOUNDS.waitingBytes) return;
    let count = 0;
    while (this.#waiting.length - count > KEPT * BOUNDS.waitingLines || this.#waitingSize > KEPT * BOUNDS.waitingBytes) {
      this.#waitingSize -= (this.#waiting[count] as Waiting).size;
      count++;
    }
    this.#lose(this.#waiting.splice(0, count), "too many waited for the store");
  }

  #lose(lines: readonly Waiting[], why: string): void {
    if (lines.length === 0) return;
    this.#lost = { lines: this.#lost.lines + lines.length, error: this.#failure ?? new Error(why) };
    for (const { notes } of lines) notes.lost++;
  }

  #tellLost(): void {
    const { lines, error } = this.#lost;
    if (lines === 0) return;
    this.#lost = { lines: 0, error: undefined };
    this.parts.onLost(lines, error);
  }
}

function sizeOf(lines: readonly Waiting[]): number {
  return lines.reduce((sum, { size }) => sum + size, 0);
}

function notesOf(attempt: Attempt): Notes {
  attempt.notes ??= new Notes();
  return attempt.notes;
}

import type { LogLevel } from "../../core/jobs/job.js";
import type { WorkerRef } from "../../core/jobs/lease.js";
import { BOUNDS } from "../../core/values/bounds.js";
import type { Clock } from "../../runtime/time/clock.js";
import type { Store } from "../../store/port/index.js";
import type { LogEntry } from "../../store/port/settle/records.js";
import { isRefused } from "../settle/is-refused.js";
import type { Attempt } from "./attempt.js";
import { AttemptLog, encodeProgress, lineOf, type StoredLogLine } from "./attempt-log.js";

export interface LogWriterDeps {
  readonly store: Store;
  readonly worker: WorkerRef;
  readonly clock: Clock;
  /** a call failed; what it carried is sent again, unless `onLost` says otherwise */
  readonly onError: (error: unknown) => void;
  /** so many lines will never be stored */
  readonly onLost: (lines: number, error: unknown) => void;
}

interface UnsentLine {
  readonly entry: LogEntry;
  readonly attemptLog: AttemptLog;
  readonly size: number;
}

const FLUSH_AFTER_MS = 200;
const PROGRESS_INTERVAL_MS = 500;
const MAX_LINES_PER_CALL = 1_000;
/** What is kept of lines that are too many or too large together: some room, so that not every further line drops another. */
const KEPT_SHARE = 0.9;
const STOPPED_REASON = "the worker stopped before they were stored";

/** Log lines and progress of all attempts, sent in batches, and before the settlement that ends the lease they need. */
export class LogWriter {
  #unsent: UnsentLine[] = [];
  #unsentSize = 0;
  readonly #progressing = new Set<Attempt>();
  #sending: Promise<void> = Promise.resolve();
  #maxPerCall = MAX_LINES_PER_CALL;
  #cancelTimer: (() => void) | undefined;
  #stopped = false;
  /** why the last call failed; nothing, if it did not */
  #failure: unknown;
  #lost = { lines: 0, error: undefined as unknown };

  constructor(private readonly deps: LogWriterDeps) {}

  line(attempt: Attempt, level: LogLevel, message: unknown, data: unknown): void {
    const attemptLog = logOf(attempt);
    const line = lineOf(message, data);
    if (attemptLog.admits(line)) this.#add(attempt, attemptLog, level, line);
  }

  /** What Pawl itself has to say of an attempt: however much its handler said, it is kept. */
  addOwnLine(attempt: Attempt, level: LogLevel, message: string): void {
    this.#add(attempt, logOf(attempt), level, lineOf(message, undefined));
  }

  /** Only the latest value counts, so only the latest is sent. Throws if it is too large. */
  progress(attempt: Attempt, value: unknown): void {
    const text = encodeProgress(attempt.job.id, value);
    const attemptLog = logOf(attempt);
    attemptLog.progress = { text };
    attemptLog.latest = value;
    this.#progressing.add(attempt);
    this.#arm();
  }

  /** Sends the rest of what an attempt said. Answers nothing if there is nothing to wait for. */
  close(attempt: Attempt): Promise<void> | undefined {
    const { log } = attempt;
    if (log === undefined) return undefined;
    this.#takeProgress(attempt, log);
    const missing = log.missing();
    if (missing !== undefined) this.#add(attempt, log, "warn", { message: missing });
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
    this.#lose(this.#unsent, STOPPED_REASON);
    this.#unsent = [];
    this.#unsentSize = 0;
    this.#reportLost();
  }

  #arm(): void {
    this.#cancelTimer ??= this.deps.clock.after(FLUSH_AFTER_MS, () => {
      this.#cancelTimer = undefined;
      void this.flush();
    });
  }

  #add({ lease, job }: Attempt, attemptLog: AttemptLog, level: LogEntry["level"], line: StoredLogLine): void {
    const at = lease.storeTime(this.deps.clock.monotonic());
    const entry = { lease: lease.id, job: job.id, tenant: job.lane.tenant, at, level, ...line };
    const size = Buffer.byteLength(line.message) + (line.data === undefined ? 0 : Buffer.byteLength(line.data));
    this.#unsent.push({ entry, attemptLog, size });
    this.#unsentSize += size;
    this.#makeRoom();
    this.#arm();
  }

  #takeProgress(attempt: Attempt, attemptLog: AttemptLog): void {
    this.#progressing.delete(attempt);
    if (attemptLog.progress === undefined) return;
    const { text } = attemptLog.progress;
    attemptLog.progress = undefined;
    attemptLog.progressAt = this.deps.clock.monotonic();
    this.#add(attempt, attemptLog, "progress", { message: "", data: text });
  }

  async #send(): Promise<void> {
    const now = this.deps.clock.monotonic();
    for (const attempt of this.#progressing) {
      const attemptLog = logOf(attempt);
      if (now - attemptLog.progressAt >= PROGRESS_INTERVAL_MS) this.#takeProgress(attempt, attemptLog);
    }
    if (this.#progressing.size > 0) this.#arm();
    for (;;) {
      const batch = this.#take();
      if (batch.length === 0) break;
      const { store, worker, onError } = this.deps;
      try {
        await store.records.log(
          worker,
          batch.map(({ entry }) => entry),
        );
        this.#failure = undefined;
        this.#maxPerCall = Math.min(MAX_LINES_PER_CALL, this.#maxPerCall * 2);
      } catch (error) {
        onError(error);
        this.#failure = error;
        const refused = isRefused(error);
        // Smaller batches find the line at fault, and without it the others are taken.
        if (this.#stopped || (refused && batch.length === 1)) this.#lose(batch, STOPPED_REASON);
        else this.#returnLines(batch);
        if (refused) this.#maxPerCall = Math.max(1, Math.floor(batch.length / 2));
        else {
          if (!this.#stopped) this.#arm();
          break;
        }
      }
    }
    this.#reportLost();
  }

  /** The next ones, as many as one statement carries. Those whose lease has ended meanwhile would not be stored any more. */
  #take(): readonly UnsentLine[] {
    if (this.#unsent.some(({ attemptLog }) => attemptLog.settled)) {
      this.#lose(
        this.#unsent.filter(({ attemptLog }) => attemptLog.settled),
        "their jobs ended before they were stored",
      );
      this.#unsent = this.#unsent.filter(({ attemptLog }) => !attemptLog.settled);
      this.#unsentSize = sizeOf(this.#unsent);
    }
    let count = 0;
    let size = 0;
    while (count < this.#unsent.length && count < this.#maxPerCall) {
      const next = (this.#unsent[count] as UnsentLine).size;
      if (count > 0 && size + next > BOUNDS.statement) break;
      size += next;
      count++;
    }
    this.#unsentSize -= size;
    return this.#unsent.splice(0, count);
  }

  #returnLines(batch: readonly UnsentLine[]): void {
    this.#unsent = [...batch, ...this.#unsent];
    this.#unsentSize += sizeOf(batch);
    this.#makeRoom();
  }

  /** Lines are a help, not a record: while the store takes none, the oldest go. */
  #makeRoom(): void {
    if (this.#unsent.length <= BOUNDS.waitingLines && this.#unsentSize <= BOUNDS.waitingBytes) return;
    let count = 0;
    while (this.#unsent.length - count > KEPT_SHARE * BOUNDS.waitingLines || this.#unsentSize > KEPT_SHARE * BOUNDS.waitingBytes) {
      this.#unsentSize -= (this.#unsent[count] as UnsentLine).size;
      count++;
    }
    this.#lose(this.#unsent.splice(0, count), "too many waited for the store");
  }

  #lose(lines: readonly UnsentLine[], why: string): void {
    if (lines.length === 0) return;
    this.#lost = { lines: this.#lost.lines + lines.length, error: this.#failure ?? new Error(why) };
    for (const { attemptLog } of lines) attemptLog.lost++;
  }

  #reportLost(): void {
    const { lines, error } = this.#lost;
    if (lines === 0) return;
    this.#lost = { lines: 0, error: undefined };
    this.deps.onLost(lines, error);
  }
}

function sizeOf(lines: readonly UnsentLine[]): number {
  return lines.reduce((sum, { size }) => sum + size, 0);
}

function logOf(attempt: Attempt): AttemptLog {
  attempt.log ??= new AttemptLog();
  return attempt.log;
}

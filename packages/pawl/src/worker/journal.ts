import { DEFAULTS } from "../core/defaults.js";
import type { LogLevel } from "../core/job.js";
import { encode } from "../core/json.js";
import type { WorkerRef } from "../core/lease.js";
import type { Clock } from "../runtime/clock.js";
import type { Store } from "../store/port.js";
import type { LogEntry } from "../store/port-records.js";
import type { Attempt } from "./attempt.js";
import { isRefused } from "./refused.js";

/** What one attempt has said so far; made with its first word. */
export class Notes {
  lines = 0;
  dropped = 0;
  progress: { readonly value: unknown } | undefined;
  /** the last progress, for live views in this process */
  latest: unknown;
  progressAt = Number.NEGATIVE_INFINITY;
}

const FLUSH_AFTER = 200;
const PROGRESS_EVERY = 500;
const LONGEST_MESSAGE = 4_000;
/** Lines kept while the store is away. Beyond, the oldest go: they are a help, not a record. */
const MOST_WAITING = 20_000;
const MOST_PER_CALL = 1_000;

/** Log lines and progress of all attempts, sent in batches, and before the settlement that ends the lease they need. */
export class Journal {
  #waiting: LogEntry[] = [];
  readonly #progressing = new Set<Attempt>();
  #sending: Promise<void> = Promise.resolve();
  #size = MOST_PER_CALL;
  #cancelTimer: (() => void) | undefined;

  constructor(
    private readonly store: Store,
    private readonly worker: WorkerRef,
    private readonly clock: Clock,
  ) {}

  line(attempt: Attempt, level: LogLevel, message: unknown, data: unknown): void {
    const notes = notesOf(attempt);
    if (notes.lines >= DEFAULTS.limits.logLines) {
      notes.dropped++;
      return;
    }
    notes.lines++;
    this.#add(attempt, level, clean(message), data);
  }

  /** What Pawl itself has to say of an attempt: however much its handler said, it is kept. */
  remark(attempt: Attempt, level: LogLevel, message: string): void {
    notesOf(attempt);
    this.#add(attempt, level, clean(message), undefined);
  }

  /** Only the latest value counts, so only the latest is encoded and sent. */
  progress(attempt: Attempt, value: unknown): void {
    const notes = notesOf(attempt);
    notes.progress = { value };
    notes.latest = value;
    this.#progressing.add(attempt);
    this.#arm();
  }

  /** Sends the rest of what an attempt said. Answers nothing if there is nothing to wait for. */
  close(attempt: Attempt): Promise<void> | undefined {
    const { notes } = attempt;
    if (notes === undefined) return undefined;
    this.#takeProgress(attempt, notes);
    if (notes.dropped > 0) this.#add(attempt, "warn", `… ${notes.dropped} more lines were dropped`, undefined);
    notes.dropped = 0;
    return this.flush();
  }

  /** Never rejects: a line that cannot be stored must not keep its job from being settled. */
  flush(): Promise<void> {
    this.#sending = this.#sending.then(() => this.#send());
    return this.#sending;
  }

  stop(): void {
    this.#cancelTimer?.();
  }

  #arm(): void {
    this.#cancelTimer ??= this.clock.after(FLUSH_AFTER, () => {
      this.#cancelTimer = undefined;
      void this.flush();
    });
  }

  #add(attempt: Attempt, level: LogEntry["level"], message: string, data: unknown): void {
    const { lease, job } = attempt;
    const encoded = data === undefined ? undefined : encode(data);
    const text = encoded === undefined ? undefined : encoded.ok ? encoded.text : JSON.stringify(`(not JSON: ${encoded.reason})`);
    this.#waiting.push({
      lease: lease.id,
      job: job.id,
      tenant: job.lane.tenant,
      at: lease.storeTime(this.clock.monotonic()),
      level,
      message,
      ...(text === undefined ? {} : { data: text }),
    });
    this.#arm();
  }

  #takeProgress(attempt: Attempt, notes: Notes): void {
    this.#progressing.delete(attempt);
    if (notes.progress === undefined) return;
    const { value } = notes.progress;
    notes.progress = undefined;
    notes.progressAt = this.clock.monotonic();
    this.#add(attempt, "progress", "", value ?? null);
  }

  async #send(): Promise<void> {
    const now = this.clock.monotonic();
    for (const attempt of this.#progressing) {
      const notes = notesOf(attempt);
      if (now - notes.progressAt >= PROGRESS_EVERY) this.#takeProgress(attempt, notes);
    }
    if (this.#progressing.size > 0) this.#arm();
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, this.#size);
      try {
        await this.store.records.log(this.worker, batch);
        this.#size = Math.min(MOST_PER_CALL, this.#size * 2);
      } catch (error) {
        const refused = isRefused(error);
        // Smaller batches find the line at fault, and without it the others are taken.
        if (refused && batch.length === 1) continue;
        if (refused) this.#size = Math.floor(batch.length / 2);
        this.#waiting = [...batch, ...this.#waiting].slice(-MOST_WAITING);
        if (refused) continue;
        this.#arm();
        return;
      }
    }
  }
}

function notesOf(attempt: Attempt): Notes {
  attempt.notes ??= new Notes();
  return attempt.notes;
}

function clean(message: unknown): string {
  let text: string;
  try {
    text = String(message);
  } catch {
    text = "(unprintable)";
  }
  return text.slice(0, LONGEST_MESSAGE).replaceAll("\u0000", "\ufffd").toWellFormed();
}

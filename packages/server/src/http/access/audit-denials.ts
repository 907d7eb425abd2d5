import type { NewAudit } from "pawl/service";
import { ANONYMOUS, type AuditLog } from "./audit-request.js";

/** ms */
const MINUTE_MS = 60_000;
/** told one by one in a minute: of a caller that is known, of an address that is all there is to know */
const MAX_PER_CALLER = 10;
const MAX_PER_ADDRESS = 1;
/** with entries of their own in a minute; the others share one */
const MAX_ADDRESSES = 100;

interface DenialCounts {
  last: NewAudit;
  recorded: number;
  suppressed: number;
}

/**
 * Tells the audit who was not let. The entries of a log are a chain, written one after the other: whoever asks in a loop
 * would fill it and have all others wait. So of everybody only the first of a minute are told one by one; the others are
 * counted, and told together when it is over.
 */
export class DenialAudit {
  readonly #callers = new Map<string, DenialCounts>();
  readonly #addresses = new Map<string, DenialCounts>();
  readonly #minutes: ReturnType<typeof setInterval>;

  constructor(
    private readonly audit: AuditLog,
    private readonly onFault: (error: unknown) => void,
  ) {
    this.#minutes = setInterval(() => void this.#flushMinute(), MINUTE_MS);
    this.#minutes.unref();
  }

  async record(entry: NewAudit): Promise<void> {
    if (entry.actor !== ANONYMOUS) {
      const recordedAlone = this.#countAlone(this.#callers, JSON.stringify([entry.tenant, entry.actor]), entry, MAX_PER_CALLER);
      if (recordedAlone) await this.audit.record(entry);
      return;
    }
    const { address = "", ...rest } = entry;
    const crowded = this.#addresses.size >= MAX_ADDRESSES && !this.#addresses.has(address);
    const visibleEntry = crowded ? rest : entry;
    // Nobody waits for it: those who show no key can ask as often as they like.
    if (this.#countAlone(this.#addresses, crowded ? "" : address, visibleEntry, MAX_PER_ADDRESS)) void this.#record(visibleEntry);
  }

  async stop(): Promise<void> {
    clearInterval(this.#minutes);
    await this.#flushMinute();
  }

  /** Whether it is told by itself. */
  #countAlone(all: Map<string, DenialCounts>, caller: string, entry: NewAudit, max: number): boolean {
    const counts = all.get(caller) ?? { last: entry, recorded: 0, suppressed: 0 };
    all.set(caller, counts);
    counts.last = entry;
    if (counts.recorded < max) counts.recorded++;
    else counts.suppressed++;
    return counts.suppressed === 0;
  }

  /** Whoever went on is told of once a minute from here on; the others are forgotten. */
  async #flushMinute(): Promise<void> {
    for (const all of [this.#addresses, this.#callers]) {
      for (const [caller, counts] of [...all]) {
        const { last, suppressed } = counts;
        counts.suppressed = 0;
        if (suppressed === 0) all.delete(caller);
        else await this.#record({ ...last, details: { ...last.details, count: suppressed } });
      }
    }
  }

  async #record(entry: NewAudit): Promise<void> {
    try {
      await this.audit.record(entry);
    } catch (error) {
      this.onFault(error);
    }
  }
}

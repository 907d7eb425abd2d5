import type { NewAudit } from "pawl";
import { ANONYMOUS, type AuditLog } from "./guard.js";

/** ms */
const MINUTE = 60_000;
/** told one by one in a minute: of a caller that is known, of an address that is all there is to know */
const OF_CALLER = 10;
const OF_ADDRESS = 1;
/** with entries of their own in a minute; the others share one */
const MOST_ADDRESSES = 100;

interface Denied {
  last: NewAudit;
  told: number;
  more: number;
}

/**
 * Tells the audit who was not let. The entries of a log are a chain, written one after the other: whoever asks in a loop
 * would fill it and have all others wait. So of everybody only the first of a minute are told one by one; the others are
 * counted, and told together when it is over.
 */
export class Denials {
  readonly #callers = new Map<string, Denied>();
  readonly #addresses = new Map<string, Denied>();
  readonly #minutes: ReturnType<typeof setInterval>;

  constructor(
    private readonly audit: AuditLog,
    private readonly onFault: (error: unknown) => void,
  ) {
    this.#minutes = setInterval(() => void this.#over(), MINUTE);
    this.#minutes.unref();
  }

  async tell(entry: NewAudit): Promise<void> {
    if (entry.actor !== ANONYMOUS) {
      const told = this.#first(this.#callers, JSON.stringify([entry.tenant, entry.actor]), entry, OF_CALLER);
      if (told) await this.audit.record(entry);
      return;
    }
    const { address = "", ...rest } = entry;
    const crowded = this.#addresses.size >= MOST_ADDRESSES && !this.#addresses.has(address);
    const shown = crowded ? rest : entry;
    // Nobody waits for it: those who show no key can ask as often as they like.
    if (this.#first(this.#addresses, crowded ? "" : address, shown, OF_ADDRESS)) void this.#record(shown);
  }

  async stop(): Promise<void> {
    clearInterval(this.#minutes);
    await this.#over();
  }

  /** Whether it is told by itself. */
  #first(all: Map<string, Denied>, whose: string, entry: NewAudit, most: number): boolean {
    const denied = all.get(whose) ?? { last: entry, told: 0, more: 0 };
    all.set(whose, denied);
    denied.last = entry;
    if (denied.told < most) denied.told++;
    else denied.more++;
    return denied.more === 0;
  }

  /** Whoever went on is told of once a minute from here on; the others are forgotten. */
  async #over(): Promise<void> {
    for (const all of [this.#addresses, this.#callers]) {
      for (const [whose, denied] of [...all]) {
        const { last, more } = denied;
        denied.more = 0;
        if (more === 0) all.delete(whose);
        else await this.#record({ ...last, details: { ...last.details, count: more } });
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

import type { Ran } from "../contract/child.ts";
import type { Input } from "../contract/system.ts";
import { monotonic } from "./clock.ts";
import { Times } from "./spread.ts";

/** What the handlers of this process have seen: every job ticked off by its number. */
export class RunCounter {
  count = 0;
  readonly #seen: Uint8Array;
  #twice = 0;
  #first = 0;
  #last = 0;
  #latency = new Times();
  #lateness = new Times();
  #awaited: { readonly count: number; readonly reached: () => void }[] = [];

  constructor(upTo: number) {
    this.#seen = new Uint8Array(upTo);
  }

  readonly tick = ({ n, at, due }: Input): void => {
    const now = monotonic();
    if (at !== undefined) this.#latency.add(now - at);
    if (due !== undefined) this.#lateness.add(Date.now() - due);
    if (this.count === 0) this.#first = now;
    this.#last = now;
    if (this.#seen[n] !== 0)
      this.#twice++; // also a number that is none of ours
    else {
      this.#seen[n] = 1;
      this.count++;
      if (this.#awaited.length > 0) this.#tell();
    }
  };

  /** Resolves once so many different jobs have run here. */
  reached(count: number): Promise<void> {
    return new Promise((reached) => {
      this.#awaited.push({ count, reached });
      this.#tell();
    });
  }

  ran(): Ran {
    return {
      count: this.count,
      twice: this.#twice,
      first: this.#first,
      last: this.#last,
      latency: this.#latency.spread(),
      lateness: this.#lateness.spread(),
    };
  }

  #tell(): void {
    for (const { count, reached } of this.#awaited) if (this.count >= count) reached();
    this.#awaited = this.#awaited.filter(({ count }) => this.count < count);
  }
}

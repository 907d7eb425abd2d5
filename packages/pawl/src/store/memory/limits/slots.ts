import type { JobId } from "../../../core/jobs/id.js";

/** Of what a slot is held: the concurrency, the serial order or the rate of a limit key, or a limit on whole lanes. */
export type SlotKind = "key" | "serial" | "rate" | "queue" | "task" | "tenant";

interface Slot {
  readonly kind: SlotKind;
  readonly key: string;
}

/** Who holds a slot under a limit. A row for each, never a count, so that nothing can be lost. */
export class LimitSlots {
  readonly #holders = new Map<string, Set<JobId>>();
  readonly #slots = new Map<JobId, Slot[]>();

  add(kind: SlotKind, key: string, job: JobId): void {
    const name = nameOf(kind, key);
    const holders = this.#holders.get(name);
    if (holders?.has(job)) return;
    if (holders === undefined) this.#holders.set(name, new Set([job]));
    else holders.add(job);
    this.#slots.set(job, [...(this.#slots.get(job) ?? []), { kind, key }]);
  }

  count(kind: SlotKind, key: string): number {
    return this.#holders.get(nameOf(kind, key))?.size ?? 0;
  }

  holders(kind: SlotKind, key: string): readonly JobId[] {
    return [...(this.#holders.get(nameOf(kind, key)) ?? [])];
  }

  holds(kind: SlotKind, key: string, job: JobId): boolean {
    return this.#holders.get(nameOf(kind, key))?.has(job) ?? false;
  }

  /** All that the job holds, but for its serial slot, which it keeps until it is finished. */
  free(job: JobId, finished: boolean): readonly Slot[] {
    const slots = this.#slots.get(job) ?? [];
    const freed = slots.filter(({ kind }) => finished || kind !== "serial");
    for (const { kind, key } of freed) {
      const holders = this.#holders.get(nameOf(kind, key));
      holders?.delete(job);
      if (holders?.size === 0) this.#holders.delete(nameOf(kind, key));
    }
    if (freed.length === slots.length) this.#slots.delete(job);
    else
      this.#slots.set(
        job,
        slots.filter((slot) => !freed.includes(slot)),
      );
    return freed;
  }
}

function nameOf(kind: SlotKind, key: string): string {
  return `${kind}\u0001${key}`;
}

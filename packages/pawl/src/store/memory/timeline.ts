import type { JobId } from "../../core/id.js";
import { compareText } from "../../core/lane.js";

interface Entry {
  readonly id: JobId;
  readonly at: number;
}

/** Jobs by a time, earliest first, then by id: a binary heap that knows where each job is, so that it can leave early. */
export class Timeline {
  readonly #heap: Entry[] = [];
  readonly #position = new Map<JobId, number>();

  first(): Entry | undefined {
    return this.#heap[0];
  }

  add(id: JobId, at: number): void {
    this.remove(id);
    this.#heap.push({ id, at });
    this.#up(this.#heap.length - 1);
  }

  remove(id: JobId): void {
    const hole = this.#position.get(id);
    if (hole === undefined) return;
    this.#position.delete(id);
    const last = this.#heap.pop() as Entry;
    if (hole === this.#heap.length) return;
    this.#heap[hole] = last;
    this.#up(hole);
    this.#down(this.#position.get(last.id) as number);
  }

  #up(from: number): void {
    const entry = this.#heap[from] as Entry;
    let at = from;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (compare(this.#heap[parent] as Entry, entry) <= 0) break;
      this.#place(at, this.#heap[parent] as Entry);
      at = parent;
    }
    this.#place(at, entry);
  }

  #down(from: number): void {
    const entry = this.#heap[from] as Entry;
    let at = from;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= this.#heap.length) break;
      if (child + 1 < this.#heap.length && compare(this.#heap[child + 1] as Entry, this.#heap[child] as Entry) < 0) child++;
      if (compare(entry, this.#heap[child] as Entry) <= 0) break;
      this.#place(at, this.#heap[child] as Entry);
      at = child;
    }
    this.#place(at, entry);
  }

  #place(at: number, entry: Entry): void {
    this.#heap[at] = entry;
    this.#position.set(entry.id, at);
  }
}

function compare(a: Entry, b: Entry): number {
  return a.at - b.at || compareText(a.id, b.id);
}

import type { JobId } from "../../../core/jobs/id.js";
import { compareText } from "../../../core/jobs/lane.js";

interface HeapEntry {
  readonly id: JobId;
  readonly at: number;
}

/** Jobs by a time, earliest first, then by id: a binary heap that knows where each job is, so that it can leave early. */
export class TimeHeap {
  readonly #heap: HeapEntry[] = [];
  readonly #position = new Map<JobId, number>();

  first(): HeapEntry | undefined {
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
    const last = this.#heap.pop() as HeapEntry;
    if (hole === this.#heap.length) return;
    this.#heap[hole] = last;
    this.#up(hole);
    this.#down(this.#position.get(last.id) as number);
  }

  #up(from: number): void {
    const entry = this.#heap[from] as HeapEntry;
    let at = from;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (compare(this.#heap[parent] as HeapEntry, entry) <= 0) break;
      this.#set(at, this.#heap[parent] as HeapEntry);
      at = parent;
    }
    this.#set(at, entry);
  }

  #down(from: number): void {
    const entry = this.#heap[from] as HeapEntry;
    let at = from;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= this.#heap.length) break;
      if (child + 1 < this.#heap.length && compare(this.#heap[child + 1] as HeapEntry, this.#heap[child] as HeapEntry) < 0) child++;
      if (compare(entry, this.#heap[child] as HeapEntry) <= 0) break;
      this.#set(at, this.#heap[child] as HeapEntry);
      at = child;
    }
    this.#set(at, entry);
  }

  #set(at: number, entry: HeapEntry): void {
    this.#heap[at] = entry;
    this.#position.set(entry.id, at);
  }
}

function compare(a: HeapEntry, b: HeapEntry): number {
  return a.at - b.at || compareText(a.id, b.id);
}

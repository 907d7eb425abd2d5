import type { JobId } from "../../../core/jobs/id.js";

interface FifoNode {
  readonly id: JobId;
  before: FifoNode | undefined;
  after: FifoNode | undefined;
}

/** Waiting jobs, first in, first out, and out of the middle for cancel and pause. All O(1). */
export class JobFifo {
  readonly #nodes = new Map<JobId, FifoNode>();
  #first: FifoNode | undefined;
  #last: FifoNode | undefined;

  get size(): number {
    return this.#nodes.size;
  }

  add(id: JobId): void {
    const node: FifoNode = { id, before: this.#last, after: undefined };
    if (this.#last === undefined) this.#first = node;
    else this.#last.after = node;
    this.#last = node;
    this.#nodes.set(id, node);
  }

  remove(id: JobId): void {
    const node = this.#nodes.get(id);
    if (node === undefined) return;
    this.#nodes.delete(id);
    if (node.before === undefined) this.#first = node.after;
    else node.before.after = node.after;
    if (node.after === undefined) this.#last = node.before;
    else node.after.before = node.before;
  }

  /** The ids in order. The one just given may be removed while iterating. */
  *[Symbol.iterator](): Generator<JobId> {
    for (let node = this.#first; node !== undefined; ) {
      const next: FifoNode | undefined = node.after;
      yield node.id;
      node = next;
    }
  }
}

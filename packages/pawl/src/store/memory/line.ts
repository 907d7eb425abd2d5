import type { JobId } from "../../core/id.js";

interface Node {
  readonly id: JobId;
  before: Node | undefined;
  after: Node | undefined;
}

/** Jobs waiting in a line: in at the back, out at the front, and out of the middle for cancel and pause. All O(1). */
export class Line {
  readonly #nodes = new Map<JobId, Node>();
  #first: Node | undefined;
  #last: Node | undefined;

  get size(): number {
    return this.#nodes.size;
  }

  add(id: JobId): void {
    const node: Node = { id, before: this.#last, after: undefined };
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
      const next: Node | undefined = node.after;
      yield node.id;
      node = next;
    }
  }
}

/** Items that come in turn. Each knows its place, so that removing one is cheap: the last one takes that place. */
export class RoundRobin<T extends { index: number }> {
  readonly #items: T[] = [];
  #start = 0;

  get size(): number {
    return this.#items.length;
  }

  /** Its turn is next. */
  add(item: T): void {
    const at = this.#items.length === 0 ? 0 : this.#start % this.#items.length;
    const displaced = this.#items[at];
    this.#put(item, at);
    if (displaced !== undefined) this.#put(displaced, this.#items.length);
  }

  remove(item: T): void {
    const last = this.#items.pop() as T;
    if (last !== item) this.#put(last, item.index);
  }

  /** The item that comes after so many others. */
  at(offset: number): T {
    return this.#items[(this.#start + offset) % this.#items.length] as T;
  }

  /** It has had its turn: the one behind it is next. */
  advancePast(item: T): void {
    this.#start = item.index + 1;
  }

  /** Starts at random, as `random` says (0 to 1). */
  startAt(random: number): void {
    this.#start = Math.floor(random * this.#items.length);
  }

  #put(item: T, at: number): void {
    this.#items[at] = item;
    item.index = at;
  }
}

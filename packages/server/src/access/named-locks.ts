/** One at a time for each name, in the order they came. */
export class NamedLocks {
  readonly #last = new Map<string, Promise<unknown>>();

  async withLock<T>(name: string, work: () => Promise<T>): Promise<T> {
    const mine = (this.#last.get(name) ?? Promise.resolve()).then(work, work);
    this.#last.set(name, mine);
    try {
      return await mine;
    } finally {
      if (this.#last.get(name) === mine) this.#last.delete(name);
    }
  }
}

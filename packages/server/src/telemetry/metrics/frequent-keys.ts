interface CountedKey {
  key: string;
  count: number;
}

/**
 * Which keys come most often, in memory that does not grow with them (Space-Saving): whoever is new takes the place, and
 * the count, of who came least. A key that makes up more than one part in `size` of what came is always among them.
 */
export class FrequentKeys {
  readonly #entries: CountedKey[] = [];
  readonly #byKey = new Map<string, CountedKey>();

  constructor(readonly size: number) {}

  note(key: string): void {
    const existing = this.#byKey.get(key);
    if (existing !== undefined) existing.count++;
    else this.#add(key);
  }

  /** Those that came most often first. */
  top(count: number): readonly string[] {
    return [...this.#entries]
      .sort((a, b) => b.count - a.count || (a.key < b.key ? -1 : 1))
      .slice(0, count)
      .map(({ key }) => key);
  }

  /** Lets what was count for less than what is. */
  age(): void {
    for (const entry of this.#entries) entry.count /= 2;
  }

  #add(key: string): void {
    if (this.#entries.length < this.size) {
      const entry = { key, count: 1 };
      this.#entries.push(entry);
      this.#byKey.set(key, entry);
      return;
    }
    let least = this.#entries[0] as CountedKey;
    for (const entry of this.#entries) if (entry.count < least.count) least = entry;
    this.#byKey.delete(least.key);
    least.key = key;
    least.count++;
    this.#byKey.set(key, least);
  }
}

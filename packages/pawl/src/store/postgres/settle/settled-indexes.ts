/** Indexes of a lease that are settled, as Postgres writes them: `{[1,5),[7,8)}`. */
export class SettledIndexes {
  readonly #ranges: readonly (readonly [from: number, to: number])[];

  constructor(text: string) {
    this.#ranges = [...text.matchAll(/\[(\d+),(\d+)\)/g)].map(([, from, to]) => [Number(from), Number(to)]);
  }

  has(index: number): boolean {
    return this.#ranges.some(([from, to]) => index >= from && index < to);
  }
}

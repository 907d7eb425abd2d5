import type { CheckRun } from "./check-run.js";

/** Which properties and items of one value were looked at by schemas that it passes: the others are for `unevaluated…`. */
export class Evaluated {
  allNames = false;
  allItems = false;
  /** so many items from the first on */
  items = 0;
  readonly names = new Set<string>();
  readonly indexes = new Set<number>();

  hasName(name: string): boolean {
    return this.allNames || this.names.has(name);
  }

  hasItem(index: number): boolean {
    return this.allItems || index < this.items || this.indexes.has(index);
  }

  add(other: Evaluated, run: CheckRun): void {
    run.spend(1 + other.names.size + other.indexes.size);
    run.keep(other.names.size + other.indexes.size);
    this.allNames ||= other.allNames;
    this.allItems ||= other.allItems;
    this.items = Math.max(this.items, other.items);
    for (const name of other.names) this.names.add(name);
    for (const index of other.indexes) this.indexes.add(index);
  }
}

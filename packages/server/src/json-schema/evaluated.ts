import type { Run } from "./run.js";

/** Which properties and items of one value were looked at by schemas that it passes: the others are for `unevaluated…`. */
export class Evaluated {
  allNames = false;
  allItems = false;
  /** so many items from the first on */
  items = 0;
  readonly names = new Set<string>();
  readonly places = new Set<number>();

  hasName(name: string): boolean {
    return this.allNames || this.names.has(name);
  }

  hasItem(place: number): boolean {
    return this.allItems || place < this.items || this.places.has(place);
  }

  add(other: Evaluated, run: Run): void {
    run.spend(1 + other.names.size + other.places.size);
    run.keep(other.names.size + other.places.size);
    this.allNames ||= other.allNames;
    this.allItems ||= other.allItems;
    this.items = Math.max(this.items, other.items);
    for (const name of other.names) this.names.add(name);
    for (const place of other.places) this.places.add(place);
  }
}

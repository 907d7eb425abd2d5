/** Where in a value something is; the value itself is nowhere in it. */
export type ValuePath = { readonly within: ValuePath; readonly part: string } | undefined;

export interface Issue {
  readonly message: string;
  readonly path: readonly string[];
}

const MAX_ISSUES = 5;
/** An input may have names of megabytes; what is said of it is read by people. */
const MAX_PART_CHARACTERS = 100;

/** What is wrong with a value: the first few things. */
export class Issues {
  readonly list: Issue[] = [];

  get isFull(): boolean {
    return this.list.length >= MAX_ISSUES;
  }

  add(message: string, at: ValuePath): void {
    if (!this.isFull) this.list.push({ message, path: pathOf(at) });
  }
}

export function inside(within: ValuePath, part: string | number): ValuePath {
  return { within, part: String(part) };
}

function pathOf(place: ValuePath): readonly string[] {
  const path: string[] = [];
  for (let at = place; at !== undefined; at = at.within)
    path.push(at.part.length > MAX_PART_CHARACTERS ? `${at.part.slice(0, MAX_PART_CHARACTERS)}…` : at.part);
  return path.reverse();
}

/** Where in a value something is; the value itself is nowhere in it. */
export type Place = { readonly within: Place; readonly part: string } | undefined;

export interface Issue {
  readonly message: string;
  readonly path: readonly string[];
}

const MOST = 5;
/** An input may have names of megabytes; what is said of it is read by people. */
const LONGEST_PART = 100;

/** What is wrong with a value: the first few things. */
export class Issues {
  readonly list: Issue[] = [];

  get isFull(): boolean {
    return this.list.length >= MOST;
  }

  add(message: string, at: Place): void {
    if (!this.isFull) this.list.push({ message, path: pathOf(at) });
  }
}

export function inside(within: Place, part: string | number): Place {
  return { within, part: String(part) };
}

function pathOf(place: Place): readonly string[] {
  const path: string[] = [];
  for (let at = place; at !== undefined; at = at.within) path.push(at.part.length > LONGEST_PART ? `${at.part.slice(0, LONGEST_PART)}…` : at.part);
  return path.reverse();
}

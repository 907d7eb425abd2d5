import { invalid } from "./check.js";

type Given = string | Uint8Array;

/** The pepper, or a function that answers it as it is now. */
export type PepperSource = Given | (() => Given | Promise<Given>);

/** bytes */
export const SHORTEST_PEPPER = 16;

/** What is mixed into digests of secrets. Read for every key, so that it may be changed while this runs. */
export class Pepper {
  private constructor(
    private readonly source: () => Given | Promise<Given>,
    private last: Given,
  ) {}

  /** Reads it once: what is no pepper is refused now, and not with the first key. */
  static async of(given: PepperSource): Promise<Pepper> {
    const source = typeof given === "function" ? given : () => given;
    const first: unknown = await source();
    if (!isPepper(first)) throw invalid("keys.pepper", `it must be ${SHORTEST_PEPPER} bytes or more`);
    return new Pepper(source, first);
  }

  /** A file that is being written may be short for a moment, and no caller is to blame for it: then the last one holds. */
  async read(): Promise<Given> {
    const now: unknown = await this.source();
    if (isPepper(now)) this.last = now;
    return this.last;
  }
}

function isPepper(given: unknown): given is Given {
  return (typeof given === "string" || given instanceof Uint8Array) && Buffer.byteLength(given) >= SHORTEST_PEPPER;
}

import { hmacSha256 } from "../../runtime/io/digest.js";
import { invalid } from "../check.js";

export type PepperValue = string | Uint8Array;

/** The pepper, or a function that answers it as it is now. */
export type PepperSource = PepperValue | (() => PepperValue | Promise<PepperValue>);

/** bytes */
export const MIN_PEPPER_BYTES = 16;

const PEPPER_NAME_LENGTH = 16;

/** What is mixed into digests of secrets. Read for every key, so that it may be changed while this runs. */
export class Pepper {
  private constructor(
    private readonly source: () => PepperValue | Promise<PepperValue>,
    private last: PepperValue,
  ) {}

  /** Reads it once: what is no pepper is refused now, and not with the first key. */
  static async of(value: PepperSource): Promise<Pepper> {
    const source = typeof value === "function" ? value : () => value;
    const first: unknown = await source();
    if (!isPepper(first)) throw invalid("apiKeys.pepper", `it must be ${MIN_PEPPER_BYTES} bytes or more`);
    return new Pepper(source, first);
  }

  /** A file that is being written may be short for a moment, and no caller is to blame for it: then the last one holds. */
  async read(): Promise<PepperValue> {
    const now: unknown = await this.source();
    if (isPepper(now)) this.last = now;
    return this.last;
  }
}

/** Tells which pepper it is, and nothing of it: stored with what was made with it, so that another one is told from a wrong secret. */
export function nameOfPepper(pepper: PepperValue): string {
  return hmacSha256(pepper, "pawl: the name of this pepper").slice(0, PEPPER_NAME_LENGTH);
}

function isPepper(value: unknown): value is PepperValue {
  return (typeof value === "string" || value instanceof Uint8Array) && Buffer.byteLength(value) >= MIN_PEPPER_BYTES;
}

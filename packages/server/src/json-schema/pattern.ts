import { RE2JS } from "re2js";
import type { CheckRun } from "./check-run.js";

/** A pattern, whose cost is known before it is tried: it grows with the text times the size of the pattern, never faster. */
export class Pattern {
  readonly #compiled: RE2JS;
  readonly size: number;

  /** Throws for what RE2 does not know: look-around and back references, which is what needs a search without end. */
  constructor(readonly source: string) {
    this.#compiled = RE2JS.compile(source, 0);
    this.size = this.#compiled.programSize();
  }

  matches(text: string, run: CheckRun): boolean {
    run.spend(10 + Math.ceil(((text.length + 1) * this.size) / 4));
    return this.#compiled.matcher(text).find();
  }
}

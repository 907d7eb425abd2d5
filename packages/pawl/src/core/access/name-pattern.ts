import { invalid, show } from "../values/option.js";

/**
 * Patterns of names: `*` stands for any run of characters, everything else for itself. No regular expressions: a
 * pattern is matched in at most its length times that of the name.
 */
export const EVERYTHING: readonly string[] = ["*"];

const LONGEST = 128;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is being refused
const REFUSED = /[\u0000-\u001f\u007f]/;

export function checkPattern(option: string, value: unknown): string {
  if (typeof value === "string" && value.trim() !== "" && value === value.trim() && value.length <= LONGEST && !REFUSED.test(value)) return value;
  throw invalid(option, `${show(value)} is not a pattern of 1 to ${LONGEST} characters`);
}

export function isEverything(pattern: string): boolean {
  return /^\*+$/.test(pattern);
}

/** Goes back to the last `*` only: an earlier one never has to take more than it did. */
export function matches(pattern: string, name: string): boolean {
  let p = 0;
  let n = 0;
  let star = -1;
  let resume = 0;
  while (n < name.length) {
    if (pattern[p] === "*") {
      star = p++;
      resume = n;
    } else if (p < pattern.length && pattern[p] === name[n]) {
      p++;
      n++;
    } else if (star >= 0) {
      p = star + 1;
      n = ++resume;
    } else return false;
  }
  while (pattern[p] === "*") p++;
  return p === pattern.length;
}

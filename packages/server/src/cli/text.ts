export { duration, fromNow, plural } from "../text/amounts.js";
export { clean } from "../text/clean.js";

export function timestamp(date: Date): string {
  return date
    .toISOString()
    .replace("T", " ")
    .replace(/\.000Z$/, "Z");
}

/** A value as people read it: in one line if it is short. */
export function valueLines(value: unknown): readonly string[] {
  if (value === undefined) return [];
  const short = JSON.stringify(value) ?? String(value);
  return short.length <= 100 ? [short] : JSON.stringify(value, null, 2).split("\n");
}

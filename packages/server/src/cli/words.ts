export { clean } from "../live/clean.js";
export { plural } from "../live/entry.js";

/** "in 5 min", "3 s ago" */
export function fromNow(date: Date, now = new Date()): string {
  const ms = date.getTime() - now.getTime();
  return ms > 0 ? `in ${span(ms)}` : `${span(-ms)} ago`;
}

/** ms in the unit people would use */
export function span(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  if (ms < 7_200_000) return `${Math.round(ms / 60_000)} min`;
  if (ms < 172_800_000) return `${Math.round(ms / 3_600_000)} h`;
  return `${Math.round(ms / 86_400_000)} d`;
}

export function stamp(date: Date): string {
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

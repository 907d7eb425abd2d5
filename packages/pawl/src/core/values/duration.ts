import { pawlError } from "./error.js";

/** Milliseconds, or a text such as "250ms", "30s", "5m", "24h", "7d", "1h30m". */
export type Duration = number | string;

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };
const WHOLE = /^(?:\d+(?:\.\d+)?(?:ms|s|m|h|d|w))+$/;
const PART = /(\d+(?:\.\d+)?)(ms|s|m|h|d|w)/g;

/** A century: anything longer is a mistake, and keeps every instant inside what dates can hold. */
const LONGEST_MS = 100 * 365.25 * 86_400_000;

export function milliseconds(duration: Duration): number {
  const ms = typeof duration === "number" ? duration : typeof duration === "string" ? parse(duration) : Number.NaN;
  if (!Number.isFinite(ms) || ms < 0 || ms > LONGEST_MS) throw pawlError("duration_invalid", { what: "the value", value: printable(duration) });
  return Math.round(ms);
}

/** Callers without types pass anything. */
function printable(value: unknown): string {
  return typeof value === "string" || typeof value === "number" ? String(value) : `(${value === null ? "null" : typeof value})`;
}

function parse(text: string): number {
  if (text.length > 64 || !WHOLE.test(text)) return Number.NaN;
  let total = 0;
  for (const [, amount, unit] of text.matchAll(PART)) total += Number(amount) * (UNITS[unit as string] as number);
  return total;
}

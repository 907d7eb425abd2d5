import { milliseconds } from "./duration.js";
import { isPawlError, type PawlError, pawlError } from "./error.js";

/** Checks of options, of whatever they are. Each answers with the value, or throws an error that names the option. */

export function checkObject(option: string, value: unknown): object {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  throw invalid(option, `${show(value)} is not an object`);
}

export function checkArray(option: string, value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw invalid(option, `${show(value)} is not an array`);
}

export function checkFunction(option: string, value: unknown): void {
  if (typeof value !== "function") throw invalid(option, `${show(value)} is not a function`);
}

export function checkBoolean(option: string, value: unknown): boolean {
  if (typeof value === "boolean") return value;
  throw invalid(option, `${show(value)} is neither true nor false`);
}

/** One that every store can hold: Postgres has no NUL, and half of a surrogate pair is no UTF-8. */
export function checkText(option: string, value: unknown): string {
  if (typeof value !== "string") throw invalid(option, `${show(value)} is not a text`);
  if (value.includes("\u0000") || !value.isWellFormed()) throw invalid(option, "it holds a NUL character or half of a surrogate pair");
  return value;
}

export function checkWhole(option: string, value: unknown, min: number, max: number): number {
  if (typeof value === "number" && Number.isInteger(value) && value >= min && value <= max) return value;
  throw invalid(option, `${show(value)} is not a whole number from ${min} to ${max}`);
}

export function checkOneOf<T extends string>(option: string, value: unknown, choices: readonly T[]): T {
  if (choices.includes(value as T)) return value as T;
  throw invalid(option, `${show(value)}${didYouMean(value, choices)} is none of ${choices.join(", ")}`);
}

/** in ms */
export function checkDuration(option: string, value: unknown): number {
  if (typeof value !== "number" && typeof value !== "string") throw notADuration(option, value);
  try {
    return milliseconds(value);
  } catch (error) {
    throw isPawlError(error, "duration_invalid") ? notADuration(option, value) : error;
  }
}

/** As `checkDuration`, where no time at all makes no sense. */
export function checkPeriod(option: string, value: unknown): number {
  const ms = checkDuration(option, value);
  if (ms === 0) throw invalid(option, "it must be longer than nothing");
  return ms;
}

/** It stands in the text of every statement, unquoted. */
export function checkSchemaName(option: string, value: unknown): void {
  if (typeof value !== "string" || !/^[a-z_][a-z0-9_]{0,62}$/.test(value))
    throw invalid(option, `${show(value)} is not a plain lower-case identifier`);
}

/** A misspelt option would silently do nothing: it is refused by name, and the one that was meant is named. */
export function checkKeys(given: object, allowed: ReadonlySet<string>, prefix = ""): void {
  for (const name of Object.keys(given)) {
    if (!allowed.has(name)) throw unknownOption(name, allowed, prefix);
  }
}

export function unknownOption(name: string, allowed: Iterable<string>, prefix = ""): PawlError {
  const names = [...allowed];
  return invalid(prefix + name, `there is no such option${didYouMean(name, names)}; there are ${names.join(", ")}`);
}

export function invalid(option: string, reason: string): PawlError {
  return pawlError("option_invalid", { option, reason });
}

function notADuration(option: string, value: unknown): PawlError {
  return pawlError("duration_invalid", { option, what: option, value: shortened(value) });
}

const LONGEST_SHOWN = 40;

/** What a caller gave, inside a sentence. */
export function show(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(shortened(value));
  if (value instanceof Date) return "an invalid Date";
  if (typeof value === "function") return "a function";
  return typeof value === "object" && value !== null ? (Array.isArray(value) ? "an array" : "an object") : String(value);
}

/** What a caller gave, as a detail of an error: a text as it is, since the error's own text puts it in quotes. */
export function shortened(value: unknown): string | number {
  if (typeof value === "string") return value.length > LONGEST_SHOWN ? `${value.slice(0, LONGEST_SHOWN)}…` : value;
  return typeof value === "number" ? value : show(value);
}

/** In words, inside a sentence: which of the choices that may have been. */
export function didYouMean(given: unknown, choices: readonly string[]): string {
  const near = typeof given === "string" ? nearest(given, choices) : undefined;
  return near === undefined ? "" : ` (did you mean ${near}?)`;
}

const LONGEST_WORD = 64;
/** A schema may have thousands of names, and comparing with each takes time. */
const MAX_CHOICES = 100;

/** The choice that fewest strokes lead to, if they are fewer than half of its letters: more would be another word. */
export function nearest(given: string, choices: readonly string[]): string | undefined {
  if (given.length > LONGEST_WORD) return undefined;
  let best: string | undefined;
  let fewest = Number.POSITIVE_INFINITY;
  for (const choice of choices.slice(0, MAX_CHOICES)) {
    if (choice.length > 2 * LONGEST_WORD) continue;
    const strokes = strokesBetween(given.toLowerCase(), choice.toLowerCase());
    if (strokes >= fewest || 2 * strokes >= Math.max(given.length, choice.length)) continue;
    best = choice;
    fewest = strokes;
  }
  return best;
}

/** Letters added, left out or mistaken (Levenshtein's distance), row by row. */
function strokesBetween(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const mistaken = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(mistaken, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[b.length] as number;
}

import { milliseconds } from "../core/duration.js";
import { isPawlError, type PawlError, pawlError } from "../core/error.js";
import type { Priority } from "../core/job.js";
import { checkRetry } from "../core/retry.js";
import type { PriorityName, TaskDefaults } from "../worker/task.js";

/** Checks of single options. Each answers with the value in its stored form, or throws an error that names the option. */

const PRIORITIES: Readonly<Record<PriorityName, Priority>> = { low: 2, normal: 5, high: 7, critical: 9 };

export function checkPriority(value: unknown): Priority {
  if (typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= 9) return value as Priority;
  if (typeof value === "string" && Object.hasOwn(PRIORITIES, value)) return PRIORITIES[value as PriorityName];
  throw invalid("priority", `${show(value)} is neither 0 to 9 nor low, normal, high or critical`);
}

export function checkDuration(option: string, value: unknown): number {
  if (typeof value !== "number" && typeof value !== "string") throw notADuration(option, show(value));
  try {
    return milliseconds(value);
  } catch (error) {
    if (isPawlError(error, "duration_invalid")) throw notADuration(option, show(value));
    throw error;
  }
}

/** As `checkDuration`, where no time at all makes no sense. */
export function checkPeriod(option: string, value: unknown): number {
  const ms = checkDuration(option, value);
  if (ms === 0) throw invalid(option, "it must be longer than nothing");
  return ms;
}

/** Later than any job is meant for: a mistake in units, most likely. */
const LATEST = Date.UTC(2126, 0, 1);

export function checkInstant(option: string, value: unknown): number {
  const ms = value instanceof Date ? value.getTime() : typeof value === "string" ? Date.parse(value) : value;
  if (typeof ms !== "number" || Number.isNaN(ms)) throw invalid(option, `${show(value)} is neither a date, nor ms since 1970, nor an ISO 8601 text`);
  if (ms > LATEST) throw invalid(option, `it is after the year ${new Date(LATEST).getUTCFullYear() - 1}`);
  return Math.max(0, Math.floor(ms));
}

export function checkWhole(option: string, value: unknown, min: number, max: number): number {
  if (typeof value === "number" && Number.isInteger(value) && value >= min && value <= max) return value;
  throw invalid(option, `${show(value)} is not a whole number from ${min} to ${max}`);
}

export function checkOneOf<T extends string>(option: string, value: unknown, choices: readonly T[]): T {
  if (choices.includes(value as T)) return value as T;
  throw invalid(option, `${show(value)} is none of ${choices.join(", ")}`);
}

/** A misspelt option would silently do nothing: it is refused by name. */
export function checkKeys(given: object, known: ReadonlySet<string>, prefix = ""): void {
  for (const name of Object.keys(given)) {
    if (!known.has(name)) throw unknownOption(prefix + name, known);
  }
}

export function unknownOption(name: string, known: Iterable<string>): PawlError {
  return invalid(name, `there is no such option; there are ${[...known].join(", ")}`);
}

export function checkObject(what: string, value: unknown): object {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  throw invalid(what, `${show(value)} is not an object`);
}

export const DEFAULT_KEYS = ["priority", "retry", "timeout", "deadline", "expire", "crashLimit"] as const satisfies readonly (keyof TaskDefaults)[];

/** What tasks and queues share. Checked where it is written, so that a wrong default never meets a job. */
export function checkDefaults(prefix: string, defaults: TaskDefaults): void {
  const { priority, retry, timeout, deadline, expire, crashLimit } = defaults;
  if (priority !== undefined) checkPriority(priority);
  if (retry !== undefined) checkRetry(retry);
  if (timeout !== undefined) checkPeriod(`${prefix}timeout`, timeout);
  if (deadline !== undefined) checkPeriod(`${prefix}deadline`, deadline);
  if (expire !== undefined) checkPeriod(`${prefix}expire`, expire);
  if (crashLimit !== undefined) checkCrashLimit(crashLimit);
}

export function checkCrashLimit(value: unknown): number {
  return checkWhole("crashLimit", value, 1, 1000);
}

export function invalid(option: string, reason: string): PawlError {
  return pawlError("option_invalid", { option, reason });
}

function notADuration(option: string, value: string): PawlError {
  return pawlError("duration_invalid", { option, value: `${option} ${value}` });
}

export function show(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value);
  if (value instanceof Date) return "an invalid Date";
  return typeof value === "object" && value !== null ? (Array.isArray(value) ? "an array" : "an object") : String(value);
}

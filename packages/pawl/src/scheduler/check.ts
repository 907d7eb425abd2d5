import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { Priority, Spread } from "../core/jobs/job.js";
import { checkRetry, publishedRetry } from "../core/jobs/retry.js";
import type { JobDefaults, PriorityName, TaskOptions } from "../core/jobs/task.js";
import type { StoredDefaults } from "../core/jobs/task-record.js";
import { checkNeeds } from "../core/limits/capacity-check.js";
import { checkLimits, publishedLimits } from "../core/limits/limit-options.js";
import type { PawlError } from "../core/values/error.js";
import { checkName } from "../core/values/name.js";
import { checkDuration, checkPeriod, checkWhole, invalid, show } from "../core/values/option.js";

/** Checks of options that jobs, tasks and queues share. Each answers with the value in its stored form. */

export * from "../core/values/option.js";

const PRIORITIES: Readonly<Record<PriorityName, Priority>> = { low: 2, normal: 5, high: 7, critical: 9 };

export function checkPriority(value: unknown): Priority {
  if (typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= 9) return value as Priority;
  if (typeof value === "string" && Object.hasOwn(PRIORITIES, value)) return PRIORITIES[value as PriorityName];
  throw invalid("priority", `${show(value)} is neither 0 to 9 nor low, normal, high or critical`);
}

/** Later than any job is meant for: a mistake in units, most likely. */
const MAX_INSTANT_MS = Date.UTC(2126, 0, 1);

/** ISO 8601. Without the offset at its end a text would mean another instant in every time zone. */
const INSTANT_TEXT = /^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?<offset>Z|[+-]\d\d:?\d\d)?)?$/i;

export function checkInstant(option: string, value: unknown): number {
  const text = typeof value === "string" ? INSTANT_TEXT.exec(value) : undefined;
  if (text != null && text.groups?.offset === undefined && !Number.isNaN(Date.parse(text[0])))
    throw invalid(option, `${show(value)} has no offset: write "2026-11-15T12:00:00Z" or "2026-11-15T13:00:00+01:00"`);
  if (text === null) throw notAnInstant(option, value);
  const ms = value instanceof Date ? value.getTime() : typeof value === "string" ? Date.parse(value) : value;
  if (typeof ms !== "number" || Number.isNaN(ms)) throw notAnInstant(option, value);
  if (ms > MAX_INSTANT_MS) throw invalid(option, `it is after the year ${new Date(MAX_INSTANT_MS).getUTCFullYear() - 1}`);
  return Math.max(0, Math.floor(ms));
}

function notAnInstant(option: string, value: unknown): PawlError {
  return invalid(option, `${show(value)} is neither a Date, nor ms since 1970, nor an ISO 8601 text such as "2026-11-15T12:00:00Z"`);
}

export const DEFAULT_KEYS = [
  "priority",
  "retry",
  "timeout",
  "finishWithin",
  "startWithin",
  "maxCrashes",
  "spread",
] as const satisfies readonly (keyof JobDefaults)[];

/** What tasks and queues share. Checked where it is written, so that a wrong default never meets a job. */
export function checkDefaults(prefix: string, defaults: JobDefaults): void {
  const { priority, retry, timeout, finishWithin, startWithin, maxCrashes, spread } = defaults;
  if (priority !== undefined) checkPriority(priority);
  if (retry !== undefined) checkRetry(retry);
  if (timeout !== undefined) checkPeriod(`${prefix}timeout`, timeout);
  if (finishWithin !== undefined) checkPeriod(`${prefix}finishWithin`, finishWithin);
  if (startWithin !== undefined) checkPeriod(`${prefix}startWithin`, startWithin);
  if (maxCrashes !== undefined) checkMaxCrashes(maxCrashes);
  if (spread !== undefined) checkSpread(spread, prefix);
}

/** Longer windows are a mistake in units: a herd that may take days is no herd. */
const MAX_SPREAD_MS = 86_400_000;

/** in ms; 0 is none, against that of a task or queue */
export function checkSpread(value: unknown, prefix = ""): Spread {
  const option = `${prefix}spread`;
  if (!Array.isArray(value)) return checkSpreadPart(option, value);
  if (value.length !== 2) throw invalid(option, `${value.length} durations are not a pair: write [min, max]`);
  const [min, max] = [checkSpreadPart(`${option}[0]`, value[0]), checkSpreadPart(`${option}[1]`, value[1])];
  if (max < min) throw invalid(option, "its end is before its beginning: write [min, max]");
  return min === 0 ? max : [min, max];
}

function checkSpreadPart(option: string, value: unknown): number {
  const part = checkDuration(option, value);
  if (part > MAX_SPREAD_MS) throw invalid(option, "it is longer than a day");
  return part;
}

export function checkMaxCrashes(value: unknown): number {
  return checkWhole("maxCrashes", value, 1, 1000);
}

/** What of a task's options must be known where its code is not, in stored form. */
export function storedDefaults(
  {
    queue,
    priority,
    finishWithin,
    startWithin,
    maxCrashes,
    spread,
    atMostOnce,
    needs,
    limits,
    retry,
    timeout,
    breaker,
  }: TaskOptions<StandardSchemaV1 | undefined, never>,
  task: string,
): StoredDefaults {
  const published = retry === undefined ? undefined : publishedRetry(retry);
  return {
    ...(queue === undefined ? {} : { queue: checkName("queue", queue) }),
    ...(priority === undefined ? {} : { priority: checkPriority(priority) }),
    ...(finishWithin === undefined ? {} : { finishWithin: checkPeriod("finishWithin", finishWithin) }),
    ...(startWithin === undefined ? {} : { startWithin: checkPeriod("startWithin", startWithin) }),
    ...(maxCrashes === undefined ? {} : { maxCrashes: checkMaxCrashes(maxCrashes) }),
    ...(spread === undefined ? {} : { spread: checkSpread(spread) }),
    ...(atMostOnce === true ? { atMostOnce } : {}),
    ...(limits === undefined ? {} : { limits: publishedLimits(checkLimits(task, limits)) }),
    ...(needs === undefined ? {} : { needs: checkNeeds("needs", needs) }),
    ...(published === undefined ? {} : { retry: published }),
    ...(timeout === undefined ? {} : { timeout: checkPeriod("timeout", timeout) }),
    ...(breaker === undefined ? {} : { breaker }),
  };
}

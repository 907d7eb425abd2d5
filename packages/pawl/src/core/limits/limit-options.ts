import { failureOf } from "../jobs/failure.js";
import { BOUNDS } from "../values/bounds.js";
import { pawlError } from "../values/error.js";
import { checkName } from "../values/name.js";
import { checkArray, checkKeys, checkObject, checkWhole, invalid, show } from "../values/option.js";
import type { JobLimit, LimitRule } from "./limit-rule.js";
import { checkRate, type RateOptions } from "./token-bucket.js";

/** What jobs are counted together by. None at all: the job is not limited. */
export type LimitKeyValue = string | number | null | undefined;

/** A limit on the jobs of one key, over all workers. `In`: what callers pass as input. */
export interface Limit<In = unknown> {
  /** Tasks of one tenant that name the same limit share it; absent: the task's own name. */
  readonly name?: string;
  /** a function of the input, or the path of a field in it, such as "account" or "customer.id" */
  readonly key: string | ((input: In) => LimitKeyValue);
  /** jobs of a key that are ready or running at a time */
  readonly concurrency?: number;
  /** one job of a key at a time and in order; the key is kept through retries */
  readonly serial?: boolean;
  /** jobs of a key that are let in per time: `"100/5m"`, or with a burst `{ limit, per, burst }` */
  readonly rate?: string | RateOptions;
  /** tokens of the rate that a job takes, or the path of a field that says so; absent: 1 */
  readonly cost?: number | string | ((input: In) => number);
}

/** Only the task's code can compute it: what a published limit says in place of the path of its key or cost. */
export const BY_CODE = "";

/** A limit with its rule checked. */
export interface CheckedLimit extends Limit<never> {
  readonly name: string;
  readonly rule: LimitRule;
}

const LIMIT_KEYS: ReadonlySet<string> = new Set(["name", "key", "concurrency", "serial", "rate", "cost"] satisfies readonly (keyof Limit)[]);
const MAX_CONCURRENCY = 1_000_000;

/** What is wrong with a task's limits is found where they are written. */
export function checkLimits(task: string, value: unknown): readonly CheckedLimit[] {
  const option = `${task}.limits`;
  const limits = checkArray(option, value).map((given, index) => checkLimit(task, `${option}[${index}]`, given));
  if (limits.length > BOUNDS.limits) throw invalid(option, `${limits.length} are more than ${BOUNDS.limits}`);
  const names = limits.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw invalid(option, `two are called ${show(twice)}: give each a name of its own`);
  if (limits.filter(({ rule }) => rule.serial === true).length > 1)
    throw invalid(option, "two are serial: the order of one would break that of the other");
  return limits;
}

function checkLimit(task: string, option: string, value: unknown): CheckedLimit {
  const given = checkObject(option, value) as Limit<never>;
  checkKeys(given, LIMIT_KEYS, `${option}.`);
  const { key, cost } = given;
  if (typeof key !== "function" && typeof key !== "string")
    throw invalid(`${option}.key`, `${show(key)} is neither a function nor the path of a field`);
  const rule = ruleOf(option, given);
  if (cost !== undefined) checkCostOption(option, cost, rule);
  return { ...given, name: given.name === undefined ? task : checkName("limit", given.name), rule };
}

function ruleOf(option: string, { concurrency, serial = false, rate }: Limit<never>): LimitRule {
  if (typeof serial !== "boolean") throw invalid(`${option}.serial`, `${show(serial)} is neither true nor false`);
  if (serial && concurrency !== undefined) throw invalid(option, "serial is one at a time, so concurrency says nothing: choose one");
  if (!serial && concurrency === undefined && rate === undefined) throw invalid(option, "it limits nothing: give concurrency, rate or serial");
  return {
    ...(concurrency === undefined ? {} : { concurrency: checkWhole(`${option}.concurrency`, concurrency, 1, MAX_CONCURRENCY) }),
    ...(serial ? { serial } : {}),
    ...(rate === undefined ? {} : { rate: checkRate(`${option}.rate`, rate) }),
  };
}

function checkCostOption(option: string, cost: unknown, { rate }: LimitRule): void {
  if (rate === undefined) throw invalid(`${option}.cost`, "it says nothing without rate");
  if (typeof cost === "function" || typeof cost === "string") return;
  const reason = wrongCost(cost, rate.burst);
  if (reason !== undefined) throw invalid(`${option}.cost`, reason);
}

/** The limits one job is under; undefined if none. `own`: keys that the caller gave in place of computed ones. */
export function limitsOf(
  task: string,
  limits: readonly CheckedLimit[],
  input: unknown,
  own: Readonly<Record<string, LimitKeyValue>> = {},
): readonly JobLimit[] | undefined {
  const unknown = Object.keys(own).find((name) => limits.every((limit) => limit.name !== name));
  if (unknown !== undefined)
    throw invalid("limitKeys", `${task} has no limit ${show(unknown)}; it has ${limits.map(({ name }) => name).join(", ") || "none"}`);
  const found = limits.flatMap((limit): readonly JobLimit[] => {
    const key = keyOf(task, limit, input, own);
    if (key === undefined) return [];
    const cost = costOf(task, limit, input);
    return [{ limit: limit.name, key, rule: limit.rule, ...(cost === 1 ? {} : { cost }) }];
  });
  return found.length === 0 ? undefined : found;
}

function keyOf(task: string, { name, key }: CheckedLimit, input: unknown, own: Readonly<Record<string, LimitKeyValue>>): string | undefined {
  const given = Object.hasOwn(own, name);
  if (!given && key === BY_CODE) throw pawlError("limit_key_missing", { task, limit: name });
  const refuse = (reason: string, cause?: unknown) => pawlError("limit_key_invalid", { task, limit: name, reason }, cause);
  let value: unknown;
  try {
    value = given ? own[name] : computed(key, input);
  } catch (error) {
    throw refuse(threw(error), error);
  }
  if (value === undefined || value === null) return undefined;
  if (typeof value === "number" && Number.isFinite(value)) return String(value);
  if (typeof value !== "string") throw refuse(`${show(value)} is neither a text nor a number`);
  try {
    return checkName("limit key", value);
  } catch (error) {
    throw refuse(`${show(value)} is not a valid name`, error);
  }
}

function threw(error: unknown): string {
  return `its function threw "${failureOf(error).message}"`;
}

function costOf(task: string, { name, cost, rule }: CheckedLimit, input: unknown): number {
  if (cost === undefined || rule.rate === undefined) return 1;
  if (cost === BY_CODE) return 1;
  const refuse = (reason: string, cause?: unknown) => pawlError("limit_cost_invalid", { task, limit: name, reason }, cause);
  let value: unknown;
  try {
    value = typeof cost === "number" ? cost : computed(cost, input);
  } catch (error) {
    throw refuse(threw(error), error);
  }
  const reason = wrongCost(value, rule.rate.burst);
  if (reason !== undefined) throw refuse(reason);
  return value as number;
}

function wrongCost(cost: unknown, burst: number): string | undefined {
  if (typeof cost !== "number" || !(cost > 0)) return `${show(cost)} is not a number above 0`;
  return cost > burst ? `${cost} is more than the burst of ${burst}: it would wait for ever` : undefined;
}

function computed(of: string | ((input: never) => unknown), input: unknown): unknown {
  if (typeof of === "function") return of(input as never);
  let value: unknown = input;
  for (const field of of.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, field)) return undefined;
    value = (value as Record<string, unknown>)[field];
  }
  return value;
}

/** The limits of a task as those know them who have its name and not its code. */
export function publishedLimits(limits: readonly CheckedLimit[]): readonly Limit<never>[] {
  return limits.map(({ rule: _, key, cost, ...rest }) => ({
    ...rest,
    key: typeof key === "function" ? BY_CODE : key,
    ...(cost === undefined ? {} : { cost: typeof cost === "function" ? BY_CODE : cost }),
  }));
}

import { fullFormats } from "ajv-formats/dist/formats.js";
import type { CheckRun } from "./check-run.js";
import type { Keyword } from "./keyword.js";
import { type KeywordCheck, kindOf, type ValueKind } from "./node.js";

/** Keywords that say something of a value by itself, and apply no other schemas to it. */

type Passes<Value> = (value: Value, run: CheckRun) => boolean;

function check<Value>(of: ValueKind | undefined, message: string, passes: Passes<Value>): KeywordCheck {
  return {
    ...(of === undefined ? {} : { of }),
    passes: (value, run) => passes(value as Value, run),
    explain: (_value, at, issues) => issues.add(message, at),
  };
}

/** A keyword that compares something of a value with the number it has. */
function bound<Value>(
  name: string,
  of: ValueKind,
  message: (max: number) => string,
  passes: (value: Value, max: number, run: CheckRun) => boolean,
): Keyword {
  return (raw) => {
    const max = raw[name] as number | undefined;
    return max === undefined ? undefined : check<Value>(of, message(max), (value, run) => passes(value, max, run));
  };
}

const type: Keyword = ({ type: keywordValue, nullable }) => {
  if (keywordValue === undefined) return undefined;
  const types = (typeof keywordValue === "string" ? [keywordValue] : keywordValue) as readonly string[];
  const kinds = new Set<string>(nullable === true ? [...types, "null"] : types);
  const isWhole = kinds.has("integer") && !kinds.has("number");
  if (isWhole) kinds.add("number");
  return check(undefined, `must be ${types.join(",")}`, (value) => {
    const kind = kindOf(value);
    return kinds.has(kind) && !(isWhole && kind === "number" && !Number.isInteger(value));
  });
};

/** Among constants that are no objects a value is found by itself; among others by its number. */
function oneOf(values: readonly unknown[], message: string, constant: (value: unknown) => number): KeywordCheck {
  if (values.every((value) => typeof value !== "object" || value === null)) {
    const allowed = new Set(values);
    return check(undefined, message, (value) => allowed.has(value));
  }
  const numbers = new Set(values.map(constant));
  return check(undefined, message, (value, run) => numbers.has(run.equality.numberOf(value, run)));
}

const enumeration: Keyword = (raw, { constant }) =>
  raw.enum === undefined ? undefined : oneOf(raw.enum as readonly unknown[], "must be equal to one of the allowed values", constant);

const constValue: Keyword = (raw, { constant }) => (raw.const === undefined ? undefined : oneOf([raw.const], "must be equal to constant", constant));

const multipleOf = bound<number>(
  "multipleOf",
  "number",
  (step) => `must be multiple of ${step}`,
  (value, step) => Number.isInteger(value / step),
);

/** Signs outside the basic plane are one each. */
function lengthOf(text: string, run: CheckRun): number {
  run.spend(1 + (text.length >> 3));
  let length = 0;
  for (const _ of text) length++;
  return length;
}

const plural = (count: number, what: string) => `${count} ${what}`;

const pattern: Keyword = (raw, { pattern: compile }) => {
  if (raw.pattern === undefined) return undefined;
  const compiled = compile(raw.pattern as string);
  return check<string>("string", `must match pattern "${compiled.source}"`, (text, run) => compiled.matches(text, run));
};

interface Format {
  readonly type?: "string" | "number";
  validate: RegExp | ((value: never) => boolean);
}

/** Formats are expressions of ours that may backtrack, so a text costs as if they did. A format that nobody knows says nothing. */
const format: Keyword = ({ format: name }) => {
  if (typeof name !== "string" || !Object.hasOwn(fullFormats, name)) return undefined;
  const definition = fullFormats[name as keyof typeof fullFormats] as true | RegExp | ((value: never) => boolean) | Format;
  if (definition === true) return undefined;
  const { type: of = "string", validate } = definition instanceof RegExp || typeof definition === "function" ? { validate: definition } : definition;
  const test = (validate instanceof RegExp ? (text: string) => validate.test(text) : validate) as (value: unknown) => boolean;
  return check<unknown>(of, `must match format "${name}"`, (value, run) => {
    if (typeof value === "string") run.spend(8 + value.length + Math.ceil(value.length ** 2 / 250));
    return test(value);
  });
};

const uniqueItems: Keyword = (raw) => {
  if (raw.uniqueItems !== true) return undefined;
  return check<readonly unknown[]>("array", "must NOT have duplicate items", (items, run) => {
    const numbers = new Set<number>();
    for (const item of items) {
      const number = run.equality.numberOf(item, run);
      if (numbers.has(number)) return false;
      numbers.add(number);
    }
    return true;
  });
};

function countNames(value: object, run: CheckRun): number {
  const { length } = Object.keys(value);
  run.spend(1 + length);
  return length;
}

const required: Keyword = (raw) => {
  const names = raw.required as readonly string[] | undefined;
  if (names === undefined || names.length === 0) return undefined;
  const missing = (value: object) => names.find((name) => !Object.hasOwn(value, name)) as string;
  return {
    of: "object",
    passes: (value, run) => {
      run.spend(names.length);
      return names.every((name) => Object.hasOwn(value as object, name));
    },
    explain: (value, at, issues) => issues.add("is missing", { within: at, part: missing(value as object) }),
  };
};

const dependentRequired: Keyword = (raw) => {
  const { dependentRequired: keywordValue = {}, dependencies = {} } = raw as Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  const all = [...Object.entries(keywordValue), ...Object.entries(dependencies).filter(([, needs]) => Array.isArray(needs))] as [string, string[]][];
  if (all.length === 0) return undefined;
  const missing = (value: object): string | undefined =>
    all.flatMap(([name, needs]) => (Object.hasOwn(value, name) ? needs : [])).find((name) => !Object.hasOwn(value, name));
  const max = all.reduce((sum, [, { length }]) => sum + length, all.length);
  return {
    of: "object",
    passes: (value, run) => {
      run.spend(max);
      return missing(value as object) === undefined;
    },
    explain: (value, at, issues) => issues.add("is missing", { within: at, part: missing(value as object) as string }),
  };
};

export const ASSERTIONS: readonly Keyword[] = [
  type,
  enumeration,
  constValue,
  bound<number>(
    "minimum",
    "number",
    (min) => `must be >= ${min}`,
    (value, min) => value >= min,
  ),
  bound<number>(
    "maximum",
    "number",
    (max) => `must be <= ${max}`,
    (value, max) => value <= max,
  ),
  bound<number>(
    "exclusiveMinimum",
    "number",
    (below) => `must be > ${below}`,
    (value, below) => value > below,
  ),
  bound<number>(
    "exclusiveMaximum",
    "number",
    (above) => `must be < ${above}`,
    (value, above) => value < above,
  ),
  multipleOf,
  bound<string>(
    "minLength",
    "string",
    (min) => `must NOT have fewer than ${plural(min, "characters")}`,
    (text, min, run) => lengthOf(text, run) >= min,
  ),
  bound<string>(
    "maxLength",
    "string",
    (max) => `must NOT have more than ${plural(max, "characters")}`,
    (text, max, run) => lengthOf(text, run) <= max,
  ),
  pattern,
  format,
  bound<readonly unknown[]>(
    "minItems",
    "array",
    (min) => `must NOT have fewer than ${plural(min, "items")}`,
    ({ length }, min) => length >= min,
  ),
  bound<readonly unknown[]>(
    "maxItems",
    "array",
    (max) => `must NOT have more than ${plural(max, "items")}`,
    ({ length }, max) => length <= max,
  ),
  uniqueItems,
  bound<object>(
    "minProperties",
    "object",
    (min) => `must NOT have fewer than ${plural(min, "properties")}`,
    (value, min, run) => countNames(value, run) >= min,
  ),
  bound<object>(
    "maxProperties",
    "object",
    (max) => `must NOT have more than ${plural(max, "properties")}`,
    (value, max, run) => countNames(value, run) <= max,
  ),
  required,
  dependentRequired,
];

import { LONGEST_NAMES } from "./bounds.js";
import { pawlError } from "./error.js";

export type NameKind = keyof typeof LONGEST_NAMES;

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is being refused
const REFUSED = /[\u0000-\u001f\u007f]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;

/** Names that passed once need no second look: tasks, queues and tenants repeat endlessly; keys do not. */
const REPEATED: ReadonlySet<NameKind> = new Set(["queue", "task", "tenant"]);
const checkedNames = new Map<string, Set<string>>();
const MAX_REMEMBERED = 10_000;

/** `option`: what the caller knows it by, if that is not its kind. */
export function checkName(kind: NameKind, value: unknown, option?: string): string {
  const checked = checkedNames.get(kind);
  if (typeof value === "string" && checked?.has(value)) return value;
  if (typeof value !== "string" || value.trim() === "" || value !== value.trim() || value.length > LONGEST_NAMES[kind] || REFUSED.test(value)) {
    throw pawlError("name_invalid", { what: kind, value: printable(value), max: LONGEST_NAMES[kind], ...(option === undefined ? {} : { option }) });
  }
  if (REPEATED.has(kind)) remember(kind, value);
  return value;
}

function remember(kind: string, value: string): void {
  let checked = checkedNames.get(kind);
  if (checked === undefined) {
    checked = new Set();
    checkedNames.set(kind, checked);
  }
  if (checked.size >= MAX_REMEMBERED) checked.clear();
  checked.add(value);
}

function printable(value: unknown): string {
  if (typeof value !== "string") return `(${typeof value})`;
  return value.length > 40 ? `${value.slice(0, 40)}…` : value;
}

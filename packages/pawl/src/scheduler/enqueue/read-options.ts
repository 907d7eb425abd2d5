import { checkObject, invalid, unknownOption } from "../check.js";
import type { EnqueueOptions } from "../options.js";
import { OPTION_TABLE, type OptionName } from "./option-table.js";
import type { JobDraft } from "./option-values.js";

export { type JobExtras, jobIdOf, transactionOf } from "./option-values.js";

export function readOptions(options: EnqueueOptions): JobDraft {
  checkObject("options", options);
  const draft: JobDraft = { options: {}, extras: {} };
  for (const name of Object.keys(options)) {
    checkOptionName(name);
    const value = options[name as keyof EnqueueOptions];
    if (value !== undefined) OPTION_TABLE[name as OptionName].read(value, draft, options);
  }
  return draft;
}

/** Options of earlier versions, and what to write in their place. */
const REPLACED_OPTIONS: ReadonlyMap<string, string> = new Map([
  ["key", 'unique: "text"'],
  ["throttle", 'unique: { key, for: "1h" }'],
]);

/** `more`: names that are allowed here beside those of the options. */
export function checkOptionName(name: string, prefix = "", more: readonly string[] = []): void {
  if (Object.hasOwn(OPTION_TABLE, name) || more.includes(name)) return;
  const replacement = REPLACED_OPTIONS.get(name);
  if (replacement !== undefined) throw invalid(prefix + name, `there is no such option: write ${replacement}`);
  throw unknownOption(name, [...more, ...Object.keys(OPTION_TABLE)], prefix);
}

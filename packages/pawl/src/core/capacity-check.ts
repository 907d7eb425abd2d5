import { BOUNDS } from "./bounds.js";
import type { Needs, Serves } from "./capacity.js";
import { checkName } from "./name.js";
import { checkArray, checkKeys, checkObject, invalid, show } from "./option.js";

/** The finest part of an amount that is told apart, so that adding and taking away stays exact. */
const FINEST = 1_000;
const LARGEST = 1e12;

const NEED_KEYS: ReadonlySet<string> = new Set(["tags", "amounts"] satisfies (keyof Needs)[]);

export function checkNeeds(option: string, value: unknown): Needs {
  const given = checkObject(option, value) as { tags?: unknown; amounts?: unknown };
  checkKeys(given, NEED_KEYS, `${option}.`);
  const tags = checkTags(`${option}.tags`, given.tags);
  const amounts = checkAmounts(`${option}.amounts`, given.amounts);
  return { ...(tags.length === 0 ? {} : { tags }), ...(Object.keys(amounts).length === 0 ? {} : { amounts }) };
}

/** Each once, in order, so that what says the same is the same. */
export function checkTags(option: string, value: unknown = []): Serves["tags"] {
  const tags = [...new Set(checkArray(option, value).map((tag) => checkName("tag", tag)))].sort();
  if (tags.length > BOUNDS.tags) throw invalid(option, `${tags.length} are more than ${BOUNDS.tags}`);
  return tags;
}

export function checkAmounts(option: string, value: unknown = {}): Serves["amounts"] {
  const entries = Object.entries(checkObject(option, value)).map(([name, amount]) => [
    checkName("amount", name),
    checkAmount(`${option}.${name}`, amount),
  ]);
  if (entries.length > BOUNDS.amounts) throw invalid(option, `${entries.length} are more than ${BOUNDS.amounts}`);
  return Object.fromEntries(entries.sort(([a], [b]) => ((a as string) < (b as string) ? -1 : 1)));
}

function checkAmount(option: string, value: unknown): number {
  if (typeof value !== "number" || !(value > 0 && value <= LARGEST))
    throw invalid(option, `${show(value)} is not a number above 0 and up to ${LARGEST}`);
  if (Math.abs(value * FINEST - Math.round(value * FINEST)) > 1e-6) throw invalid(option, `${value} has more than three decimals`);
  return value;
}

/** An amount as a whole number of its finest parts. */
export function partsOf(amount: number): number {
  return Math.round(amount * FINEST);
}

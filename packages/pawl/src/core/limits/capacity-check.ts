import { BOUNDS } from "../values/bounds.js";
import { checkName } from "../values/name.js";
import { checkArray, checkKeys, checkObject, invalid, show } from "../values/option.js";
import type { Needs, Provides } from "./capacity.js";

/** The finest part of an amount that is told apart, so that adding and taking away stays exact. */
const PARTS_PER_UNIT = 1_000;
const MAX_RESOURCE = 1e12;

const CAPACITY_KEYS: ReadonlySet<string> = new Set(["capabilities", "resources"] satisfies (keyof Needs & keyof Provides)[]);

export function checkNeeds(option: string, value: unknown): Needs {
  const { capabilities, resources } = checkProvides(option, value);
  return { ...(capabilities.length === 0 ? {} : { capabilities }), ...(Object.keys(resources).length === 0 ? {} : { resources }) };
}

export function checkProvides(option: string, value: unknown = {}): Required<Provides> {
  const raw = checkObject(option, value) as { capabilities?: unknown; resources?: unknown };
  checkKeys(raw, CAPACITY_KEYS, `${option}.`);
  return {
    capabilities: checkCapabilities(`${option}.capabilities`, raw.capabilities),
    resources: checkResources(`${option}.resources`, raw.resources),
  };
}

/** Each once, in order, so that what says the same is the same. */
export function checkCapabilities(option: string, value: unknown = []): readonly string[] {
  const capabilities = [...new Set(checkArray(option, value).map((tag) => checkName("capability", tag)))].sort();
  if (capabilities.length > BOUNDS.tags) throw invalid(option, `${capabilities.length} are more than ${BOUNDS.tags}`);
  return capabilities;
}

export function checkResources(option: string, value: unknown = {}): Readonly<Record<string, number>> {
  const entries = Object.entries(checkObject(option, value)).map(([name, amount]) => [
    checkName("resource", name),
    checkAmount(`${option}.${name}`, amount),
  ]);
  if (entries.length > BOUNDS.resources) throw invalid(option, `${entries.length} are more than ${BOUNDS.resources}`);
  return Object.fromEntries(entries.sort(([a], [b]) => ((a as string) < (b as string) ? -1 : 1)));
}

function checkAmount(option: string, value: unknown): number {
  if (typeof value !== "number" || !(value > 0 && value <= MAX_RESOURCE))
    throw invalid(option, `${show(value)} is not a number above 0 and up to ${MAX_RESOURCE}`);
  if (Math.abs(value * PARTS_PER_UNIT - Math.round(value * PARTS_PER_UNIT)) > 1e-6) throw invalid(option, `${value} has more than three decimals`);
  return value;
}

/** An amount as a whole number of its finest parts. */
export function partsOf(amount: number): number {
  return Math.round(amount * PARTS_PER_UNIT);
}

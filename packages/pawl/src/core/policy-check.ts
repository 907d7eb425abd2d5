import { checkIngest } from "./backpressure.js";
import { checkBoolean, checkKeys, checkObject, checkPeriod, checkWhole, invalid, show, unknownOption } from "./option.js";
import type { Policies, Policy, PolicyChanges, PolicyKind, QueuePolicy } from "./policy.js";
import { checkRate } from "./rate.js";

type Reader = (option: string, value: unknown) => unknown;

const LIMITS = {
  concurrency: (option: string, value: unknown) => checkWhole(option, value, 1, 1_000_000),
  rate: checkRate,
};

/** How each field of a policy is read: an option that is not here does not exist. */
const READERS: { readonly [K in PolicyKind]: { readonly [F in keyof Required<PolicyChanges[K]>]: Reader } } = {
  tenant: { ...LIMITS, weight: checkWeight, ingest: checkIngest },
  queue: {
    ...LIMITS,
    ingest: checkIngest,
    weights: (option, value) => byBand(option, value, checkWeight),
    minimum: (option, value) => byBand(option, value, checkShare),
    strict: checkBoolean,
    aging: checkPeriod,
  },
  task: LIMITS,
};

/** The policy after a change; throws, and so changes nothing, where that would make no sense. */
export function changedPolicy<K extends PolicyKind>(kind: K, before: Policies[K], changes: PolicyChanges[K]): Policies[K] {
  const readers = READERS[kind] as Readonly<Record<string, Reader>>;
  const after: Record<string, unknown> = { ...before };
  checkKeys(checkObject("policy", changes), new Set(Object.keys(readers)));
  for (const [field, value] of Object.entries(changes)) {
    if (value === undefined) continue;
    const read = value === null ? undefined : (readers[field] as Reader)(field, value);
    if (read === undefined || read === false) delete after[field];
    else after[field] = read;
  }
  if (kind === "queue") checkBands(after as QueuePolicy);
  return after as Policies[K];
}

export function isEmpty(policy: Policy): boolean {
  return Object.keys(policy).length === 0;
}

function checkBands({ strict, weights, minimum }: QueuePolicy): void {
  if (strict && weights !== undefined) throw invalid("strict", "bands that are strict have no weights; set weights to null first");
  if (strict && minimum !== undefined) throw invalid("strict", "bands that are strict have no minimum; set minimum to null first");
  const total = Object.values(minimum ?? {}).reduce((sum, share) => sum + share, 0);
  if (total > 1 + 1e-9) throw invalid("minimum", `the shares add up to ${Math.round(total * 100)} %, more than there is`);
}

const HEAVIEST = 1_000_000;

function checkWeight(option: string, value: unknown): number {
  if (typeof value === "number" && value >= 1 / HEAVIEST && value <= HEAVIEST) return value;
  throw invalid(option, `${show(value)} is not a number above 0 (and up to ${HEAVIEST})`);
}

function checkShare(option: string, value: unknown): number {
  if (typeof value === "number" && value > 0 && value <= 1) return value;
  throw invalid(option, `${show(value)} is not a part of 1, such as 0.05 for 5 %`);
}

const BANDS: readonly string[] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];

function byBand(option: string, value: unknown, check: (option: string, value: unknown) => number): object {
  const given = Object.entries(checkObject(option, value));
  if (given.length === 0) throw invalid(option, "it names no band; null takes it away");
  return Object.fromEntries(
    given.map(([band, one]) => {
      if (!BANDS.includes(band)) throw unknownOption(band, BANDS, `${option}.`);
      return [band, check(`${option}.${band}`, one)];
    }),
  );
}

import { checkIngest } from "../limits/ingest-limit.js";
import { checkRate } from "../limits/token-bucket.js";
import { checkBoolean, checkKeys, checkObject, checkPeriod, checkWhole, invalid, show, unknownOption } from "../values/option.js";
import type { Policies, Policy, PolicyChanges, PolicyKind, QueuePolicy } from "./policy.js";

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
    priorityWeights: (option, value) => byPriority(option, value, checkWeight),
    priorityMinimum: (option, value) => byPriority(option, value, checkShare),
    strictPriority: checkBoolean,
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
  if (kind === "queue") checkPriorities(after as QueuePolicy);
  return after as Policies[K];
}

export function isEmpty(policy: Policy): boolean {
  return Object.keys(policy).length === 0;
}

function checkPriorities({ strictPriority, priorityWeights, priorityMinimum }: QueuePolicy): void {
  if (strictPriority && priorityWeights !== undefined)
    throw invalid("strictPriority", "priorities that are strict have no weights; set priorityWeights to null first");
  if (strictPriority && priorityMinimum !== undefined)
    throw invalid("strictPriority", "priorities that are strict have no minimum; set priorityMinimum to null first");
  const total = Object.values(priorityMinimum ?? {}).reduce((sum, share) => sum + share, 0);
  if (total > 1 + 1e-9) throw invalid("priorityMinimum", `the shares add up to ${Math.round(total * 100)} %, more than there is`);
}

const MAX_WEIGHT = 1_000_000;

function checkWeight(option: string, value: unknown): number {
  if (typeof value === "number" && value >= 1 / MAX_WEIGHT && value <= MAX_WEIGHT) return value;
  throw invalid(option, `${show(value)} is not a number above 0 (and up to ${MAX_WEIGHT})`);
}

function checkShare(option: string, value: unknown): number {
  if (typeof value === "number" && value > 0 && value <= 1) return value;
  throw invalid(option, `${show(value)} is not a part of 1, such as 0.05 for 5 %`);
}

const PRIORITIES: readonly string[] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];

function byPriority(option: string, value: unknown, check: (option: string, value: unknown) => number): object {
  const entries = Object.entries(checkObject(option, value));
  if (entries.length === 0) throw invalid(option, "it names no priority; null takes it away");
  return Object.fromEntries(
    entries.map(([priority, one]) => {
      if (!PRIORITIES.includes(priority)) throw unknownOption(priority, PRIORITIES, `${option}.`);
      return [priority, check(`${option}.${priority}`, one)];
    }),
  );
}

import fc from "fast-check";
import type { DeathPolicy } from "../src/core/jobs/dependency.js";
import type { JobOptions, Priority } from "../src/core/jobs/job.js";
import type { UniqueRule } from "../src/core/jobs/unique-key.js";
import type { JobLimit, LimitRule } from "../src/core/limits/limit-rule.js";
import type { PolicyKind } from "../src/core/sharing/policy.js";
import { type ScheduleCommand, scheduleCommand } from "./schedules/commands.js";
import { DAY, HOUR, MINUTE, SECOND } from "./world.js";

/**
 * Random commands, as plain data, so that a failing run reads as a story. Jobs and leases are named by numbers that
 * are taken modulo how many there are when the command runs: whatever shrinking leaves still makes sense.
 * All times are whole seconds: see `apart` in store-pair.ts.
 */
export type ModelCommand =
  | { readonly do: "enqueue"; readonly jobs: readonly RandomJob[] }
  | { readonly do: "claim"; readonly worker: Who; readonly first: number; readonly quota: number; readonly duration: number }
  | { readonly do: "claimSuspect"; readonly worker: Who; readonly queues: readonly string[]; readonly tasks: readonly string[] }
  | { readonly do: "settle"; readonly as: "holder" | Who; readonly items: readonly RandomSettlement[] }
  /** one at most: leases renewed together end together, and which is reaped first is each store's own affair */
  | { readonly do: "renew"; readonly worker: Who; readonly leases: readonly number[]; readonly duration: number }
  | {
      readonly do: "record";
      readonly as: "holder" | Who;
      readonly lease: number;
      readonly job: number;
      readonly name: string;
      readonly value: string;
    }
  | { readonly do: "log"; readonly as: "holder" | Who; readonly lease: number; readonly job: number; readonly progress: boolean }
  | { readonly do: "reap" | "promoteDue"; readonly limit: number }
  | { readonly do: "expire" }
  /** everybody is gone for as long as a short lease lasts, and their leases are reaped */
  | { readonly do: "vanish" }
  | { readonly do: "unblock" | "carryOut" | "fold" }
  | { readonly do: "admit" }
  | { readonly do: "cancel" | "pause" | "resume" | "promote" | "delete"; readonly job: number; readonly scope: string }
  | { readonly do: "redrive"; readonly job: number; readonly scope: string; readonly delay: number; readonly input: string | undefined }
  | { readonly do: "pauseLane" | "resumeLane"; readonly kind: PolicyKind; readonly name: string }
  | ScheduleCommand
  | { readonly do: "advance"; readonly ms: number };

export type Who = 0 | 1 | 2;

export interface RandomJob {
  readonly queue: string;
  readonly priority: Priority;
  readonly tenant: string;
  readonly task: string;
  readonly delay: number;
  readonly options: JobOptions | undefined;
  readonly request: string | undefined;
  readonly unique: UniqueRule | undefined;
  readonly after: { readonly parents: readonly number[]; readonly onDependencyDeath: DeathPolicy } | undefined;
}

export interface RandomSettlement {
  readonly lease: number;
  readonly job: number;
  readonly outcome: "succeeded" | "failed" | "killed" | "snoozed" | "released" | "cancelled";
  /** ms before a retry or the end of a snooze; 0 is at once */
  readonly delay: number;
}

export const QUEUES = ["a", "b"] as const;
export const TASKS = ["x", "y"] as const;
export const TENANTS = ["acme", "umbrella"] as const;
/** ms */
export const SHORT_LEASE = 10 * SECOND;
export const PRIORITIES = [5, 9] as const;

const pick = fc.oneof(fc.nat({ max: 3 }), fc.nat({ max: 30 }));
const who = fc.constantFrom<Who[]>(0, 1, 2);
/** Plain objects, so that a story is short to read. */
const record = <T extends object>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }) => fc.record(model, { noNullPrototype: true }) as fc.Arbitrary<T>;
const oneOf = <T>(...values: readonly T[]) => fc.constantFrom(...values);
const sometimes = <T>(value: fc.Arbitrary<T>) => fc.oneof({ weight: 2, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: value });

/** Built from present parts only: an absent option is not the same as an undefined one. */
const options: fc.Arbitrary<JobOptions | undefined> = sometimes(
  fc.record(
    {
      startWithin: oneOf(SECOND, MINUTE),
      finishWithin: oneOf(SECOND, MINUTE, HOUR),
      maxCrashes: oneOf(1, 2, 3),
      atMostOnce: fc.constant<true>(true),
      tags: fc.subarray(["t", "u"]),
    },
    { requiredKeys: [], noNullPrototype: true },
  ),
);

const unique: fc.Arbitrary<UniqueRule> = record({
  key: oneOf("k", "l"),
  hold: oneOf<UniqueRule["hold"]>("unstarted", "unfinished", MINUTE),
  onConflict: oneOf<UniqueRule["onConflict"]>("reject", "existing", "replace"),
});

const after = record({
  parents: fc.array(pick, { minLength: 1, maxLength: 3 }),
  onDependencyDeath: oneOf<DeathPolicy>("die", "run", "wait"),
});

const job: fc.Arbitrary<RandomJob> = record<RandomJob>({
  queue: oneOf(...QUEUES),
  priority: oneOf<Priority>(...PRIORITIES),
  // Mostly one tenant, so that jobs meet.
  tenant: oneOf(TENANTS[0], TENANTS[0], TENANTS[0], TENANTS[1]),
  task: oneOf(...TASKS),
  delay: oneOf(0, 0, 0, SECOND, MINUTE),
  options,
  request: sometimes(oneOf("r1", "r2", "r3")),
  unique: sometimes(unique),
  after: sometimes(after),
})
  // A job that replaces its own parent is its caller's riddle; what it means is not part of the contract.
  .map((one) => (one.unique === undefined ? one : { ...one, after: undefined }));

const settlement: fc.Arbitrary<RandomSettlement> = record({
  lease: pick,
  job: pick,
  outcome: oneOf<RandomSettlement["outcome"]>("succeeded", "succeeded", "failed", "failed", "killed", "snoozed", "released", "cancelled"),
  delay: oneOf(0, SECOND, MINUTE),
});

/** Mostly whoever holds the lease. */
const as = fc.oneof({ weight: 6, arbitrary: fc.constant<"holder">("holder") }, { weight: 1, arbitrary: who });
const scope = oneOf("everyone", "everyone", "everyone", ...TENANTS);
/** Mostly the short one, which `vanish` outwaits. */
const duration = oneOf(SHORT_LEASE, SHORT_LEASE, MINUTE);
const limit = oneOf(1, 2, 100);

const of = <C extends ModelCommand>(weight: number, arbitrary: fc.Arbitrary<C>) => ({ weight, arbitrary: arbitrary as fc.Arbitrary<ModelCommand> });

const command: fc.Arbitrary<ModelCommand> = fc.oneof(
  of(10, record({ do: fc.constant("enqueue"), jobs: fc.array(job, { minLength: 1, maxLength: 4 }) })),
  of(10, record({ do: fc.constant("claim"), worker: who, first: pick, quota: oneOf(1, 2, 5), duration })),
  of(4, record({ do: fc.constant("claimSuspect"), worker: who, queues: fc.constant([...QUEUES]), tasks: fc.subarray([...TASKS], { minLength: 1 }) })),
  of(12, record({ do: fc.constant("settle"), as, items: fc.array(settlement, { minLength: 1, maxLength: 4 }) })),
  of(2, record({ do: fc.constant("renew"), worker: who, leases: fc.array(pick, { maxLength: 1 }), duration })),
  of(1, record({ do: fc.constant("record"), as, lease: pick, job: pick, name: oneOf("n", "m"), value: oneOf("1", "2") })),
  of(1, record({ do: fc.constant("log"), as, lease: pick, job: pick, progress: fc.boolean() })),
  of(4, record({ do: oneOf("reap", "promoteDue"), limit })),
  of(2, record({ do: fc.constant("expire") })),
  of(4, record({ do: fc.constant("vanish") })),
  of(1, record({ do: oneOf("unblock", "carryOut", "fold") })),
  of(8, record({ do: oneOf("cancel", "pause", "pause", "resume", "resume", "promote", "delete"), job: pick, scope })),
  of(3, record({ do: fc.constant("redrive"), job: pick, scope, delay: oneOf(0, MINUTE), input: sometimes(fc.constant('"edited"')) })),
  of(1, record({ do: oneOf("pauseLane", "resumeLane", "resumeLane"), kind: fc.constant("queue"), name: oneOf(...QUEUES) })),
  of(1, record({ do: oneOf("pauseLane", "resumeLane", "resumeLane"), kind: fc.constant("task"), name: oneOf(...TASKS) })),
  of(1, record({ do: oneOf("pauseLane", "resumeLane", "resumeLane"), kind: fc.constant("tenant"), name: oneOf(...TENANTS) })),
  of(4, scheduleCommand),
  of(8, record({ do: fc.constant("advance"), ms: oneOf(SECOND, SHORT_LEASE, MINUTE, HOUR, DAY) })),
);

export const modelCommands: fc.Arbitrary<readonly ModelCommand[]> = fc.array(command, { minLength: 10, maxLength: 80, size: "max" });

/** Stories of a schedule, among all that may happen to its jobs. */
export const scheduleStories: fc.Arbitrary<readonly ModelCommand[]> = fc.array(
  fc.oneof(of(5, scheduleCommand), of(3, record({ do: fc.constant("advance"), ms: oneOf(SECOND, SHORT_LEASE, MINUTE, HOUR, DAY) })), {
    weight: 4,
    arbitrary: command,
  }),
  { minLength: 10, maxLength: 60, size: "max" },
);

/** Under one limit or two, of which one may be serial, and some let in so many per time; a key has one rule. */
const RULES: Readonly<Record<string, LimitRule>> = {
  one: { concurrency: 1 },
  two: { concurrency: 2 },
  turn: { serial: true },
  token: { rate: { limit: 2, per: MINUTE, burst: 2 } },
  tokenAndPlace: { concurrency: 2, rate: { limit: 1, per: SHORT_LEASE, burst: 3 } },
  tokenAndTurn: { serial: true, rate: { limit: 1, per: MINUTE, burst: 1 } },
};
const limits: fc.Arbitrary<readonly JobLimit[]> = fc
  .tuple(fc.subarray(Object.keys(RULES), { minLength: 1, maxLength: 2 }), oneOf(1, 1, 2))
  .filter(([names]) => names.filter((name) => RULES[name]?.serial === true).length < 2)
  .map(([names, cost]) => names.map((name) => limitOf(name, cost)));

/** Keys at which jobs wait for tokens. */
export const RATED = TENANTS.flatMap((tenant) =>
  Object.keys(RULES).flatMap((limit) => (RULES[limit]?.rate === undefined ? [] : [{ tenant, limit, key: "k" }])),
);

function limitOf(name: string, cost: number): JobLimit {
  const rule = RULES[name] as LimitRule;
  return { limit: name, key: "k", rule, ...(rule.rate === undefined || cost > rule.rate.burst ? {} : { cost }) };
}

const limitedJob: fc.Arbitrary<RandomJob> = fc.tuple(job, limits).map(([one, own]) => ({ ...one, options: { ...one.options, limits: own } }));

/** Stories of jobs that wait for each other at a few keys, among all that may happen to them. */
export const limitStories: fc.Arbitrary<readonly ModelCommand[]> = fc.array(
  fc.oneof(
    of(3, record({ do: fc.constant("enqueue"), jobs: fc.array(limitedJob, { minLength: 1, maxLength: 3 }) })),
    of(2, record({ do: fc.constant("admit") })),
    of(1, record({ do: fc.constant("advance"), ms: oneOf(SECOND, SHORT_LEASE, MINUTE) })),
    { weight: 7, arbitrary: command },
  ),
  { minLength: 10, maxLength: 60, size: "max" },
);

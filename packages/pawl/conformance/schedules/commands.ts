import fc from "fast-check";
import { expect } from "vitest";
import type { IdSuffix } from "../../src/core/jobs/id.js";
import type { Priority } from "../../src/core/jobs/job.js";
import type { Verb } from "../../src/core/jobs/lifecycle.js";
import type { UniqueRule } from "../../src/core/jobs/unique-key.js";
import { ticksBetween } from "../../src/core/schedules/due-ticks.js";
import type { RecurrenceRule } from "../../src/core/schedules/recurrence.js";
import type { Definition, MissedPolicy, OverlapPolicy } from "../../src/core/schedules/schedule.js";
import type { TickEntry } from "../../src/store/port/schedules/schedules.js";
import { dutiesOf } from "../duties.js";
import { everyJob } from "../invariants.js";
import type { StorePair } from "../store-pair.js";
import { DAY, HOUR, MINUTE, SECOND, START } from "../world.js";

/**
 * What can be done to a schedule, for the random stories of `model.ts`. There is one, since which of two that are due
 * at the same millisecond goes first is each store's own affair.
 */
export type ScheduleCommand =
  | { readonly do: "putSchedule"; readonly definition: Definition; readonly app: string | undefined }
  | { readonly do: Plain }
  | { readonly do: "tick"; readonly steps: number }
  | { readonly do: "trigger"; readonly request: string | undefined }
  | { readonly do: "backfill"; readonly back: number; readonly most: number; readonly pace: number };

type Plain = "pauseSchedule" | "resumeSchedule" | "removeSchedule" | "trim";

const REF = { tenant: "acme", name: "s" };
const SEED = "acme\u0001s";
const oneOf = <T>(...values: readonly T[]) => fc.constantFrom(...values);
const record = <T extends object>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }) => fc.record(model, { noNullPrototype: true }) as fc.Arbitrary<T>;
const maybe = <T>(...values: readonly T[]) => oneOf<T | undefined>(undefined, undefined, ...values);

const rule: fc.Arbitrary<RecurrenceRule> = fc.oneof(
  record({ kind: fc.constant<"every">("every"), every: oneOf(SECOND, 7 * SECOND, MINUTE, HOUR) }),
  record({
    kind: fc.constant<"cron">("cron"),
    expression: oneOf("* * * * *", "*/20 * * * *", "30 13 * * *"),
    zone: oneOf("Europe/Berlin", "Asia/Kathmandu"),
    dst: fc.constant({ gap: "shift", overlap: "first" } as const),
  }),
  record({ kind: fc.constant<"at">("at"), at: oneOf(START - HOUR, START + MINUTE, START + DAY) }),
);
const missed: fc.Arbitrary<MissedPolicy> = record({
  policy: oneOf<MissedPolicy["policy"]>("skip", "latest", "all"),
  tolerance: oneOf(0, 5 * SECOND),
  window: oneOf(MINUTE, HOUR),
  max: oneOf(1, 3, 100),
  pace: oneOf(0, SECOND),
});
const unique: fc.Arbitrary<UniqueRule | undefined> = maybe<UniqueRule>(
  { key: "k", hold: "unfinished", onConflict: "reject" },
  { key: "k", hold: "unstarted", onConflict: "replace" },
);
const definition: fc.Arbitrary<Definition> = fc
  .record({
    rule,
    missed,
    overlap: oneOf<OverlapPolicy>("allow", "skip", "wait", "cancel"),
    unique,
    jitter: maybe(10 * SECOND),
    end: maybe(START + 2 * HOUR),
    keep: maybe({ succeeded: 1, dead: 1 }),
    task: oneOf("x", "y"),
  })
  .map(({ unique: held, task, jitter, end, keep, ...given }) => ({
    ...given,
    ...(jitter === undefined ? {} : { jitter }),
    ...(end === undefined ? {} : { end }),
    ...(keep === undefined ? {} : { keep }),
    job: {
      lane: { queue: "a", priority: 5 as Priority, tenant: REF.tenant, task },
      input: "null",
      options: held === undefined ? undefined : { uniqueKey: held.key },
      ...(held === undefined ? {} : { unique: held }),
    },
  }));

export const scheduleCommand: fc.Arbitrary<ScheduleCommand> = fc.oneof(
  { weight: 3, arbitrary: record({ do: fc.constant<"putSchedule">("putSchedule"), definition, app: maybe("shop") }) },
  { weight: 6, arbitrary: record({ do: fc.constant<"tick">("tick"), steps: oneOf(1, 1, 5) }) },
  { weight: 1, arbitrary: record({ do: oneOf<Plain>("pauseSchedule", "resumeSchedule", "resumeSchedule", "removeSchedule", "trim") }) },
  { weight: 1, arbitrary: record({ do: fc.constant<"trigger">("trigger"), request: maybe("r1") }) },
  { weight: 1, arbitrary: record({ do: fc.constant<"backfill">("backfill"), back: oneOf(MINUTE, HOUR), most: oneOf(1, 5), pace: oneOf(0, MINUTE) }) },
);

export function isScheduleCommand(command: { readonly do: string }): command is ScheduleCommand {
  return command.do in VERBS;
}

/** What a command does to jobs, in the words of the lifecycle. */
const VERBS: Readonly<Record<ScheduleCommand["do"], Verb | undefined>> = {
  putSchedule: undefined,
  pauseSchedule: undefined,
  resumeSchedule: undefined,
  removeSchedule: undefined,
  tick: "enqueue",
  trigger: "enqueue",
  backfill: "enqueue",
  trim: "delete",
};
export const verbOfSchedule = (command: ScheduleCommand): Verb | undefined => VERBS[command.do];

let idSuffixes = 0;

/** The same id suffixes for both stores: each begins where this command began. */
function idSuffixesOf(): () => () => IdSuffix {
  const first = idSuffixes;
  return () => {
    let next = first;
    return () => {
      next += 1;
      idSuffixes = Math.max(idSuffixes, next);
      return `9000-8000-${next.toString(16).padStart(12, "0")}` as IdSuffix;
    };
  };
}

export async function performSchedule(stores: StorePair, command: ScheduleCommand): Promise<void> {
  await act(stores, command);
  const known = new Set(stores.jobs);
  const made = (await everyJob(stores.model)).map(({ id }) => id).filter((id) => !known.has(id));
  stores.jobs.push(...made);
}

async function act(stores: StorePair, command: ScheduleCommand): Promise<unknown> {
  const idSuffixFor = idSuffixesOf();
  switch (command.do) {
    case "putSchedule":
      return stores.both((store) => store.schedules.put([{ ...REF, definition: command.definition }], command.app));
    case "pauseSchedule":
      return stores.both((store) => store.schedules.pause(REF));
    case "resumeSchedule":
      return stores.both((store) => store.schedules.resume(REF));
    case "removeSchedule":
      return stores.both((store) => store.schedules.delete(REF));
    case "trim":
      return stores.both((store) => dutiesOf(store).trimSchedules(1_000, DAY));
    case "tick":
      return stores.both(async (store) => {
        const idSuffix = idSuffixFor();
        const answers: unknown[] = [];
        for (let step = 0; step < command.steps; step++) answers.push(await dutiesOf(store).tick(10, idSuffix));
        return answers;
      });
    case "trigger": {
      const { request } = command;
      return stores.both((store) =>
        store.schedules.trigger(REF, {
          idSuffix: idSuffixFor()(),
          ...(request === undefined ? {} : { idempotencyKey: { id: request, digest: request } }),
        }),
      );
    }
    case "backfill":
      return backfill(stores, command, idSuffixFor);
  }
}

async function backfill(
  stores: StorePair,
  { back, most, pace }: Extract<ScheduleCommand, { do: "backfill" }>,
  idSuffixFor: () => () => IdSuffix,
): Promise<unknown> {
  const schedule = await stores.model.schedules.get(REF);
  if (schedule === undefined) return;
  const now = stores.clock.now();
  const ticks = ticksBetween(schedule.definition, SEED, now - back, now, most);
  // Jobs that become ready at the same millisecond do so in an order that is each store's own affair.
  const after = pace === 0 ? 0 : stores.apart(SECOND);
  return stores.both((store) => store.schedules.backfill(REF, { ticks, after, pace, idSuffix: idSuffixFor() }));
}

/** The schedule and the account of its ticks. In which order those of one time are listed is each store's own affair. */
export async function compareSchedules(stores: StorePair): Promise<void> {
  await stores.both((store) => store.schedules.list("everyone", {}, { limit: 10 }));
  await stores.both(async (store) => (await store.duties.poll()).due.get("tick"));
  await stores.both(async (store) => (await store.schedules.ticks(REF, { limit: 10_000 })).map(inWords).sort());
  const fired = (await stores.real.schedules.ticks(REF, { limit: 10_000 })).flatMap((tick) =>
    "at" in tick && tick.way !== "triggered" ? tick.at : [],
  );
  expect(new Set(fired).size, "no tick has two jobs").toBe(fired.length);
}

function inWords(entry: TickEntry): string {
  if ("at" in entry) return `${entry.at} ${entry.way} at ${entry.firedAt} for ${entry.merged} more: ${entry.job}`;
  return `${entry.from} to ${entry.to} (${entry.count}), seen at ${entry.seenAt}: ${entry.skipped ?? entry.mergedInto}`;
}

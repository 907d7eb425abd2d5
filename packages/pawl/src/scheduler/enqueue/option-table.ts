import type { DeathPolicy } from "../../core/jobs/dependency.js";
import { storedRetry } from "../../core/jobs/retry.js";
import type { LimitKeyValue } from "../../core/limits/limit-options.js";
import { checkTrace } from "../../core/observe/trace.js";
import { checkName } from "../../core/values/name.js";
import { checkDuration, checkInstant, checkMaxCrashes, checkObject, checkOneOf, checkPeriod, checkPriority, checkSpread, invalid } from "../check.js";
import type { JobView } from "../jobs/view.js";
import type { EnqueueOptions } from "../options.js";
import { checkDebounce, checkParents, checkTags, checkTransaction, checkUnique, type JobDraft, setUnique } from "./option-values.js";

/**
 * The kind of value that an option holds. A kind has one JSON Schema in a body, one in an answer, and one way to be written on a command line; a new
 * option usually has a kind that is here.
 */
export type OptionKind =
  | "queue"
  | "tenant"
  | "priority"
  | "retry"
  | "duration"
  | "spread"
  | "count"
  | "instant"
  | "label"
  | "labels"
  | "unique"
  | "debounce"
  | "limit_keys"
  | "key"
  | "jobs"
  | "death_policy"
  | "trace"
  | "transaction";

/** Where an option can be given, beside a job: the nearest one wins. */
export type OptionLevel = "queue" | "task" | "schedule";

/** All that is known of one option of a job. Readers, contract, command line, remote client and docs are made of it. */
export interface OptionRow {
  readonly kind: OptionKind;
  /** one sentence for docs, API reference and help of the flag: the effect, and why one would use it */
  readonly does: string;
  /** in words; left out: none */
  readonly default?: string;
  /** a value, as JSON has it; left out: JSON has none */
  readonly example?: unknown;
  readonly alsoOf?: readonly OptionLevel[];
  /** where it is kept: with the job, in its lane (by which it is claimed), or by itself */
  readonly stored: "job" | "lane" | "apart" | "nowhere";
  /** the field of a job's view that shows it */
  readonly shownAs?: keyof JobView;
  /** the flag of `pawl enqueue`, with its value; left out: none */
  readonly flag?: string;
  /** many jobs cannot share it: each has its own */
  readonly perJob?: true;
  /** that of a task or queue is read where the job runs, so that a deploy changes it for jobs that wait */
  readonly readWhereItRuns?: true;
  /** Checks the value and puts it into the draft, in stored form. It runs only where a value is given. */
  read(value: unknown, draft: JobDraft, options: EnqueueOptions): void;
}

/** A missing row does not compile. The order is that of docs and help. */
export const OPTION_TABLE = {
  priority: {
    kind: "priority",
    does: "how urgent it is, as a share of time and no strict order: 0 to 9, or low (2), normal (5), high (7), critical (9)",
    default: "5",
    example: "high",
    alsoOf: ["queue", "task", "schedule"],
    stored: "lane",
    shownAs: "priority",
    flag: "--priority <priority>",
    read(value, draft) {
      draft.priority = checkPriority(value);
    },
  },
  retry: {
    kind: "retry",
    does: "how a failed attempt is repeated: how many retries (3 are 4 attempts), their delays, or exponential(); of tasks and queues also retryRules() or a function",
    default: "10, exponential from 1 s to 5 min",
    example: ["1s", "1m"],
    alsoOf: ["queue", "task", "schedule"],
    stored: "job",
    shownAs: "retry",
    flag: "--retry <count>",
    readWhereItRuns: true,
    read(value, draft) {
      draft.options.retry = storedRetry(value as Parameters<typeof storedRetry>[0]);
    },
  },
  timeout: {
    kind: "duration",
    does: "one attempt may take this long, then it has failed and is retried: for handlers that hang",
    default: "5 min",
    example: "30s",
    alsoOf: ["queue", "task", "schedule"],
    stored: "job",
    shownAs: "timeout",
    flag: "--timeout <time>",
    readWhereItRuns: true,
    read(value, draft) {
      draft.options.timeout = checkPeriod("timeout", value);
    },
  },
  startWithin: {
    kind: "duration",
    does: "dead (expired) if its first attempt has not started this long after the due time: for work that is worthless when late",
    example: "10m",
    alsoOf: ["queue", "task", "schedule"],
    stored: "job",
    shownAs: "startWithin",
    flag: "--start-within <time>",
    read(value, draft) {
      draft.options.startWithin = checkPeriod("startWithin", value);
    },
  },
  finishWithin: {
    kind: "duration",
    does: "dead (deadline) if it has not succeeded this long after the due time, all attempts and the waits between them included",
    example: "1h",
    alsoOf: ["queue", "task", "schedule"],
    stored: "job",
    shownAs: "finishWithin",
    flag: "--finish-within <time>",
    read(value, draft) {
      draft.options.finishWithin = checkPeriod("finishWithin", value);
    },
  },
  maxCrashes: {
    kind: "count",
    does: "dead (poison) once so many workers vanished with it: for inputs that kill a process",
    default: "3",
    example: 1,
    alsoOf: ["queue", "task", "schedule"],
    stored: "job",
    shownAs: "maxCrashes",
    flag: "--max-crashes <count>",
    read(value, draft) {
      draft.options.maxCrashes = checkMaxCrashes(value);
    },
  },
  spread: {
    kind: "spread",
    does: "jobs due at one instant are started evenly over this long, or from the first to the second of two durations after it",
    example: "10m",
    alsoOf: ["queue", "task", "schedule"],
    stored: "job",
    shownAs: "spread",
    read(value, draft) {
      draft.options.spread = checkSpread(value);
    },
  },
  queue: {
    kind: "queue",
    does: "where it waits: workers, pauses and limits go by queues",
    default: "that of its task, or `default`",
    example: "mail",
    alsoOf: ["task", "schedule"],
    stored: "lane",
    shownAs: "queue",
    flag: "--queue <queue>",
    read(value, draft) {
      draft.queue = checkName("queue", value);
    },
  },
  delay: {
    kind: "duration",
    does: "due this long from now, by the store's clock; not beside runAt",
    example: "5m",
    stored: "apart",
    shownAs: "dueAt",
    flag: "--delay <time>",
    read(value, draft, { runAt }) {
      if (runAt !== undefined) throw invalid("delay", "runAt is given too: choose one");
      const delay = checkDuration("delay", value);
      if (delay > 0) draft.extras.delay = delay;
    },
  },
  runAt: {
    kind: "instant",
    does: "due then: ISO 8601 with an offset, in code also a Date; in the past means now",
    example: "2026-11-15T12:00:00Z",
    stored: "apart",
    shownAs: "dueAt",
    flag: "--run-at <instant>",
    read(value, draft) {
      draft.extras.runAt = checkInstant("runAt", value);
    },
  },
  tenant: {
    kind: "tenant",
    does: "whose job it is: tenants share workers fairly and see nothing of each other",
    default: "`default`",
    example: "acme",
    stored: "lane",
    shownAs: "tenant",
    flag: "--tenant <tenant>",
    read(value, draft) {
      draft.tenant = checkName("tenant", value);
    },
  },
  tags: {
    kind: "labels",
    does: "labels to find it by, 20 at most; they do not choose a worker",
    example: ["invoice", "2026"],
    alsoOf: ["schedule"],
    stored: "job",
    shownAs: "tags",
    flag: "--tag <tag>",
    read(value, draft) {
      const tags = checkTags(value);
      if (tags.length > 0) draft.options.tags = tags;
    },
  },
  unique: {
    kind: "unique",
    does: 'one unfinished job of this tenant, task and key: a second enqueue answers with the first job. The key as a text, or { key, for: "unstarted", "unfinished" or a duration, onConflict: "existing", "reject" or "replace" }',
    example: "order-7",
    alsoOf: ["schedule"],
    stored: "job",
    shownAs: "uniqueKey",
    flag: "--unique <key>",
    perJob: true,
    read(value, draft) {
      setUnique(draft, checkUnique(value));
    },
  },
  debounce: {
    kind: "debounce",
    does: "the last of several enqueues of a key counts: it runs after `wait` of quiet, at most `maxWait` after the first; the others are cancelled",
    example: { key: "cart-7", wait: "30s", maxWait: "5m" },
    stored: "job",
    shownAs: "uniqueKey",
    perJob: true,
    read(value, draft, options) {
      if (options.unique !== undefined) throw invalid("debounce", "unique is given too: choose one");
      for (const name of ["delay", "runAt"] as const)
        if (options[name] !== undefined) throw invalid("debounce", `${name} is given too: debounce says when it runs`);
      const rule = checkDebounce(value);
      setUnique(draft, rule);
      draft.extras.delay = rule.debounce.wait;
    },
  },
  limitKeys: {
    kind: "limit_keys",
    does: "keys of the task's limits, by their names, where its code cannot compute them; null: not limited",
    example: { account: "7" },
    alsoOf: ["schedule"],
    stored: "apart",
    read(value, draft) {
      draft.limitKeys = checkObject("limitKeys", value) as Readonly<Record<string, LimitKeyValue>>;
    },
  },
  idempotencyKey: {
    kind: "key",
    does: "the same call again, within a day, answers with its first job, finished or not; with another task or input it is refused",
    example: "checkout-4711",
    stored: "apart",
    flag: "--idempotency-key <id>",
    perJob: true,
    read(value, draft) {
      draft.extras.idempotencyKey = checkName("idempotency key", value);
    },
  },
  dependsOn: {
    kind: "jobs",
    does: "blocked until these jobs have succeeded",
    example: ["0197a0c0-7d1e-7000-8000-000000000000"],
    stored: "apart",
    shownAs: "waitsFor",
    flag: "--depends-on <id>",
    read(value, draft, { onDependencyDeath }) {
      const parents = checkParents(value);
      if (parents.length > 0) draft.extras.dependsOn = { parents, onDependencyDeath: onDependencyDeath ?? "die" };
    },
  },
  onDependencyDeath: {
    kind: "death_policy",
    does: "what it does when one of the jobs it depends on is dead or cancelled: die with it, run anyway, or wait for a redrive",
    default: "`die`",
    example: "run",
    stored: "apart",
    flag: "--on-dependency-death <policy>",
    read(value, _draft, { dependsOn }) {
      checkOneOf<DeathPolicy>("onDependencyDeath", value, ["die", "run", "wait"]);
      if (dependsOn === undefined) throw invalid("onDependencyDeath", "it says nothing without dependsOn");
    },
  },
  trace: {
    kind: "trace",
    does: "the trace it belongs to, as W3C Trace Context has it: { traceparent, tracestate }",
    default: "what `tracing` says",
    example: { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" },
    stored: "job",
    shownAs: "trace",
    read(value, draft) {
      draft.options.trace = checkTrace("trace", value);
    },
  },
  tx: {
    kind: "transaction",
    does: "a transaction of your own: the job exists when you commit it. A client of pg, or what an adapter of pawl/adapters makes",
    stored: "nowhere",
    read(value, draft) {
      draft.tx = checkTransaction(value);
    },
  },
} as const satisfies { readonly [Name in keyof Required<EnqueueOptions>]: OptionRow };

export type OptionName = keyof typeof OPTION_TABLE;

/** Rows in order, with their names. */
export const OPTION_ROWS = Object.entries(OPTION_TABLE) as unknown as readonly (readonly [name: OptionName, row: OptionRow])[];

/** The names of the options that fit. */
export function optionNames(fits: (row: OptionRow) => boolean): readonly OptionName[] {
  return OPTION_ROWS.filter(([, row]) => fits(row)).map(([name]) => name);
}

/**
 * `npm run docs:states`: prints what the docs take from the code (the state machine, the defaults, the error codes) and from
 * the results of the benchmark, between its markers, `<!-- printed: name -->` and `<!-- /printed -->`. A unit test fails where they are out of date.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { chartedIn, pageParts, reportsIn } from "../bench/report/index.js";
import { JOB_STATES } from "../packages/pawl/src/core/jobs/job.js";
import { ENTRY, LIFECYCLE, lifecycleTable, type Verb } from "../packages/pawl/src/core/jobs/lifecycle.js";
import { BOUNDS_TABLE, LONGEST_NAMES } from "../packages/pawl/src/core/values/bounds.js";
import { DEFAULTS } from "../packages/pawl/src/core/values/defaults.js";
import { errorTable } from "../packages/pawl/src/core/values/error.js";
import { OPTION_ROWS } from "../packages/pawl/src/scheduler/enqueue/option-table.js";
import { FILTER_ROWS } from "../packages/pawl/src/scheduler/jobs/filter-table.js";

const ROOT = resolve(import.meta.dirname, "..");

/** file → what is printed in it, by name */
const PRINTED = {
  "docs/states.md": { entry: entryLine, table: lifecycleTable, diagram },
  "docs/operations.md": { options, defaults, errors },
  "docs/api.md": { filters },
  "docs/cli.md": { flags },
  "docs/bounds.md": { bounds, names },
  "docs/performance.md": {
    bars: () => measured().bars,
    scenarios: () => measured().scenarios,
    systems: () => measured().systems,
    journey: () => measured().journey,
  },
} as const satisfies Record<string, Readonly<Record<string, () => string>>>;

export type PrintedFile = keyof typeof PRINTED;
export const PRINTED_FILES = Object.keys(PRINTED) as readonly PrintedFile[];

/** The file as it should be. Throws if a marker is missing. */
export function printed(file: PrintedFile): string {
  let text = readFileSync(resolve(ROOT, file), "utf8");
  for (const [name, print] of Object.entries(PRINTED[file])) {
    const block = new RegExp(`(<!-- printed: ${name} -->\n)[\\s\\S]*?(<!-- /printed -->)`);
    if (!block.test(text)) throw new Error(`${file} has no place for ${name}`);
    text = text.replace(block, (_, begin: string, end: string) => `${begin}\n${print()}\n\n${end}`);
  }
  return text;
}

/** Of queues, tasks, schedules and jobs: every option of a job is of the last. */
function options(): string {
  const mark = (is: boolean) => (is ? "✓" : "");
  return [
    "| option | queue | task | schedule | what it does | default | example | shown as | `pawl enqueue` |",
    "|---|:-:|:-:|:-:|---|---|---|---|---|",
    ...OPTION_ROWS.map(([name, { alsoOf = [], does, default: byDefault = "none", example, shownAs, flag }]) => {
      const levels = (["queue", "task", "schedule"] as const).map((level) => mark(alsoOf.includes(level)));
      return cells([
        `\`${name}\``,
        ...levels,
        does,
        byDefault,
        code(example === undefined ? undefined : JSON.stringify(example)),
        code(shownAs),
        code(flag?.split(" ")[0]),
      ]);
    }),
  ].join("\n");
}

function filters(): string {
  return [
    "| filter | finds jobs | flag |",
    "|---|---|---|",
    ...FILTER_ROWS.map(([name, { finds, flag }]) => cells([`\`${name}\``, finds, code(flag.split(" ")[0])])),
  ].join("\n");
}

function flags(): string {
  return [
    "| flag of `enqueue` | what it does |",
    "|---|---|",
    ...OPTION_ROWS.flatMap(([, { flag, does }]) => (flag === undefined ? [] : [cells([`\`${flag}\``, does])])),
  ].join("\n");
}

function code(text: string | undefined): string {
  return text === undefined ? "" : `\`${text}\``;
}

function cells(values: readonly string[]): string {
  return `| ${values.map((value) => value.replaceAll("|", "\\|")).join(" | ")} |`;
}

function measured() {
  const reports = reportsIn(resolve(ROOT, "bench/results"));
  return pageParts(reports, chartedIn(reports), "../bench/results/");
}

function entryLine(): string {
  return `A job begins with \`enqueue\`, as ${list(ENTRY.enqueue ?? [])}.`;
}

function list(words: readonly string[]): string {
  const quoted = words.map((word) => `\`${word}\``);
  return quoted.length < 2 ? quoted.join("") : `${quoted.slice(0, -1).join(", ")} or ${quoted.at(-1)}`;
}

/** One arrow per pair of states, with every verb that takes a job along it. */
function diagram(): string {
  const lines = ["```mermaid", "stateDiagram-v2"];
  for (const state of ENTRY.enqueue ?? []) lines.push(`  [*] --> ${state}: enqueue`);
  for (const from of JOB_STATES) {
    const arrows = new Map<string, Verb[]>();
    for (const [verb, targets] of Object.entries(LIFECYCLE[from]) as [Verb, readonly string[]][]) {
      for (const to of targets) if (to !== from) arrows.set(to, [...(arrows.get(to) ?? []), verb]);
    }
    for (const [to, verbs] of arrows) lines.push(`  ${from} --> ${to === "deleted" ? "[*]" : to}: ${verbs.join(", ")}`);
  }
  return [...lines, "```"].join("\n");
}

type Defaults = typeof DEFAULTS;
/** [what it is, where it is set]. Complete by its type: a new default does not compile without its line. */
const MEANINGS: { readonly [Group in keyof Defaults]: { readonly [Name in keyof Defaults[Group]]: readonly [what: string, where: string] } } = {
  job: {
    queue: ["queue of a job", "task, job"],
    priority: ["priority, 0 to 9, 9 most urgent", "queue, task, job"],
    tenant: ["tenant of a job", "job, `pawl.forTenant(tenant)`"],
    retries: ["retries after a failed attempt, over eleven to fourteen minutes", "queue, task, job: `retry`"],
    timeout: ["time one attempt may take", "queue, task, job"],
    maxCrashes: ["workers a job may take down before it is dead", "queue, task, job"],
  },
  backoff: {
    min: ["delay of the first retry", "`retry: exponential({ min })`"],
    max: ["longest delay", "`retry: exponential({ max })`"],
    factor: ["how many times as long each next delay is", "`retry: exponential({ factor })`"],
    jitter: ["share of a delay that chance may take away", "`retry: exponential({ jitter })`"],
  },
  lease: {
    duration: ["how long a lease lasts unless it is renewed", "`work({ leaseDuration })`, and `open(url, { maintenance: { leaseDuration } })` alike"],
    renewInterval: ["between renewals; a third of a shorter lease", "`work({ renewInterval })`"],
  },
  worker: {
    concurrency: ["handlers at a time", "`work({ concurrency })`"],
    maxJobsPerClaim: ["most jobs taken by one claim", "`work({ maxJobsPerClaim })`"],
    lookahead: ["how much work is claimed ahead of free slots, as time", "fixed"],
    pollInterval: ["how long an idle worker waits before it looks again; twice that while wakeups arrive", "`work({ pollInterval })`"],
    shutdownGrace: ["how long a stopping worker lets handlers finish", "`work({ shutdownGrace })`, `worker.stop({ grace })`"],
    overrun: ["how long a handler may go on after its time before it counts as lost", "fixed; how many may be lost: `work({ mostLost })`"],
    intentPoll: ["between looks for cancellations while jobs run; twice that while wakeups arrive", "fixed"],
  },
  breaker: {
    failureRate: ["share of failures at which a breaker opens", "task: `breaker.failureRate`"],
    window: ["how long outcomes are counted", "task: `breaker.window`"],
    minOutcomes: ["outcomes in that time below which it never opens", "task: `breaker.minOutcomes`"],
    probeInterval: ["between probes of an open breaker", "task: `breaker.probeInterval`"],
  },
  capacity: {
    life: ["how long a worker is believed to live after a sign of life", "fixed"],
    sign: ["between signs of life, and between looks for breakers", "fixed"],
    patience: ["how long a task waits for room before room is kept for it", "fixed"],
  },
  schedule: {
    timeZone: ["time zone of a schedule", "schedule"],
    missed: ["what becomes of missed ticks: `skip`, `latest` or `all`", "schedule"],
    overlap: ["what becomes of a tick while an earlier job is unfinished: `allow`, `skip`, `wait` or `cancel`", "schedule"],
    tolerance: ["how late a tick may be and still be on time", "schedule: `missed.tolerance`"],
    window: ["how old a missed tick may be to be made up for", "schedule: `missed.window`"],
    max: ["missed ticks made up for with `all`, the newest ones", "schedule: `missed.max`"],
    pace: ["between two of them", "schedule: `missed.pace`"],
    batch: ["schedules seen to by one transaction", "fixed"],
    app: ["application whose code the schedules given to `open` are", "`open(url, { app })`"],
  },
  maintenance: {
    pollInterval: ["between looks at what is due", "`open(url, { maintenance: { pollInterval } })`"],
    reapInterval: ["between sweeps for expired leases", "`open(url, { maintenance: { reapInterval } })`"],
    pruneInterval: ["between prunings", "`open(url, { maintenance: { pruneInterval } })`"],
    batchSize: ["rows handled by one statement of a duty", "`open(url, { maintenance: { batchSize } })`"],
  },
  keep: {
    jobs: ["how long succeeded and cancelled jobs are kept", "`open(url, { keep: { jobs } })`"],
    dead: ["how long dead jobs are kept", "`open(url, { keep: { dead } })`"],
    series: ["how long the time series of counts are kept", "`open(url, { keep: { series } })`"],
    events: ["how long events are kept for who watches", "fixed"],
    idempotencyKey: ["how long an idempotency key answers with its first job", "fixed"],
  },
  target: {
    concurrency: ["deliveries at a time to one target, of each process", "`pawl.targets.put(task, { concurrency })`"],
    timeout: ["how long one delivery may take to be answered", "`pawl.targets.put(task, { timeout })`"],
    keepOldFor: ["how long the secret before signs beside a new one", "`pawl.targets.rotate(task, { keepOldFor })`"],
  },
  apiKeys: {
    keepOldFor: ["how long the secret before is good beside a new one", "`serviceOf(pawl).apiKeys.rotate(id, { keepOldFor })`"],
  },
  replies: {
    keep: ["how long an answer is kept for the same request again", "fixed"],
    patience: ["after which a request that was not answered is taken for dead", "fixed"],
  },
  ingest: {
    patience: ["how long `enqueueStream` waits to be let in under an ingest limit", "`enqueueStream(…, { wait })`"],
  },
};

const DURATIONS = new Set([
  "job.timeout",
  "lease.duration",
  "lease.renewInterval",
  "worker.lookahead",
  "worker.pollInterval",
  "worker.shutdownGrace",
  "worker.overrun",
  "worker.intentPoll",
  "breaker.window",
  "breaker.probeInterval",
  "capacity.life",
  "capacity.sign",
  "capacity.patience",
  "schedule.tolerance",
  "schedule.window",
  "schedule.pace",
  "maintenance.pollInterval",
  "maintenance.reapInterval",
  "maintenance.pruneInterval",
  "ingest.patience",
  "backoff.min",
  "backoff.max",
  "keep.jobs",
  "keep.dead",
  "keep.series",
  "keep.events",
  "keep.idempotencyKey",
  "target.timeout",
  "target.keepOldFor",
  "apiKeys.keepOldFor",
  "replies.keep",
  "replies.patience",
]);

function defaults(): string {
  const lines = ["| default | value | what it is | set by |", "|---|--:|---|---|"];
  for (const [group, values] of Object.entries(DEFAULTS)) {
    for (const [name, value] of Object.entries(values)) {
      const [what, where] = (MEANINGS as Record<string, Record<string, readonly [string, string]>>)[group]?.[name] ?? ["?", "?"];
      lines.push(`| \`${group}.${name}\` | ${shown(`${group}.${name}`, value)} | ${what} | ${where} |`);
    }
  }
  return lines.join("\n");
}

function bounds(): string {
  const lines = ["| bound | value | of what | more |", "|---|--:|---|---|"];
  for (const [name, [most, unit, what, beyond]] of Object.entries(BOUNDS_TABLE)) {
    const more = ["cut", "dropped", "split"].includes(beyond) ? beyond : `\`${beyond}\``;
    lines.push(`| \`${name}\` | ${sized(most, unit)} | ${what} | ${more} |`);
  }
  return lines.join("\n");
}

function sized(most: number, unit: string): string {
  if (unit === "items") return most.toLocaleString("en");
  if (unit === "bytes") return most % 1_048_576 === 0 ? `${most / 1_048_576} MiB` : `${most / 1_024} KiB`;
  return `${most.toLocaleString("en")} characters`;
}

function names(): string {
  const lines = ["| name of | characters |", "|---|--:|", ...Object.entries(LONGEST_NAMES).map(([kind, most]) => `| ${kind} | ${most} |`)];
  return lines.join("\n");
}

const UNITS: readonly (readonly [string, number])[] = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1_000],
];

function shown(name: string, value: string | number): string {
  if (typeof value === "string") return `\`${value}\``;
  if (!DURATIONS.has(name)) return value.toLocaleString("en");
  const [unit, size] = UNITS.find(([, each]) => value >= each && value % each === 0) ?? ["ms", 1];
  return `${value / size} ${unit}`;
}

function errors(): string {
  const lines = ["| code | what happened | what to do |", "|---|---|---|"];
  for (const [code, [message, help]] of Object.entries(errorTable)) lines.push(`| \`${code}\` | ${cell(message)} | ${cell(help)} |`);
  return lines.join("\n");
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|");
}

if (process.argv[1] === import.meta.filename) {
  for (const file of PRINTED_FILES) {
    const text = printed(file);
    if (text === readFileSync(resolve(ROOT, file), "utf8")) continue;
    writeFileSync(resolve(ROOT, file), text);
    console.log(`printed ${file}`);
  }
}

import type { SlotUse, TaskUse } from "../limits/slot-use.js";
import type { LiveVersion } from "./worker-versions.js";
import { oddVersions } from "./worker-versions.js";

/** What a store says of itself, as raw facts. Times are its own clock's, in ms since 1970; spans are ms. */
export interface Checkup {
  readonly now: number;
  /** open transactions, replication slots and prepared transactions that keep old row versions from being cleared away */
  readonly pins: readonly Pin[];
  readonly tables: readonly TableState[];
  /** months, from this one on, for which there is no place to put jobs: "2026_11" */
  readonly missingMonths: readonly string[];
  /** leases past their end that nobody has taken back */
  readonly expired: { readonly leases: number; readonly jobs: number; readonly longest: number };
  /** whether a wakeup sent to itself arrived */
  readonly hears: boolean;
}

export interface Pin {
  readonly kind: "transaction" | "slot" | "prepared";
  /** the process id of a session, the name of a slot, the id of a prepared transaction */
  readonly name: string;
  readonly application: string;
  /** it has done nothing for that long, inside its transaction */
  readonly idleFor?: number;
  /** how long its transaction is open; absent where nobody knows (a slot) */
  readonly openFor?: number;
  /** whether it keeps old rows of this database; a transaction that has looked at nothing yet does not */
  readonly holds: boolean;
}

export interface TableState {
  readonly table: string;
  readonly live: number;
  readonly dead: number;
  readonly bytes: number;
}

/** All that a judgement needs: the store's facts, and what is known besides. */
export interface StoreSituation extends Checkup {
  /** ms by which this machine's clock is ahead of the store's */
  readonly ahead: number;
  /** ms for which the most overdue duty is overdue; 0: none is */
  readonly overdue: number;
  readonly unserved: readonly { readonly lane: string; readonly why: string }[];
  readonly workers: readonly LiveVersion[];
  /** how full the workers are that say so */
  readonly slots: readonly { readonly worker: string; readonly use: SlotUse }[];
  /** of this process */
  readonly version: string;
}

export const CHECKS = [
  "clock",
  "horizon",
  "idle_transaction",
  "bloat",
  "partitions",
  "leases",
  "maintenance",
  "versions",
  "wake_ups",
  "unserved",
  "stuck",
] as const;
export type Check = (typeof CHECKS)[number];

/** One thing that is wrong: what was found, what it costs, and how to mend it. */
export interface Finding {
  readonly check: Check;
  readonly level: "warning" | "critical";
  readonly found: string;
  readonly costs: string;
  readonly mend: string;
}

/** Beyond this a delayed job, a lease or a schedule is off by what people notice. */
const MAX_CLOCK_OFFSET_MS = 5_000;
/** Versions of a row nobody needs any more, in a table that is small when all is well. */
const MAX_DEAD_ROWS = 50_000;

type Judge = (situation: StoreSituation, patience: number) => readonly Omit<Finding, "check">[];

const JUDGES: Readonly<Record<Check, Judge>> = {
  clock: ({ ahead }) =>
    Math.abs(ahead) < MAX_CLOCK_OFFSET_MS
      ? []
      : [
          {
            level: "warning",
            found: `this machine's clock is ${span(Math.abs(ahead))} ${ahead > 0 ? "ahead of" : "behind"} the store's`,
            costs: "due times and timetables follow the store's clock: what people read here, and times given as instants, are off by that much",
            mend: "synchronise both clocks (NTP); the store's is the one that counts",
          },
        ],

  horizon: ({ pins }, patience) =>
    pins
      .filter(({ kind, holds, openFor }) => holds && (kind === "slot" || (openFor ?? 0) >= patience))
      .map(({ kind, name, application, openFor }) => ({
        level: "warning",
        found: `${pinInWords(kind, name, application)} holds back the clearing of old rows${openFor === undefined ? "" : ` for ${span(openFor)}`}`,
        costs: "tables and indexes of everything in this server grow until it ends; Pawl's own work stays flat, other queries do not",
        mend: mendPin(kind, name),
      })),

  idle_transaction: ({ pins }, patience) =>
    pins
      .filter(({ idleFor }) => idleFor !== undefined && idleFor >= patience)
      .map(({ name, application, idleFor = 0, holds }) => ({
        level: "warning",
        found: `${pinInWords("transaction", name, application)} has been idle inside a transaction for ${span(idleFor)}`,
        costs: `it keeps its locks${holds ? ", and old rows from being cleared away" : ""}: whoever needs what it holds waits`,
        mend: `end it with select pg_terminate_backend(${name}), and set idle_in_transaction_session_timeout for that application`,
      })),

  bloat: ({ tables }) =>
    tables
      .filter(({ live, dead }) => dead >= MAX_DEAD_ROWS && dead > 2 * live)
      .map(({ table, live, dead, bytes }) => ({
        level: "warning",
        found: `table ${table} holds ${count(dead)} dead rows beside ${count(live)} live ones, in ${Math.ceil(bytes / 1_048_576)} MB`,
        costs: "looks at it read more pages than they need, and the disk holds what nobody wants",
        mend: `run vacuum ${table}; if they stay, something holds them back: see horizon; if they come back, autovacuum is off or too slow`,
      })),

  partitions: ({ missingMonths }) =>
    missingMonths.length === 0
      ? []
      : [
          {
            level: "critical",
            found: `there is no partition for ${missingMonths.join(", ")}`,
            costs: "jobs due then cannot be stored: their enqueue fails",
            mend: "run pawl migrate, which makes them, and let a process with maintenance run: it makes them three months ahead",
          },
        ],

  leases: ({ expired }, patience) =>
    expired.leases === 0 || expired.longest < patience
      ? []
      : [
          {
            level: "critical",
            found: `${plural(expired.leases, "lease")} with ${plural(expired.jobs, "job")} ended up to ${span(expired.longest)} ago, and nobody renews or takes them back`,
            costs: "their jobs are neither run nor given to another worker",
            mend: "let a process with maintenance run: open(url) does it unless told not to, and so does pawl serve",
          },
        ],

  maintenance: ({ overdue }, patience) =>
    overdue < patience || overdue === 0
      ? []
      : [
          {
            level: "critical",
            found: `work for the whole store is overdue by ${span(overdue)}: nobody does maintenance`,
            costs: "delayed jobs are not started, schedules do not tick, jobs of workers that vanished stay where they are",
            mend: "let a process with maintenance run: open(url) does it unless told not to, and so does pawl serve",
          },
        ],

  versions: ({ workers, version }) => {
    const odd = oddVersions(workers, version);
    return odd === undefined
      ? []
      : [
          {
            level: "warning",
            found: `more than one version of Pawl is at work: ${odd}`,
            costs: "what only the newer one knows is not done by the older one; fine during a deploy, not after it",
            mend: "finish the deploy: restart the processes of the older version",
          },
        ];
  },

  wake_ups: ({ hears }) =>
    hears
      ? []
      : [
          {
            level: "warning",
            found: "wakeups do not arrive: LISTEN hears nothing, as behind a pooler in transaction mode",
            costs: "workers find new jobs at their next look, 1 to 2.4 s later, instead of at once",
            mend: "give a URL past the pooler: open(url, { postgres: { listenUrl } }), or PAWL_STORE_LISTEN_URL",
          },
        ],

  unserved: ({ unserved }) =>
    unserved.map(({ lane, why }) => ({
      level: "warning",
      found: `the jobs of ${lane} wait for nobody: ${why}`,
      costs: "they stay ready and are never run",
      mend: "start a worker that has the task and serves that queue and tenant, or cancel the jobs",
    })),

  stuck: ({ slots, now }, patience) =>
    slots.flatMap(({ worker, use }) =>
      use.tasks.flatMap((task) => {
        const found = stuckInWords(task, now, patience);
        if (found === undefined) return [];
        return [
          {
            level: use.stuck === true ? "critical" : "warning",
            found: `at worker ${worker} ${found}`,
            costs: use.stuck === true ? "that worker takes nothing more" : `it keeps its slot: ${use.inUse} of ${use.total} there are in use`,
            mend: `see what it waits for (its jobs: pawl jobs list --task ${task.task}), give that a timeout, and have it heed ctx.signal; to have its slot back now, restart that worker`,
          },
        ];
      }),
    ),
};

/** A handler has stuck, most likely, if it takes so many times as long as they do, and as the longest of them lately. */
const FAR_BEYOND = { took: 10, longest: 3 } as const;

function stuckInWords({ task, since, took, longest, overrun = 0, overdue }: TaskUse, now: number, patience: number): string | undefined {
  if (overdue !== undefined && now - overdue >= patience)
    return `${plural(overrun, "handler")} of task ${task} ${overrun === 1 ? "goes" : "go"} on though ${overrun === 1 ? "its" : "their"} time is up, for ${span(now - overdue)} by now`;
  if (since === undefined || took === undefined || longest === undefined || overdue !== undefined) return undefined;
  const runs = now - since;
  if (runs < patience || runs < FAR_BEYOND.took * took || runs < FAR_BEYOND.longest * longest) return undefined;
  return `a handler of task ${task} has been running for ${span(runs)}, where they take ${span(took)} lately`;
}

/** What is wrong, by check. `patience`: ms that something may last before it counts. */
export function diagnose(situation: StoreSituation, patience: number): readonly Finding[] {
  return CHECKS.flatMap((check) => JUDGES[check](situation, patience).map((finding) => ({ check, ...finding })));
}

function pinInWords(kind: Pin["kind"], name: string, application: string): string {
  if (kind === "slot") return `the replication slot ${name}`;
  if (kind === "prepared") return `the prepared transaction ${name}`;
  return `session ${name}${application === "" ? "" : ` (${application})`}`;
}

function mendPin(kind: Pin["kind"], name: string): string {
  if (kind === "slot") return `let its subscriber catch up, or drop it: select pg_drop_replication_slot('${name}')`;
  if (kind === "prepared") return `commit prepared or rollback prepared '${name}'`;
  return `let it finish, or end it: select pg_terminate_backend(${name})`;
}

function span(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 120_000) return `${Math.round(ms / 1_000)} s`;
  if (ms < 7_200_000) return `${Math.round(ms / 60_000)} min`;
  return `${Math.round(ms / 3_600_000)} h`;
}

function count(n: number): string {
  return n.toLocaleString("en");
}

function plural(n: number, noun: string): string {
  return `${count(n)} ${noun}${n === 1 ? "" : "s"}`;
}

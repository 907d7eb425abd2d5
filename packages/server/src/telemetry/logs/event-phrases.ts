import type { ErrorCode, Events } from "pawl";
import type { EventName } from "pawl/service";
import { duration, plural } from "../../text/amounts.js";
import { messageOf } from "../../text/error-message.js";

export const LEVELS = ["debug", "info", "warn", "error"] as const;
export type Level = (typeof LEVELS)[number];

/** What is said of something that happened: by the log as a line of it, by the live views as one of theirs. */
export interface EventPhrase {
  readonly level: Level;
  /** the task, queue or worker that it is about, or who speaks */
  readonly subject: string;
  readonly text: string;
  readonly fields?: Readonly<Record<string, unknown>>;
  /** lines of one class come at most once a second in the log, with how many were left out; absent: every one is written */
  readonly class?: string;
  /** how the live views mark it; absent: they do not show it */
  readonly mark?: ActivityMark;
}

export type ActivityMark = "enqueued" | "good" | "again" | "dead" | "note" | "trouble";

/** What is said of an event, and the most that is ever said of it: below that the log does not listen. */
interface EventPhrases<E extends EventName> {
  readonly maxLevel: Level;
  readonly inTerminal: boolean;
  /** nothing, where it is not worth a word after all */
  readonly phrase: (event: Events[E]) => EventPhrase | undefined;
}

type PhraseOf<E extends EventName> = (event: Events[E]) => Omit<EventPhrase, "level" | "mark">;

/** For the log only. */
const forLog = <E extends EventName>(level: Level, line: PhraseOf<E>): EventPhrases<E> => ({
  maxLevel: level,
  inTerminal: false,
  phrase: (event) => ({ level, ...line(event) }),
});
/** For the log and the live views. */
const forLogAndTerminal = <E extends EventName>(level: Level, mark: ActivityMark, line: PhraseOf<E>): EventPhrases<E> => ({
  maxLevel: level,
  inTerminal: true,
  phrase: (event) => ({ level, mark, ...line(event) }),
});

/** The one place where words are found for what happens. Complete by its type: null is what metrics tell better. */
export const EVENT_PHRASES: { readonly [E in EventName]: EventPhrases<E> | null } = {
  "jobs.enqueued": forLogAndTerminal("debug", "enqueued", ({ count, lanes }) => {
    const tasks = [...new Set(lanes.map(({ lane }) => lane.task))];
    return { subject: firstFew(tasks), text: `${plural(count, "job")} enqueued`, fields: { count, tasks } };
  }),
  "ingest.refused": forLog("warn", ({ kind, name, limit, jobs, retryAfter }) => ({
    subject: `${kind} ${name}`,
    text: `an ingest limit refused ${plural(jobs, "job")}; worth another try in ${duration(retryAfter)}`,
    fields: { kind, name, limit, jobs, retryAfter },
    class: `ingest.refused ${kind} ${name}`,
  })),
  "jobs.claimed": forLog("debug", ({ worker, lease, count }) => ({
    subject: `worker ${worker}`,
    text: `${plural(count, "job")} claimed`,
    fields: { worker, lease, count },
  })),
  "attempt.started": forLog("debug", ({ job, lane, attempt, worker }) => ({
    subject: lane.task,
    text: `attempt ${attempt} began`,
    fields: { job, ...lane, attempt, worker },
  })),
  "attempt.settled": { maxLevel: "error", inTerminal: true, phrase: settledPhrase },
  "retry.failed": forLogAndTerminal("error", "trouble", ({ job, lane, attempt, worker, reason }) => ({
    subject: lane.task,
    text: `its retry function failed, and the default policy decided: ${reason}`,
    fields: { job, ...lane, attempt, worker },
    class: `retry.failed ${lane.task}`,
  })),
  "job.changed": forLog("debug", ({ job, lane, verb, from, to }) => ({
    subject: lane.task,
    text: `somebody asked to ${verb} a job`,
    fields: { job, ...lane, verb, from, to },
  })),
  "claims.paused": forLogAndTerminal("info", "note", ({ kind, name }) => ({ subject: `${kind} ${name}`, text: "paused", fields: { kind, name } })),
  "claims.resumed": forLogAndTerminal("info", "note", ({ kind, name }) => ({ subject: `${kind} ${name}`, text: "resumed", fields: { kind, name } })),
  "attempt.stale": forLogAndTerminal("warn", "trouble", ({ job, worker, outcome }) => ({
    subject: `worker ${worker}`,
    text: `job ${job} is no longer its own: the outcome was let go`,
    fields: { job, worker, outcome },
    class: "attempt.stale",
  })),
  "worker.blocked": forLog("warn", ({ worker, lag }) => ({
    subject: `worker ${worker}`,
    text: `a handler kept the event loop from running for ${duration(lag)}`,
    fields: { worker, lag },
    class: "worker.blocked",
  })),
  "lines.lost": forLog("error", ({ worker, lines, error }) => ({
    subject: `worker ${worker}`,
    text: `${plural(lines, "log line")} of jobs lost (progress counts as one): ${messageOf(error)}`,
    fields: { worker, lines, ...codeOf(error) },
    class: "lines.lost",
  })),
  "lease.lost": forLogAndTerminal("warn", "trouble", ({ worker, lease, jobs, reason }) => ({
    subject: `worker ${worker}`,
    text: `lost a lease on ${plural(jobs, "job")}: ${reason}`,
    fields: { worker, lease, jobs },
    class: "lease.lost",
  })),
  "intent.received": forLog("info", ({ job, intent }) => ({
    subject: `job ${job}`,
    text: `its worker was asked to ${intent} it`,
    fields: { job, intent },
  })),
  "maintenance.polled": null,
  "duty.ran": forLog("debug", ({ duty, count, duration: took }) => ({
    subject: duty,
    text: `did ${count.toLocaleString("en")} in ${duration(took)}`,
    fields: { duty, count, duration: took },
  })),
  "duty.failed": forLogAndTerminal("error", "trouble", ({ duty, error }) => ({
    subject: duty,
    text: `failed, and is tried again: ${messageOf(error)}`,
    fields: { duty, ...codeOf(error) },
    class: `duty.failed ${duty}`,
  })),
  "jobs.promoted": forLog("debug", ({ count }) => ({ subject: "promoter", text: `${plural(count, "delayed job")} ready`, fields: { count } })),
  "schedules.ticked": forLog("debug", ({ schedules, jobs, lateness }) => ({
    subject: "ticker",
    text: `${plural(schedules, "schedule")} ticked, ${plural(jobs, "job")} enqueued`,
    fields: { schedules, jobs, lateness },
  })),
  "leases.reaped": { maxLevel: "warn", inTerminal: true, phrase: ({ leases, jobs }) => (jobs === 0 ? undefined : reapedPhrase(leases, jobs)) },
  "worker.started": forLog("info", ({ worker }) => ({ subject: `worker ${worker}`, text: "started", fields: { worker } })),
  "worker.stopping": forLog("info", ({ worker, running }) => ({
    subject: `worker ${worker}`,
    text: `is stopping, with ${plural(running, "job")} in hand`,
    fields: { worker, running },
  })),
  "worker.stopped": forLog("info", ({ worker, released, unended }) => ({
    subject: `worker ${worker}`,
    text: `stopped, ${plural(released, "job")} given back${unended === 0 ? "" : `; ${plural(unended, "handler")} did not end`}`,
    fields: { worker, released, unended },
  })),
  "breaker.changed": {
    maxLevel: "warn",
    inTerminal: true,
    phrase: ({ worker, tenant, task, state }) => ({
      level: state === "open" ? "warn" : "info",
      mark: state === "open" ? "trouble" : "note",
      subject: task,
      text: `its breaker for tenant ${tenant} is ${state}`,
      fields: { worker, tenant, task, state },
      class: `breaker.changed ${task} ${state}`,
    }),
  },
  "worker.stalled": forLog("warn", ({ worker, idleFor }) => ({
    subject: `worker ${worker}`,
    text: `has free slots, knows of work, and has got none for ${duration(idleFor)}`,
    fields: { worker, idleFor },
    class: "worker.stalled",
  })),
  "worker.stuck": forLogAndTerminal("error", "trouble", ({ worker, overrun, concurrency }) => ({
    subject: `worker ${worker}`,
    text: `is stuck: ${plural(overrun, "handler")} of ${concurrency} went on long after their time, so it takes nothing more. Replace its process`,
    fields: { worker, overrun, concurrency, code: "worker_stuck" satisfies ErrorCode },
  })),
  "worker.unstuck": forLogAndTerminal("info", "note", ({ worker }) => ({
    subject: `worker ${worker}`,
    text: "takes jobs again: handlers that went on after their time have ended",
    fields: { worker },
  })),
  "store.operation": null,
  "store.lost": forLogAndTerminal("error", "trouble", ({ error }) => ({
    subject: "store",
    text: `cannot be reached: ${messageOf(error)}`,
    fields: codeOf(error),
    class: "store.lost",
  })),
  "store.restored": forLogAndTerminal("info", "note", ({ outage }) => ({
    subject: "store",
    text: `is back after ${duration(outage)}`,
    fields: { outage },
  })),
};

function reapedPhrase(leases: number, jobs: number): EventPhrase {
  const text = `took back ${plural(jobs, "job")} of workers that vanished`;
  return { level: "warn", mark: "trouble", subject: "reaper", text, fields: { leases, jobs }, class: "leases.reaped" };
}

function settledPhrase({
  job,
  lane,
  attempt,
  worker,
  outcome,
  next,
  duration: took,
  failure,
  diedOf,
  delay,
}: Events["attempt.settled"]): EventPhrase {
  const about = {
    subject: lane.task,
    fields: { job, ...lane, attempt, worker, outcome, next, duration: took, ...(delay === undefined ? {} : { delay }) },
  };
  const again = `again in ${duration(delay ?? 0)}`;
  if (failure === undefined && next !== "dead") return { ...about, level: "debug", ...outcomePhrase(outcome, took, again) };
  const name = failure?.kind === "error" ? failure.name : failure?.kind;
  const fields = { ...about.fields, class: name };
  const kind = `${lane.task} ${name}`;
  const why = failure === undefined ? outcome : failure.message;
  if (next === "cancelled") return { ...about, fields, level: "info", mark: "note", text: `cancelled: ${why}`, class: `cancelled ${kind}` };
  if (next === "dead")
    return {
      ...about,
      ...deadPhrase(attempt, why, diedOf),
      fields: { ...fields, ...(diedOf === undefined ? {} : { diedOf }) },
      class: `dead ${kind}`,
    };
  const became = outcome === "snoozed" ? "put off" : `attempt ${attempt} failed`;
  return { ...about, fields, level: "warn", mark: "again", text: `${became}: ${why}; ${again}`, class: `${outcome} ${kind}` };
}

function deadPhrase(attempt: number, why: string, diedOf: string | undefined): Pick<EventPhrase, "level" | "mark" | "text"> {
  const after = `dead after ${plural(attempt, "attempt")}`;
  return {
    level: "error",
    mark: "dead",
    text: diedOf === undefined ? `${after}: ${why}` : `${after}, by its ${diedOf}; the last one failed: ${why}`,
  };
}

function outcomePhrase(outcome: Events["attempt.settled"]["outcome"], took: number, again: string): Pick<EventPhrase, "text" | "mark"> {
  switch (outcome) {
    case "succeeded":
      return { mark: "good", text: `succeeded in ${duration(took)}` };
    case "snoozed":
      return { mark: "again", text: `not now; ${again}` };
    case "released":
      return { mark: "note", text: "given back unfinished; no attempt spent" };
    default:
      return { mark: "note", text: outcome };
  }
}

/** Whether there is anything to log at this level; asked of every settled attempt before words are found for it. */
export function isBelowLevel({ failure, next }: Events["attempt.settled"], level: Level): boolean {
  return failure === undefined && next !== "dead" && level !== "debug";
}

function firstFew(names: readonly string[], max = 3): string {
  return names.length > max ? `${names.slice(0, max).join(", ")} and ${names.length - max} more` : names.join(", ");
}

function codeOf(error: unknown): { readonly code?: string } {
  const code: unknown = (error as { code?: unknown } | undefined)?.code;
  return typeof code === "string" ? { code } : {};
}

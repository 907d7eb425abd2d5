import type { ErrorCode, EventName, Events } from "pawl";
import { messageOf } from "../errors/message-of.js";
import { duration, plural } from "./amounts.js";

export const LEVELS = ["debug", "info", "warn", "error"] as const;
export type Level = (typeof LEVELS)[number];

/** What is said of something that happened: by the log as a line of it, by the live views as one of theirs. */
export interface Said {
  readonly level: Level;
  /** the task, queue or worker that it is about, or who speaks */
  readonly subject: string;
  readonly text: string;
  readonly fields?: Readonly<Record<string, unknown>>;
  /** lines of one class come at most once a second in the log, with how many were left out; absent: every one is written */
  readonly class?: string;
  /** how the live views mark it; absent: they do not show it */
  readonly mark?: Mark;
}

export type Mark = "enqueued" | "good" | "again" | "dead" | "note" | "trouble";

/** What is said of an event, and the most that is ever said of it: below that the log does not listen. */
interface Words<E extends EventName> {
  readonly most: Level;
  readonly live: boolean;
  /** nothing, where it is not worth a word after all */
  readonly of: (event: Events[E]) => Said | undefined;
}

type Line<E extends EventName> = (event: Events[E]) => Omit<Said, "level" | "mark">;

/** For the log only. */
const logged = <E extends EventName>(level: Level, line: Line<E>): Words<E> => ({
  most: level,
  live: false,
  of: (event) => ({ level, ...line(event) }),
});
/** For the log and the live views. */
const shown = <E extends EventName>(level: Level, mark: Mark, line: Line<E>): Words<E> => ({
  most: level,
  live: true,
  of: (event) => ({ level, mark, ...line(event) }),
});

/** The one place where words are found for what happens. Complete by its type: null is what metrics tell better. */
export const WORDS: { readonly [E in EventName]: Words<E> | null } = {
  "jobs.enqueued": shown("debug", "enqueued", ({ count, lanes }) => {
    const tasks = [...new Set(lanes.map(({ task }) => task))];
    return { subject: few(tasks), text: `${plural(count, "job")} enqueued`, fields: { count, tasks } };
  }),
  "ingest.refused": logged("warn", ({ kind, name, limit, jobs, retryAfter }) => ({
    subject: `${kind} ${name}`,
    text: `an ingest limit refused ${plural(jobs, "job")}; worth another try in ${duration(retryAfter)}`,
    fields: { kind, name, limit, jobs, retryAfter },
    class: `ingest.refused ${kind} ${name}`,
  })),
  "jobs.claimed": logged("debug", ({ worker, lease, count }) => ({
    subject: `worker ${worker}`,
    text: `${plural(count, "job")} claimed`,
    fields: { worker, lease, count },
  })),
  "attempt.started": logged("debug", ({ job, lane, attempt, worker }) => ({
    subject: lane.task,
    text: `attempt ${attempt} began`,
    fields: { job, ...lane, attempt, worker },
  })),
  "attempt.settled": { most: "error", live: true, of: settled },
  "retry.failed": shown("error", "trouble", ({ job, lane, attempt, worker, why }) => ({
    subject: lane.task,
    text: `its retry function failed, and the default policy decided: ${why}`,
    fields: { job, ...lane, attempt, worker },
    class: `retry.failed ${lane.task}`,
  })),
  "job.changed": logged("debug", ({ job, lane, verb, from, to }) => ({
    subject: lane.task,
    text: `somebody asked to ${verb} a job`,
    fields: { job, ...lane, verb, from, to },
  })),
  "lanes.paused": shown("info", "note", ({ kind, name }) => ({ subject: `${kind} ${name}`, text: "paused", fields: { kind, name } })),
  "lanes.resumed": shown("info", "note", ({ kind, name }) => ({ subject: `${kind} ${name}`, text: "resumed", fields: { kind, name } })),
  "attempt.stale": shown("warn", "trouble", ({ job, worker, outcome }) => ({
    subject: `worker ${worker}`,
    text: `job ${job} is no longer its own: the outcome was let go`,
    fields: { job, worker, outcome },
    class: "attempt.stale",
  })),
  "attempt.blocked": logged("warn", ({ worker, lag }) => ({
    subject: `worker ${worker}`,
    text: `a handler kept the event loop from running for ${duration(lag)}`,
    fields: { worker, lag },
    class: "attempt.blocked",
  })),
  "lines.lost": logged("error", ({ worker, lines, error }) => ({
    subject: `worker ${worker}`,
    text: `${plural(lines, "log line")} of jobs lost (progress counts as one): ${messageOf(error)}`,
    fields: { worker, lines, ...codeOf(error) },
    class: "lines.lost",
  })),
  "lease.lost": shown("warn", "trouble", ({ worker, lease, jobs, why }) => ({
    subject: `worker ${worker}`,
    text: `lost a lease on ${plural(jobs, "job")}: ${why}`,
    fields: { worker, lease, jobs },
    class: "lease.lost",
  })),
  "intent.received": logged("info", ({ job, intent }) => ({
    subject: `job ${job}`,
    text: `its worker was asked to ${intent} it`,
    fields: { job, intent },
  })),
  "duties.pulsed": null,
  "duty.ran": logged("debug", ({ duty, count, duration: took }) => ({
    subject: duty,
    text: `did ${count.toLocaleString("en")} in ${duration(took)}`,
    fields: { duty, count, duration: took },
  })),
  "duty.failed": shown("error", "trouble", ({ duty, error }) => ({
    subject: duty,
    text: `failed, and is tried again: ${messageOf(error)}`,
    fields: { duty, ...codeOf(error) },
    class: `duty.failed ${duty}`,
  })),
  "jobs.promoted": logged("debug", ({ count }) => ({ subject: "promoter", text: `${plural(count, "delayed job")} ready`, fields: { count } })),
  "schedules.ticked": logged("debug", ({ schedules, jobs, latest }) => ({
    subject: "ticker",
    text: `${plural(schedules, "schedule")} ticked, ${plural(jobs, "job")} enqueued`,
    fields: { schedules, jobs, latest },
  })),
  "leases.reaped": { most: "warn", live: true, of: ({ leases, jobs }) => (jobs === 0 ? undefined : reaped(leases, jobs)) },
  "worker.started": logged("info", ({ worker }) => ({ subject: `worker ${worker}`, text: "started", fields: { worker } })),
  "worker.stopping": logged("info", ({ worker, running }) => ({
    subject: `worker ${worker}`,
    text: `is stopping, with ${plural(running, "job")} in hand`,
    fields: { worker, running },
  })),
  "worker.stopped": logged("info", ({ worker, released, unended }) => ({
    subject: `worker ${worker}`,
    text: `stopped, ${plural(released, "job")} given back${unended === 0 ? "" : `; ${plural(unended, "handler")} did not end`}`,
    fields: { worker, released, unended },
  })),
  "breaker.changed": {
    most: "warn",
    live: true,
    of: ({ worker, tenant, task, state }) => ({
      level: state === "open" ? "warn" : "info",
      mark: state === "open" ? "trouble" : "note",
      subject: task,
      text: `its breaker for tenant ${tenant} is ${state}`,
      fields: { worker, tenant, task, state },
      class: `breaker.changed ${task} ${state}`,
    }),
  },
  "worker.stalled": logged("warn", ({ worker, idleFor }) => ({
    subject: `worker ${worker}`,
    text: `has free slots, knows of work, and has got none for ${duration(idleFor)}`,
    fields: { worker, idleFor },
    class: "worker.stalled",
  })),
  "worker.stuck": shown("error", "trouble", ({ worker, overrun, concurrency }) => ({
    subject: `worker ${worker}`,
    text: `is stuck: ${plural(overrun, "handler")} of ${concurrency} went on long after their time, so it takes nothing more. Replace its process`,
    fields: { worker, overrun, concurrency, code: "worker_stuck" satisfies ErrorCode },
  })),
  "worker.unstuck": shown("info", "note", ({ worker }) => ({
    subject: `worker ${worker}`,
    text: "takes jobs again: handlers that went on after their time have ended",
    fields: { worker },
  })),
  "store.operation": null,
  "store.lost": shown("error", "trouble", ({ error }) => ({
    subject: "store",
    text: `cannot be reached: ${messageOf(error)}`,
    fields: codeOf(error),
    class: "store.lost",
  })),
  "store.back": shown("info", "note", ({ away }) => ({ subject: "store", text: `is back after ${duration(away)}`, fields: { away } })),
};

function reaped(leases: number, jobs: number): Said {
  const text = `took back ${plural(jobs, "job")} of workers that vanished`;
  return { level: "warn", mark: "trouble", subject: "reaper", text, fields: { leases, jobs }, class: "leases.reaped" };
}

function settled({ job, lane, attempt, worker, outcome, next, duration: took, failure, diedOf, delay }: Events["attempt.settled"]): Said {
  const about = {
    subject: lane.task,
    fields: { job, ...lane, attempt, worker, outcome, next, duration: took, ...(delay === undefined ? {} : { delay }) },
  };
  const again = `again in ${duration(delay ?? 0)}`;
  if (failure === undefined && next !== "dead") return { ...about, level: "debug", ...wentOn(outcome, took, again) };
  const name = failure?.kind === "error" ? failure.name : failure?.kind;
  const fields = { ...about.fields, class: name };
  const kind = `${lane.task} ${name}`;
  const why = failure === undefined ? outcome : failure.message;
  if (next === "cancelled") return { ...about, fields, level: "info", mark: "note", text: `cancelled: ${why}`, class: `cancelled ${kind}` };
  if (next === "dead")
    return { ...about, ...deadOf(attempt, why, diedOf), fields: { ...fields, ...(diedOf === undefined ? {} : { diedOf }) }, class: `dead ${kind}` };
  const became = outcome === "snoozed" ? "put off" : `attempt ${attempt} failed`;
  return { ...about, fields, level: "warn", mark: "again", text: `${became}: ${why}; ${again}`, class: `${outcome} ${kind}` };
}

function deadOf(attempt: number, why: string, diedOf: string | undefined): Pick<Said, "level" | "mark" | "text"> {
  const after = `dead after ${plural(attempt, "attempt")}`;
  return {
    level: "error",
    mark: "dead",
    text: diedOf === undefined ? `${after}: ${why}` : `${after}, by its ${diedOf}; the last one failed: ${why}`,
  };
}

function wentOn(outcome: Events["attempt.settled"]["outcome"], took: number, again: string): Pick<Said, "text" | "mark"> {
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
export function isQuiet({ failure, next }: Events["attempt.settled"], level: Level): boolean {
  return failure === undefined && next !== "dead" && level !== "debug";
}

function few(names: readonly string[], most = 3): string {
  return names.length > most ? `${names.slice(0, most).join(", ")} and ${names.length - most} more` : names.join(", ");
}

function codeOf(error: unknown): { readonly code?: string } {
  const code: unknown = (error as { code?: unknown } | undefined)?.code;
  return typeof code === "string" ? { code } : {};
}

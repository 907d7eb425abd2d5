import type { EventName, Events } from "pawl";
import { messageOf } from "../errors/message-of.js";

export const LEVELS = ["debug", "info", "warn", "error"] as const;
export type Level = (typeof LEVELS)[number];

/** A line of the log, before it is written. */
export interface Line {
  readonly level: Level;
  readonly text: string;
  readonly fields?: Readonly<Record<string, unknown>>;
  /** lines of one class come at most once a second, with how many were left out; absent: every one is written */
  readonly class?: string;
}

/** What is said of an event, and the most that is ever said of it: below that nobody listens. */
interface Words<E extends EventName> {
  readonly most: Level;
  readonly line: (event: Events[E]) => Line | undefined;
}

const words = <E extends EventName>(most: Level, line: (event: Events[E]) => Line | undefined): Words<E> => ({ most, line });

/** Every event that is worth a line. Complete by its type: null is one that metrics tell better. */
export const WORDS: { readonly [E in EventName]: Words<E> | null } = {
  "jobs.enqueued": words("debug", ({ count, lanes }) => ({
    level: "debug",
    text: "jobs were enqueued",
    fields: { count, tasks: [...new Set(lanes.map(({ task }) => task))] },
  })),
  "ingest.refused": words("warn", ({ kind, name, limit, jobs, retryAfter }) => ({
    level: "warn",
    text: `an ingest limit refused jobs of ${kind} ${name}`,
    fields: { kind, name, limit, jobs, retryAfter },
    class: `ingest.refused ${kind} ${name}`,
  })),
  "jobs.claimed": words("debug", ({ worker, lease, count }) => ({ level: "debug", text: "jobs were claimed", fields: { worker, lease, count } })),
  "attempt.started": words("debug", ({ job, lane, attempt, worker }) => ({
    level: "debug",
    text: `attempt ${attempt} at ${lane.task} began`,
    fields: { job, ...lane, attempt, worker },
  })),
  "attempt.settled": words("error", settled),
  "job.changed": words("debug", ({ job, lane, verb, from, to }) => ({
    level: "debug",
    text: `somebody asked to ${verb} a job`,
    fields: { job, ...lane, verb, from, to },
  })),
  "lanes.paused": words("info", ({ kind, name }) => ({ level: "info", text: `${kind} ${name} was paused`, fields: { kind, name } })),
  "lanes.resumed": words("info", ({ kind, name }) => ({ level: "info", text: `${kind} ${name} was resumed`, fields: { kind, name } })),
  "attempt.stale": words("warn", ({ job, worker, outcome }) => ({
    level: "warn",
    text: "an outcome came after its lease was lost, and changed nothing",
    fields: { job, worker, outcome },
    class: "attempt.stale",
  })),
  "attempt.blocked": words("warn", ({ worker, lag }) => ({
    level: "warn",
    text: "a handler kept the event loop from running",
    fields: { worker, lag },
    class: "attempt.blocked",
  })),
  "lease.lost": words("warn", ({ worker, lease, jobs, why }) => ({
    level: "warn",
    text: `a lease was lost: ${why}`,
    fields: { worker, lease, jobs },
    class: "lease.lost",
  })),
  "intent.received": words("info", ({ job, intent }) => ({ level: "info", text: `a worker was asked to ${intent} a job`, fields: { job, intent } })),
  "duties.pulsed": null,
  "duty.ran": words("debug", ({ duty, count, duration }) => ({ level: "debug", text: `duty ${duty} ran`, fields: { duty, count, duration } })),
  "duty.failed": words("error", ({ duty, error }) => ({
    level: "error",
    text: `${duty} failed, and is tried again: ${messageOf(error)}`,
    fields: { duty, ...codeOf(error) },
    class: `duty.failed ${duty}`,
  })),
  "jobs.promoted": words("debug", ({ count }) => ({ level: "debug", text: "delayed jobs are ready", fields: { count } })),
  "schedules.ticked": words("debug", ({ schedules, jobs, latest }) => ({
    level: "debug",
    text: "schedules ticked",
    fields: { schedules, jobs, latest },
  })),
  "leases.reaped": words("warn", ({ leases, jobs }) => ({
    level: "warn",
    text: "jobs were taken back from workers that vanished",
    fields: { leases, jobs },
    class: "leases.reaped",
  })),
  "worker.started": words("info", ({ worker }) => ({ level: "info", text: "a worker started", fields: { worker } })),
  "worker.stopping": words("info", ({ worker, running }) => ({ level: "info", text: "a worker is stopping", fields: { worker, running } })),
  "worker.stopped": words("info", ({ worker, released }) => ({ level: "info", text: "a worker stopped", fields: { worker, released } })),
  "breaker.changed": words("warn", ({ worker, tenant, task, state }) => ({
    level: state === "open" ? "warn" : "info",
    text: `the breaker of ${task} is ${state}`,
    fields: { worker, tenant, task, state },
    class: `breaker.changed ${task} ${state}`,
  })),
  "worker.stalled": words("warn", ({ worker, idleFor }) => ({
    level: "warn",
    text: "a worker with free slots gets nothing though work is known",
    fields: { worker, idleFor },
    class: "worker.stalled",
  })),
  "store.operation": null,
  "store.lost": words("error", ({ error }) => ({
    level: "error",
    text: `the store cannot be reached: ${messageOf(error)}`,
    fields: codeOf(error),
    class: "store.lost",
  })),
  "store.back": words("info", ({ away }) => ({ level: "info", text: "the store is back", fields: { away } })),
};

function settled({ job, lane, attempt, worker, outcome, next, duration, failure, delay }: Events["attempt.settled"]): Line | undefined {
  const fields = () => ({ job, ...lane, attempt, worker, outcome, next, duration, ...(delay === undefined ? {} : { delay }) });
  if (failure === undefined && next !== "dead") return { level: "debug", text: `attempt ${attempt} at ${lane.task} ${outcome}`, fields: fields() };
  const name = failure?.kind === "error" ? failure.name : failure?.kind;
  const why = { ...fields(), class: name };
  const kind = `${lane.task} ${name}`;
  if (next === "dead")
    return { level: "error", text: `a job of ${lane.task} is dead: ${failure?.message ?? outcome}`, fields: why, class: `dead ${kind}` };
  const became = outcome === "snoozed" ? `a job of ${lane.task} is put off` : `attempt ${attempt} at ${lane.task} failed`;
  return { level: "warn", text: `${became}: ${failure?.message}`, fields: why, class: `${outcome} ${kind}` };
}

/** Whether there is anything to say at this level; asked of every settled attempt before words are found for it. */
export function isQuiet({ failure, next }: Events["attempt.settled"], level: Level): boolean {
  return failure === undefined && next !== "dead" && level !== "debug";
}

function codeOf(error: unknown): { readonly code?: string } {
  const code: unknown = (error as { code?: unknown } | undefined)?.code;
  return typeof code === "string" ? { code } : {};
}

import type { Failure } from "../jobs/failure.js";
import { lackInWords } from "../limits/capacity.js";
import type { Explained, LimitKeyReason, Parent, Reason, SlotHolder } from "./explain.js";

/** ms since 1970, or a date */
type ReasonTime = number | Date;

/** An explanation as sentences, for a person. */
export function inWords({ reasons, start }: Explained, now: number): string {
  const sentences = reasons.map((reason) => `${capital(reasonInWords(reason, now))}.`);
  if (start !== undefined) sentences.push(start <= now ? "It should start at once." : `It should start ${when(start, now)}.`);
  return sentences.join(" ");
}

export function reasonInWords(reason: Reason<number | Date>, now: number): string {
  switch (reason.kind) {
    case "finished":
      return `it is ${reason.state}${reason.at === undefined ? "" : ` since ${instant(reason.at)}`}${because(reason.failure)}`;
    case "running": {
      const asked = reason.intent === undefined ? "" : `; its worker has been asked to ${reason.intent} it`;
      return `it is running${reason.worker === undefined ? "" : ` at ${reason.worker}`}${reason.since === undefined ? "" : ` since ${instant(reason.since)}`}${asked}`;
    }
    case "paused":
      return reason.what === "job" ? "it is paused" : `its ${reason.what} ${reason.name} is paused`;
    case "blocked": {
      return `it waits for ${reason.count} other ${reason.count === 1 ? "job" : "jobs"}${reason.on.length === 0 ? "" : `: ${some(reason.on, reason.count)}`}`;
    }
    case "limit_key":
      return limited(reason, now);
    case "due":
      return `it is due ${when(reason.at, now)}${reason.spreadBy === undefined ? "" : `, ${length(reason.spreadBy)} of that by its spread`}`;
    case "retrying":
      return `${reason.attempts} ${reason.attempts === 1 ? "attempt" : "attempts"} failed${because(reason.failure)}; the next is due ${when(reason.at, now)}`;
    case "undecryptable": {
      const again = reason.at === undefined ? "" : `; it is offered again ${when(reason.at, now)}`;
      return `its input is encrypted, and the worker that had it last has no master key for it${again}`;
    }
    case "unserved":
      return reason.lacks.map(lackInWords).join(", and ");
    case "breaker_open": {
      const until = reason.until === undefined ? "somebody opened it by hand" : `one job may try ${when(reason.until, now)}`;
      return `the breaker of task ${reason.task} for tenant ${reason.tenant} is open; ${until}`;
    }
    case "policy_limit": {
      const { what, name, limit, most, held, until } = reason;
      if (limit === "concurrency") return `the ${what} ${name} may run ${most} at a time${held === undefined ? "" : `, and ${held} are`}`;
      return `the ${what} ${name} has started as many as its rate allows${until === undefined ? "" : `; the next may start ${when(until, now)}`}`;
    }
    case "suspect":
      return `${reason.crashes} workers vanished with it, so it waits for one that can run it alone`;
    case "full":
      return full(reason, now);
    case "queued_behind":
      if (reason.ahead === 0) return "it is next in its lane";
      return `${reason.more ? "at least " : ""}${reason.ahead} ${reason.ahead === 1 ? "job is" : "jobs are"} before it in its lane`;
  }
}

function full({ slots, workers, shut = 0, since }: Extract<Reason<ReasonTime>, { kind: "full" }>, now: number): string {
  if (slots === undefined || workers === undefined) return "all slots of the workers that can run it are taken";
  const shutOnes = `${shut} ${shut === 1 ? "worker" : "workers"} that can run it ${shut === 1 ? "has" : "have"} no room for one more of its kind`;
  if (workers === 0) return `${shutOnes} (by the slots of its queue or task, or by what it needs)`;
  const all = slots === 1 ? "the one slot" : `all ${slots} slots`;
  const oldest =
    since === undefined ? "" : `; the oldest handler has been running since ${instant(since)}, for ${length(Math.max(0, now - since.valueOf()))}`;
  return `${all} of ${workers} ${workers === 1 ? "worker" : "workers"} ${slots === 1 ? "is" : "are"} taken${shut === 0 ? "" : `, and ${shutOnes}`}${oldest}`;
}

function limited(reason: Extract<Reason<ReasonTime>, { kind: "limit_key" }>, now: number): string {
  const { waiting = 1, more } = reason;
  const others = waiting > 1 ? `; ${more ? "at least " : ""}${waiting} jobs wait there` : "";
  return `${keyInWords(reason, now)}${others}`;
}

function keyInWords({ limit, key, for: why, held, most, holders, until }: LimitKeyReason<ReasonTime>, now: number): string {
  const where = `key ${key} of limit ${limit}`;
  const then = until === undefined ? "" : ` ${when(until, now)}`;
  switch (why) {
    case "concurrency":
      return `${where} has ${held ?? most} of its ${most} slots taken${holders === undefined ? "" : `, by ${some(holders, held ?? 0)}`}`;
    case "serial":
      return `${where} runs one job at a time, and ${holders === undefined ? "it is not its turn" : `it is the turn of ${some(holders, 1)}`}`;
    case "rate":
      return `${where} has too few tokens for it${then === "" ? "" : `; they are there${then}`}`;
    case "key_paused":
      return `${where} is paused, as a handler was told to come later (RetryAfter)${then === "" ? "" : `, and goes on${then}`}`;
  }
}

/** Those that are shown, of so many. */
function some(jobs: readonly (SlotHolder | Parent)[], of: number): string {
  const rest = of - jobs.length;
  return `${jobs.map(({ job, state }) => `${job} (${state})`).join(", ")}${rest > 0 ? ` and ${rest} more` : ""}`;
}

function because(failure: Failure | undefined): string {
  return failure === undefined ? "" : ` (${failure.name}: ${failure.message.length > 200 ? `${failure.message.slice(0, 200)}…` : failure.message})`;
}

function when(at: ReasonTime, now: number): string {
  const ms = at.valueOf();
  return ms <= now ? "now" : `in ${length(ms - now)}, at ${instant(at)}`;
}

function instant(at: ReasonTime): string {
  return new Date(at).toISOString();
}

const UNITS: readonly (readonly [ms: number, name: string])[] = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "min"],
  [1_000, "s"],
];

/** To two figures at least: nobody plans by the millisecond. */
function length(ms: number): string {
  const unit = UNITS.find(([size]) => ms >= 2 * size);
  return unit === undefined ? `${Math.ceil(ms)} ms` : `${Math.round(ms / unit[0])} ${unit[1]}`;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

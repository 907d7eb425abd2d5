import { STATES, type State } from "./job.js";

/**
 * The state machine, as a table: from where, by which verb, to where. What is not in it cannot happen.
 * `docs/states.md` is printed from it, and a test walks every cell.
 */
export const VERBS = [
  "enqueue",
  "promote",
  "admit",
  "unblock",
  "claim",
  "settle",
  "reap",
  "expire",
  "cancel",
  "pause",
  "resume",
  "retry",
  "redrive",
  "drop",
] as const;
export type Verb = (typeof VERBS)[number];

type Row = Readonly<Partial<Record<Verb, readonly (State | "gone")[]>>>;

/** parked: it is under limits. dead: it was to die with a parent that is already dead or cancelled */
export const ENTRY: Row = { enqueue: ["ready", "scheduled", "blocked", "parked", "dead"] };

export const LIFECYCLE: Readonly<Record<State, Row>> = {
  /** waits for other jobs */
  blocked: { unblock: ["ready", "scheduled", "parked", "dead"], expire: ["dead"], cancel: ["cancelled"], pause: ["blocked"], resume: ["blocked"] },
  /** waits for its time; with attempts behind it, it is retrying */
  scheduled: { promote: ["ready", "parked"], expire: ["dead"], cancel: ["cancelled"], pause: ["parked"], retry: ["ready", "parked"] },
  /** may be claimed */
  ready: { claim: ["running"], expire: ["dead"], cancel: ["cancelled"], pause: ["parked"] },
  /** held back, with a reason */
  parked: { admit: ["ready"], expire: ["dead"], cancel: ["cancelled"], pause: ["parked"], resume: ["ready", "scheduled", "parked"] },
  /** held by a worker under a lease; cancel and pause are asked of it, and carried out by settle or reap */
  running: {
    settle: ["succeeded", "scheduled", "ready", "parked", "dead", "cancelled"],
    reap: ["ready", "parked", "dead", "cancelled"],
    cancel: ["running"],
    pause: ["running"],
    resume: ["running"],
  },
  succeeded: { drop: ["gone"] },
  dead: { redrive: ["ready", "scheduled", "parked"], drop: ["gone"] },
  cancelled: { drop: ["gone"] },
};

export function applies(verb: Verb, state: State): boolean {
  return LIFECYCLE[state][verb] !== undefined;
}

export function allowed(from: State, verb: Verb, to: State | "gone"): boolean {
  return LIFECYCLE[from][verb]?.includes(to) ?? false;
}

/** The table as Markdown, for docs/states.md. */
export function lifecycleTable(): string {
  const verbs = VERBS.filter((verb) => verb !== "enqueue");
  const lines = [`| state | ${verbs.join(" | ")} |`, `|---|${verbs.map(() => "---").join("|")}|`];
  for (const state of STATES) {
    lines.push(`| **${state}** | ${verbs.map((verb) => LIFECYCLE[state][verb]?.join(", ") ?? "·").join(" | ")} |`);
  }
  return lines.join("\n");
}

import { JOB_STATES, type JobState } from "./job.js";

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
  "redrive",
  "delete",
] as const;
export type Verb = (typeof VERBS)[number];

type Transitions = Readonly<Partial<Record<Verb, readonly (JobState | "deleted")[]>>>;

/** parked: it is under limits. dead: it was to die with a parent that is already dead or cancelled */
export const ENTRY: Transitions = { enqueue: ["ready", "scheduled", "blocked", "parked", "dead"] };

export const LIFECYCLE: Readonly<Record<JobState, Transitions>> = {
  /** waits for other jobs */
  blocked: { unblock: ["ready", "scheduled", "parked", "dead"], expire: ["dead"], cancel: ["cancelled"], pause: ["blocked"], resume: ["blocked"] },
  /** waits for its time; with attempts behind it, it is retrying */
  scheduled: { promote: ["ready", "parked"], expire: ["dead"], cancel: ["cancelled"], pause: ["parked"] },
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
  succeeded: { delete: ["deleted"] },
  dead: { redrive: ["ready", "scheduled", "parked"], delete: ["deleted"] },
  cancelled: { delete: ["deleted"] },
};

export function applies(verb: Verb, state: JobState): boolean {
  return LIFECYCLE[state][verb] !== undefined;
}

export function allowed(from: JobState, verb: Verb, to: JobState | "deleted"): boolean {
  return LIFECYCLE[from][verb]?.includes(to) ?? false;
}

/** The table as Markdown, for docs/states.md. */
export function lifecycleTable(): string {
  const verbs = VERBS.filter((verb) => verb !== "enqueue");
  const lines = [`| state | ${verbs.join(" | ")} |`, `|---|${verbs.map(() => "---").join("|")}|`];
  for (const state of JOB_STATES) {
    lines.push(`| **${state}** | ${verbs.map((verb) => LIFECYCLE[state][verb]?.join(", ") ?? "·").join(" | ")} |`);
  }
  return lines.join("\n");
}

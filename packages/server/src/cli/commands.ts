import type { CommandModule } from "./session.js";

export interface Entry {
  readonly name: string;
  readonly summary: string;
  /** the subcommand that it is without one: a noun alone shows what there is */
  readonly alone?: string;
  /** its file, which says what it takes and does */
  readonly load: () => Promise<CommandModule>;
}

/** Every command. Only the code of the one that is asked for is loaded. */
export const COMMANDS: readonly Entry[] = [
  { name: "dev", summary: "everything on this machine, with your tasks, reloaded as you change them", load: () => import("./dev.js") },
  { name: "serve", summary: "run the service: API, workers, maintenance", load: () => import("./serve.js") },
  { name: "check", summary: "say what is wrong with the configuration", load: () => import("./check.js") },
  { name: "enqueue", summary: "store a job, or many from a file", load: () => import("./enqueue.js") },
  { name: "jobs", summary: "list, show, watch and change jobs", alone: "list", load: () => import("./jobs.js") },
  { name: "dead", summary: "dead jobs by what they died of; redrive them", alone: "groups", load: () => import("./dead.js") },
  { name: "queues", summary: "queues: counts, pauses, limits", alone: "list", load: () => import("./queues.js") },
  { name: "tasks", summary: "tasks: counts, pauses, limits", alone: "list", load: () => import("./tasks.js") },
  { name: "tenants", summary: "tenants: weights, pauses, limits", alone: "list", load: () => import("./tenants.js") },
  { name: "series", summary: "what happened over time: started, finished, waiting", alone: "show", load: () => import("./series.js") },
  { name: "schedules", summary: "schedules: what ticks when, and what it did", alone: "list", load: () => import("./schedules.js") },
  { name: "breakers", summary: "breakers: which are open, and why; force them", alone: "list", load: () => import("./breakers.js") },
  { name: "limits", summary: "limits: the keys at which jobs wait, and for what", alone: "list", load: () => import("./limits.js") },
  { name: "targets", summary: "where jobs are pushed to: list, set, rotate, remove", alone: "list", load: () => import("./targets.js") },
  { name: "keys", summary: "API keys: create, list, rotate, revoke", alone: "list", load: () => import("./keys.js") },
  { name: "encryption", summary: "the keys that what jobs hold is sealed with", alone: "status", load: () => import("./encryption.js") },
  { name: "audit", summary: "the audit log: list it, verify it", alone: "list", load: () => import("./audit.js") },
  { name: "workers", summary: "the workers that are live", alone: "list", load: () => import("./workers.js") },
  { name: "top", summary: "everything live, in the terminal", load: () => import("./top.js") },
  { name: "doctor", summary: "what is wrong, what it costs, how to mend it", load: () => import("./doctor.js") },
  { name: "migrate", summary: "bring the schema up to date", load: () => import("./migrate.js") },
  { name: "completion", summary: "completion for bash, zsh or fish", load: () => import("./completion.js") },
  { name: "bench", summary: "measure, beside the peers (from a clone)", load: () => import("./bench.js") },
  { name: "demo", summary: "run a small shop's jobs and watch them move", load: () => import("./demo-command.js") },
];

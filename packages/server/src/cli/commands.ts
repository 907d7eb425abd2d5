import type { CommandModule } from "./session.js";

export interface CommandEntry {
  readonly name: string;
  readonly summary: string;
  /** the subcommand that it is without one: a noun alone shows what there is */
  readonly defaultSubcommand?: string;
  /** its file, which says what it takes and does */
  readonly load: () => Promise<CommandModule>;
}

/** Every command. Only the code of the one that is asked for is loaded. */
export const COMMANDS: readonly CommandEntry[] = [
  { name: "dev", summary: "everything on this machine, with your tasks, reloaded as you change them", load: () => import("./service/dev.js") },
  { name: "serve", summary: "run the service: API, workers, maintenance", load: () => import("./service/serve.js") },
  { name: "check", summary: "say what is wrong with the configuration", load: () => import("./service/check.js") },
  { name: "enqueue", summary: "store a job, or many from a file", load: () => import("./jobs/enqueue.js") },
  { name: "jobs", summary: "list, show, watch and change jobs", defaultSubcommand: "list", load: () => import("./jobs/jobs.js") },
  { name: "dead", summary: "dead jobs by what they died of; redrive them", defaultSubcommand: "groups", load: () => import("./jobs/dead.js") },
  { name: "queues", summary: "queues: counts, pauses, limits", defaultSubcommand: "list", load: () => import("./operate/queues.js") },
  { name: "tasks", summary: "tasks: counts, pauses, limits", defaultSubcommand: "list", load: () => import("./operate/tasks.js") },
  { name: "tenants", summary: "tenants: weights, pauses, limits", defaultSubcommand: "list", load: () => import("./operate/tenants.js") },
  {
    name: "series",
    summary: "what happened over time: started, finished, waiting",
    defaultSubcommand: "show",
    load: () => import("./operate/series.js"),
  },
  {
    name: "schedules",
    summary: "schedules: what ticks when, and what it did",
    defaultSubcommand: "list",
    load: () => import("./operate/schedules.js"),
  },
  {
    name: "breakers",
    summary: "breakers: which are open, and why; force them",
    defaultSubcommand: "list",
    load: () => import("./operate/breakers.js"),
  },
  {
    name: "limits",
    summary: "limits: the keys at which jobs wait, and for what",
    defaultSubcommand: "list",
    load: () => import("./operate/limits.js"),
  },
  {
    name: "targets",
    summary: "where jobs are pushed to: list, put, rotate, delete",
    defaultSubcommand: "list",
    load: () => import("./operate/targets.js"),
  },
  { name: "api-keys", summary: "API keys: create, list, rotate, revoke", defaultSubcommand: "list", load: () => import("./access/api-keys.js") },
  {
    name: "encryption",
    summary: "the keys that what jobs hold is encrypted with",
    defaultSubcommand: "status",
    load: () => import("./access/encryption.js"),
  },
  { name: "audit", summary: "the audit log: list it, verify it", defaultSubcommand: "list", load: () => import("./access/audit.js") },
  { name: "workers", summary: "the workers that are live", defaultSubcommand: "list", load: () => import("./operate/workers.js") },
  { name: "lanes", summary: "lanes with ready jobs, and how many workers serve them", load: () => import("./operate/lanes.js") },
  { name: "top", summary: "everything live, in the terminal", load: () => import("./service/top.js") },
  { name: "doctor", summary: "what is wrong, what it costs, how to mend it", load: () => import("./operate/doctor.js") },
  { name: "migrate", summary: "bring the schema up to date", load: () => import("./service/migrate.js") },
  { name: "completion", summary: "completion for bash, zsh or fish", load: () => import("./service/completion.js") },
  { name: "demo", summary: "run a small shop's jobs and watch them move", load: () => import("./service/demo-command.js") },
];

import { type Command, Option } from "commander";
import { JOB_STATES, type JobFilter, type JobState } from "pawl";
import { usage } from "../exit.js";
import { instant } from "../flags.js";

export interface FilterFlags {
  readonly state?: JobState;
  readonly queue?: string;
  readonly task?: string;
  readonly tenant?: string;
  readonly tag?: string;
  readonly unique?: string;
  readonly failure?: string;
  readonly fingerprint?: string;
  readonly since?: string;
  readonly until?: string;
}

const FILTER_FLAGS: Readonly<Record<keyof FilterFlags, Option>> = {
  state: new Option("--state <state>", "in this state").choices(JOB_STATES),
  queue: new Option("--queue <queue>", "of this queue"),
  task: new Option("--task <task>", "of this task"),
  tenant: new Option("--tenant <tenant>", "of this tenant"),
  tag: new Option("--tag <tag>", "with this tag"),
  unique: new Option("--unique <key>", "with this unique key"),
  failure: new Option("--failure <class>", "that died of this kind of failure, or of an error of this class"),
  fingerprint: new Option("--fingerprint <fingerprint>", "that died of this, as pawl dead groups tells it"),
  since: new Option("--since <time>", "due since then: an instant, or a time ago (1h)"),
  until: new Option("--until <time>", "due before then"),
};

/** Gives a command the flags that choose jobs. */
export function withFilter(command: Command, without: readonly (keyof FilterFlags)[] = []): Command {
  for (const [name, option] of Object.entries(FILTER_FLAGS)) if (!without.includes(name as keyof FilterFlags)) command.addOption(option);
  return command;
}

export function filterOf({ state, queue, task, tenant, tag, unique, failure, fingerprint, since, until }: FilterFlags): JobFilter {
  const dueSince = since === undefined ? undefined : instant("--since", since);
  const dueUntil = until === undefined ? undefined : instant("--until", until);
  if (dueSince !== undefined && dueUntil !== undefined && dueSince > dueUntil)
    throw usage(`--since: ${since} is after --until ${until}`, "exchange them: --since is the earlier one");
  return {
    ...(state === undefined ? {} : { state }),
    ...(queue === undefined ? {} : { queue }),
    ...(task === undefined ? {} : { task }),
    ...(tenant === undefined ? {} : { tenant }),
    ...(tag === undefined ? {} : { tag }),
    ...(unique === undefined ? {} : { uniqueKey: unique }),
    ...(failure === undefined ? {} : { failure }),
    ...(fingerprint === undefined ? {} : { fingerprint: checkFingerprint(fingerprint) }),
    ...(dueSince === undefined ? {} : { since: dueSince }),
    ...(dueUntil === undefined ? {} : { until: dueUntil }),
  };
}

/** Here, since the library would speak of its own calls. */
function checkFingerprint(fingerprint: string): string {
  if (/^[0-9a-f]{16}$/.test(fingerprint)) return fingerprint;
  throw usage(`--fingerprint: ${fingerprint} is not a group: those have 16 hex digits`, "pawl dead shows them, with what the jobs died of");
}

/** The same for the audit log. */
export function auditedFlags(flags: FilterFlags): Readonly<Record<string, string>> {
  const names = Object.keys(FILTER_FLAGS) as (keyof FilterFlags)[];
  return Object.fromEntries(names.flatMap((name) => (flags[name] === undefined ? [] : [[name, flags[name]]])));
}

/** The same as flags again, for the command that goes on where this one stopped. */
export function flagsAgain(flags: FilterFlags): string {
  const names = Object.keys(FILTER_FLAGS) as (keyof FilterFlags)[];
  return names.flatMap((name) => (flags[name] === undefined ? [] : [` --${name} ${quoted(flags[name])}`])).join("");
}

function quoted(text: string): string {
  return /^[\w.:@/+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

import { type Command, Option } from "commander";
import { type JobsFilter, STATES, type State } from "pawl";
import { usage } from "./exit.js";
import { instant } from "./flags.js";

export interface FilterFlags {
  readonly state?: State;
  readonly queue?: string;
  readonly task?: string;
  readonly tenant?: string;
  readonly tag?: string;
  readonly key?: string;
  readonly failure?: string;
  readonly group?: string;
  readonly since?: string;
  readonly until?: string;
}

const FLAGS: Readonly<Record<keyof FilterFlags, Option>> = {
  state: new Option("--state <state>", "in this state").choices(STATES),
  queue: new Option("--queue <queue>", "of this queue"),
  task: new Option("--task <task>", "of this task"),
  tenant: new Option("--tenant <tenant>", "of this tenant"),
  tag: new Option("--tag <tag>", "with this tag"),
  key: new Option("--key <key>", "with this key"),
  failure: new Option("--failure <class>", "that died of this kind or class of failure"),
  group: new Option("--group <fingerprint>", "that died of this, as pawl dead groups tells it"),
  since: new Option("--since <time>", "due since then: an instant, or a time ago (1h)"),
  until: new Option("--until <time>", "due before then"),
};

/** Gives a command the flags that choose jobs. */
export function withFilter(command: Command, without: readonly (keyof FilterFlags)[] = []): Command {
  for (const [name, option] of Object.entries(FLAGS)) if (!without.includes(name as keyof FilterFlags)) command.addOption(option);
  return command;
}

export function filterOf({ state, queue, task, tenant, tag, key, failure, group, since, until }: FilterFlags): JobsFilter {
  const dueFrom = since === undefined ? undefined : instant("--since", since);
  const dueBefore = until === undefined ? undefined : instant("--until", until);
  if (dueFrom !== undefined && dueBefore !== undefined && dueFrom > dueBefore)
    throw usage(`--since: ${since} is after --until ${until}`, "exchange them: --since is the earlier one");
  return {
    ...(state === undefined ? {} : { state }),
    ...(queue === undefined ? {} : { queue }),
    ...(task === undefined ? {} : { task }),
    ...(tenant === undefined ? {} : { tenant }),
    ...(tag === undefined ? {} : { tag }),
    ...(key === undefined ? {} : { key }),
    ...(failure === undefined ? {} : { failure }),
    ...(group === undefined ? {} : { fingerprint: fingerprint(group) }),
    ...(dueFrom === undefined ? {} : { dueFrom }),
    ...(dueBefore === undefined ? {} : { dueBefore }),
  };
}

/** Here, since the library would speak of its own calls. */
function fingerprint(group: string): string {
  if (/^[0-9a-f]{16}$/.test(group)) return group;
  throw usage(`--group: ${group} is not a group: those have 16 hex digits`, "pawl dead shows them, with what the jobs died of");
}

/** The same for the audit log. */
export function told(flags: FilterFlags): Readonly<Record<string, string>> {
  const names = Object.keys(FLAGS) as (keyof FilterFlags)[];
  return Object.fromEntries(names.flatMap((name) => (flags[name] === undefined ? [] : [[name, flags[name]]])));
}

/** The same as flags again, for the command that goes on where this one stopped. */
export function flagsAgain(flags: FilterFlags): string {
  const names = Object.keys(FLAGS) as (keyof FilterFlags)[];
  return names.flatMap((name) => (flags[name] === undefined ? [] : [` --${name} ${quoted(flags[name])}`])).join("");
}

function quoted(text: string): string {
  return /^[\w.:@/+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

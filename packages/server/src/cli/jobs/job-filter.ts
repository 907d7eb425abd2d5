import { type Command, Option } from "commander";
import { JOB_STATES, type JobFilter } from "pawl";
import { FILTER_ROWS, type FilterKind, type FilterName } from "pawl/service";
import { usage } from "../exit.js";
import { instant } from "../flags.js";

/** The values of the flags that choose jobs, by the name of the filter. */
export type FilterFlags = { readonly [Name in FilterName as Name extends "uniqueKey" ? "unique" : Name]?: string };

interface FilterFlag {
  readonly filter: FilterName;
  readonly kind: FilterKind;
  readonly option: Option;
}

const FILTER_FLAGS: readonly FilterFlag[] = FILTER_ROWS.map(([filter, { kind, flag, finds }]) => ({
  filter,
  kind,
  option: kind === "state" ? new Option(flag, finds).choices(JOB_STATES) : new Option(flag, finds),
}));

/** A flag has its own name: that of `uniqueKey` is `--unique`. */
function textIn({ option }: FilterFlag, flags: FilterFlags): string | undefined {
  return (flags as Readonly<Record<string, string | undefined>>)[option.attributeName()];
}

/** Gives a command the flags that choose jobs. */
export function withFilter(command: Command, without: readonly FilterName[] = []): Command {
  for (const { filter, option } of FILTER_FLAGS) if (!without.includes(filter)) command.addOption(option);
  return command;
}

export function filterOf(flags: FilterFlags): JobFilter {
  const filter: JobFilter = Object.fromEntries(
    FILTER_FLAGS.flatMap((flag) => {
      const text = textIn(flag, flags);
      return text === undefined ? [] : [[flag.filter, filterValue(flag, text)]];
    }),
  );
  const { since, until } = filter;
  if (since instanceof Date && until instanceof Date && since > until)
    throw usage(`--since: ${flags.since} is after --until ${flags.until}`, "exchange them: --since is the earlier one");
  return filter;
}

function filterValue({ kind, option }: FilterFlag, text: string): string | Date {
  if (kind === "instant") return instant(String(option.long), text);
  return kind === "fingerprint" ? checkFingerprint(text) : text;
}

/** Here, since the library would speak of its own calls. */
function checkFingerprint(fingerprint: string): string {
  if (/^[0-9a-f]{16}$/.test(fingerprint)) return fingerprint;
  throw usage(`--fingerprint: ${fingerprint} is not a group: those have 16 hex digits`, "pawl dead shows them, with what the jobs died of");
}

/** The same for the audit log. */
export function auditedFlags(flags: FilterFlags): Readonly<Record<string, string>> {
  return Object.fromEntries(
    FILTER_FLAGS.flatMap((flag) => {
      const text = textIn(flag, flags);
      return text === undefined ? [] : [[flag.option.attributeName(), text]];
    }),
  );
}

/** The same as flags again, for the command that goes on where this one stopped. */
export function flagsAgain(flags: FilterFlags): string {
  return FILTER_FLAGS.map((flag) => {
    const text = textIn(flag, flags);
    return text === undefined ? "" : ` ${flag.option.long} ${quoted(text)}`;
  }).join("");
}

function quoted(text: string): string {
  return /^[\w.:@/+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

import { LOST_HANDLER_EXIT_CODES } from "pawl/service";

/** What a command answers its shell with. Stable: scripts go by them (docs/cli.md). */
export const EXIT = {
  done: 0,
  failed: 1,
  usage: 2,
  unknown: 3,
  unconfirmed: 4,
  /** a check found something: `doctor`, `migrate --check`, `audit verify` */
  found: 5,
  /** the job that was waited for ended dead or cancelled */
  died: 6,
  /** the job was unfinished when its `--wait` was over */
  unfinished: 7,
  /** a process was told to stop, and handlers had not ended when their time was up: EX_SOFTWARE */
  unended: LOST_HANDLER_EXIT_CODES.unended,
  /** a worker of the process is stuck, and another process is to take its place: EX_TEMPFAIL */
  stuck: LOST_HANDLER_EXIT_CODES.stuck,
  /** the configuration is wrong: EX_CONFIG of sysexits.h */
  config: 78,
  interrupted: 130,
  /** nobody read on: as a program ends of SIGPIPE */
  unread: 141,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** A command that ends without having done what it was asked for, in words for people and a code for scripts. */
export class CliError extends Error {
  override readonly name = "CliError";
  constructor(
    readonly exit: ExitCode,
    readonly code: string,
    message: string,
    /** the flag or the command that helps */
    readonly help?: string,
  ) {
    super(message);
  }
}

export function usage(message: string, help?: string): CliError {
  return new CliError(EXIT.usage, "usage", message, help);
}

/** Somebody pressed Ctrl-C. What was done stays done; `help` says how to go on. */
export function interrupted(message: string, help?: string): CliError {
  return new CliError(EXIT.interrupted, "interrupted", message, help);
}

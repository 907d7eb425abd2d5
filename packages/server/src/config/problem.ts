import { messageOf } from "../errors/message-of.js";
/** One thing that is wrong with the configuration: where it stands, what is wrong with it, and what to do. */
export interface Problem {
  /** a flag, a variable of the environment, or a place in the file */
  readonly where: string;
  readonly what: string;
  readonly help: string;
}

/** Everything that is wrong, together: who mends one thing should not meet the next at the next start. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  constructor(readonly problems: readonly Problem[]) {
    super(problems.map(lineOf).join("\n"));
  }
}

export function lineOf({ where, what, help }: Problem): string {
  return `${where}: ${what}; ${help}`.replace(/\s*\n\s*/g, " ");
}

/** Of whatever was thrown: one line that says what went wrong. */
export function reasonOf(error: unknown): string {
  const text = messageOf(error);
  return (text.split("\n")[0] ?? "").replace(/[.;]$/, "");
}

import { messageOf } from "../text/error-message.js";
/** One thing that is wrong with the configuration: where it stands, what is wrong with it, and what to do. */
export interface Problem {
  /** a flag, a variable of the environment, or a place in the file */
  readonly where: string;
  readonly what: string;
  readonly help: string;
}

/** What to call a setting that something is wrong with: the flag, variable or place that it was given by, or else its name. */
export function whereOf<Name extends string>({ origin }: { origin(name: Name): string | undefined }, name: Name): string {
  return origin(name) ?? name;
}

/** Everything that is wrong, together: who mends one thing should not meet the next at the next start. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  constructor(readonly problems: readonly Problem[]) {
    super(problems.map(problemLine).join("\n"));
  }
}

type Checks = readonly (() => Promise<unknown>)[];
type CheckResults<L extends Checks> = { readonly [I in keyof L]: Awaited<ReturnType<L[I]>> };

/** Looks for one after the other, and answers with what was found; what is wrong with any of them is thrown together. */
export async function runAllChecks<const L extends Checks>(...checks: L): Promise<CheckResults<L>> {
  const problems: Problem[] = [];
  const results: unknown[] = [];
  for (const check of checks) {
    try {
      results.push(await check());
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      problems.push(...error.problems);
    }
  }
  if (problems.length > 0) throw new ConfigError(problems);
  return results as CheckResults<L>;
}

export function problemLine({ where, what, help }: Problem): string {
  return `${where}: ${what}; ${help}`.replace(/\s*\n\s*/g, " ");
}

/** Of whatever was thrown: one line that says what went wrong. */
export function reasonOf(error: unknown): string {
  const text = messageOf(error);
  return (text.split("\n")[0] ?? "").replace(/[.;]$/, "");
}

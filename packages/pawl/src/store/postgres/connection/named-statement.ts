import type { Statement } from "../drivers/driver.js";

/** A statement whose parameters have names: `:name` in its text, and a value for each. */
export interface NamedStatement<Name extends string> {
  readonly statement: Statement;
  values(of: Readonly<Record<Name, unknown>>): readonly unknown[];
}

const PARAMETER = /(?<!:):([a-z_]+)/g;

/**
 * `make` is told the text with numbers in place of names. A name without a use, or a use without a name, is an error at once.
 * The first one may be used as `$1`, as `NOW` does.
 */
export function withNames<const Name extends string>(names: readonly Name[], text: string, make: (text: string) => Statement): NamedStatement<Name> {
  const used = new Set<string>(text.includes("$1::") ? names.slice(0, 1) : []);
  const numbered = text.replace(PARAMETER, (_, name: string) => {
    const number = names.indexOf(name as Name) + 1;
    if (number === 0) throw new Error(`a statement uses the parameter ${name}, which nobody gives it`);
    used.add(name);
    return `$${number}`;
  });
  const unused = names.filter((name) => !used.has(name));
  if (unused.length > 0) throw new Error(`a statement is given parameters that it does not use: ${unused.join(", ")}`);
  const statement = make(numbered);
  return { statement, values: (of) => names.map((name) => of[name]) };
}

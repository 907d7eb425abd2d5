/**
 * How a statement is written, in a `.sql` file or in a text of TypeScript.
 *
 * - `:name::type` is a parameter. It has its type wherever it is used, and that is the same everywhere. A parameter
 *   whose type ends in `[]` is given an array.
 * - `:set.name::type[]` is a column of a record set: a table that is sent along, an array for each of its columns. Where it is
 *   unnested, `as r(…)` repeats the names of its columns in their order.
 * - `{{name}}` is a constant of ours (sql-constants.ts). Its value stands there once the statement is loaded.
 * - A comment has lines of its own, and is not sent. A label is a comment, too, and ends a line: `-- guard: name` says that a race
 *   test needs the line, `-- stop: name` that one stops there. Labels are sent, so that the tests find them.
 * - `--+ name` and `--- name` enclose lines that a variant of the statement lacks. A file has at most one such block.
 */
export interface ParsedSql {
  /** with numbers for names and values for constants */
  readonly text: string;
  /** in the order of their numbers */
  readonly parameters: readonly SqlParameter[];
  /** the name of the block, if there is one */
  readonly block: string | undefined;
}

export interface SqlParameter {
  /** as it is written: `limits_checked`, `offer.quota` */
  readonly name: string;
  /** such as `int2` or `text[]` */
  readonly type: string;
}

const PARAMETER = /(?<![:\w]):([a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)?)(?:::([a-z0-9]+(?:\[\])?))?/g;
const CONSTANT = /\{\{([a-z_.]+)\}\}/g;
const COMMENT_LINE = /^\s*--(?![+-])(?!\s*(?:guard|stop): )/;
const BLOCK_BEGIN = /^\s*--\+ (\w+)\s*$/;
const BLOCK_END = /^\s*--- (\w+)\s*$/;
const LABEL = /-- (?:guard|stop): [a-z0-9-]+$/;
const UNNESTED = /unnest\(\s*((?::[a-z0-9_.]+::[a-z0-9]+\[\][\s,]*)+)\)(?:\s+with ordinality)?\s+as\s+\w+\s*\(([^)]*)\)/g;

/** `without`: the name of the block that is left out. A statement that breaks these rules is an error at once. */
export function parseSql(source: string, constants: Readonly<Record<string, string>>, without?: string): ParsedSql {
  const { lines, block } = cutBlock(source.split("\n"), without);
  const code = lines.filter((line) => !COMMENT_LINE.test(line)).join("\n");
  checkComments(code);
  checkRecordSets(code);
  const types = new Map<string, string>();
  const text = code
    .replace(CONSTANT, (_, name: string) => constants[name] ?? fail(`there is no constant {{${name}}}`))
    .replace(PARAMETER, (_, name: string, type: string | undefined) => {
      if (type === undefined) return fail(`the parameter :${name} has no type`);
      const known = types.get(name);
      if (known !== undefined && known !== type) return fail(`the parameter :${name} has two types, ${known} and ${type}`);
      types.set(name, type);
      return `$${[...types.keys()].indexOf(name) + 1}::${type}`;
    });
  return { text: text.trim(), parameters: [...types].map(([name, type]) => ({ name, type })), block };
}

/** As the names of values: `limitsChecked`. */
export function camelCase(name: string): string {
  return name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

function cutBlock(lines: readonly string[], without: string | undefined): { readonly lines: readonly string[]; readonly block: string | undefined } {
  const begins = lines.findIndex((line) => BLOCK_BEGIN.test(line));
  const ends = lines.findIndex((line) => BLOCK_END.test(line));
  const block = BLOCK_BEGIN.exec(lines[begins] ?? "")?.[1];
  const marks = lines.filter((line) => BLOCK_BEGIN.test(line) || BLOCK_END.test(line)).length;
  if (marks !== (block === undefined ? 0 : 2) || ends < begins || BLOCK_END.exec(lines[ends] ?? "")?.[1] !== block)
    fail("a statement has one block at most, from --+ name to --- name");
  if (without !== undefined && without !== block) fail(`there is no block "${without}"`);
  const inBlock = (at: number) => block !== undefined && at >= begins && at <= ends;
  const isMark = (at: number) => at === begins || at === ends;
  return { block, lines: lines.filter((_, at) => !(without === undefined ? block !== undefined && isMark(at) : inBlock(at))) };
}

function checkComments(code: string): void {
  for (const line of code.split("\n")) if (line.includes("--") && !LABEL.test(line)) fail(`a comment has lines of its own: ${line.trim()}`);
}

/** A record set that is unnested with its columns in another order would be read as something else, and no type would say so. */
function checkRecordSets(code: string): void {
  for (const [, columns = "", names = ""] of code.matchAll(UNNESTED)) {
    const written = [...columns.matchAll(PARAMETER)].map(([, name = ""]) => name);
    const set = written[0]?.split(".")[0];
    if (!written.every((name) => name.startsWith(`${set}.`))) continue;
    const sent = written.map((name) => name.slice(name.indexOf(".") + 1));
    const read = names.split(",").map((name) => name.trim());
    if (sent.join() !== read.slice(0, sent.length).join())
      fail(`the record set ${set} is sent as (${sent.join(", ")}) and read as (${read.join(", ")})`);
  }
}

function fail(problem: string): never {
  throw new Error(problem);
}

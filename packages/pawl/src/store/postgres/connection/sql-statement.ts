import { readFileSync } from "node:fs";
import type { DriverRow, Hot, Queryable, Statement } from "../drivers/driver.js";
import { arrayOf } from "./arrays.js";
import { camelCase, type ParsedSql, parseSql, type SqlParameter } from "./parse-sql.js";
import { SQL_CONSTANTS } from "./sql-constants.js";
import type { SqlParameters } from "./sql-parameters.js";

/** A statement whose parameters have names. A value that is missing, unknown or of another type does not compile. */
export interface SqlStatement<Values> {
  readonly statement: Statement;
  /** in the order of their numbers */
  readonly parameters: readonly SqlParameter[];
  /** the values by number, as the driver takes them: arrays as array literals */
  values(of: Values): readonly unknown[];
  query<Row extends DriverRow>(on: Queryable, of: Values): Promise<readonly Row[]>;
}

const ROOT = new URL("../", import.meta.url);

interface SqlFileOptions {
  /** it runs for every job: see `Statement.hot` */
  readonly hot?: Hot;
  /** the block that this variant lacks; the one that has it is named after it, too */
  readonly without?: string;
}

/** The statement in a file of a room, such as `claim/claim.sql`. It has the file's name. */
export function sqlFile<File extends keyof SqlParameters>(file: File, { hot, without }: SqlFileOptions = {}): SqlStatement<SqlParameters[File]> {
  const parsed = parse(file, readFileSync(new URL(file, ROOT), "utf8"), without);
  const plain = file
    .replace(/^.*\//, "")
    .replace(/\.sql$/, "")
    .replaceAll("-", "_");
  const name = parsed.block !== undefined && without === undefined ? `${plain}_${parsed.block}` : plain;
  return statementOf(name, parsed, hot);
}

type Value = string | number | boolean | null | undefined;

/** The names in a text, each written as `:name::type`. A colon of a label or a slice has a space or a bracket behind it. */
type Names<Text extends string, Found extends string = never> = Text extends `${string}:${infer Rest}`
  ? Rest extends `:${infer After}` | ` ${infer After}` | `]${infer After}`
    ? Names<After, Found>
    : Rest extends `${infer Name}::${infer After}`
      ? Names<After, Found | Name>
      : Found
  : Found;

type CamelCase<Name extends string> = Name extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<CamelCase<Tail>>}` : Name;
type SetOf<Name extends string> = Name extends `${infer Set}.${string}` ? Set : never;
type ColumnOf<Name extends string, Set extends string> = Name extends `${Set}.${infer Column}` ? Column : never;

/** Values by the names in a text. */
type TextValues<Name extends string> = {
  readonly [Single in Name as Single extends `${string}.${string}` ? never : CamelCase<Single>]: Value | readonly Value[];
} & {
  readonly [Set in SetOf<Name> as CamelCase<Set>]: { readonly [Column in ColumnOf<Name, Set> as CamelCase<Column>]: readonly Value[] };
};

/** A statement in its TypeScript: one that is not hot, written as those in files are. The names of its values are those in the text. */
export function sqlText<const Text extends string>(name: string, text: Text): SqlStatement<TextValues<Names<Text>>> {
  return statementOf(name, parse(name, text), undefined);
}

function parse(of: string, source: string, without?: string): ParsedSql {
  try {
    return parseSql(source, SQL_CONSTANTS, without);
  } catch (error) {
    throw new Error(`the statement ${of} cannot be read: ${(error as Error).message}`, { cause: error });
  }
}

type Values = Readonly<Record<string, unknown>>;

function statementOf<Of>(name: string, { text, parameters }: ParsedSql, hot: Hot | undefined): SqlStatement<Of> {
  const statement: Statement = { name: `pawl_${name}`, text, ...(hot === undefined ? {} : { hot }) };
  const readers = parameters.map(readerOf);
  const values = (of: Of) => readers.map((read) => read(of as Values));
  return { statement, parameters, values, query: (on, of) => on.query(statement, values(of)) };
}

/** Takes the value of one parameter out of those that are given. */
function readerOf({ name, type }: SqlParameter): (of: Values) => unknown {
  const [first = "", column] = name.split(".").map(camelCase);
  const find = column === undefined ? (of: Values) => of[first] : (of: Values) => (of[first] as Values)[column];
  if (!type.endsWith("[]")) return find;
  const encode = arrayOf(type);
  return (of) => {
    const value = find(of);
    return typeof value === "string" || value === null ? value : encode(value as readonly Value[]);
  };
}

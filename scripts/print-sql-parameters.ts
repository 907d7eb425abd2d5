/**
 * Prints the parameters of the statements in `store/postgres`'s `.sql` files as types, so that callers are checked when they are compiled, and
 * the claim into docs/architecture.md.
 * `--check` writes nothing, and fails where a file, the types or the page are not as they should be.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { camelCase, parseSql, type SqlParameter } from "../packages/pawl/src/store/postgres/connection/parse-sql.js";
import { SQL_CONSTANTS } from "../packages/pawl/src/store/postgres/connection/sql-constants.js";

const ROOT = new URL("../packages/pawl/src/store/postgres/", import.meta.url);
const TARGET = new URL("connection/sql-parameters.ts", ROOT);

/** The types of values in TypeScript. */
const TYPES: Readonly<Record<string, string>> = {
  ...Object.fromEntries(["int", "int2", "float8"].map((type) => [type, "number"])),
  // A value that is too large for a number is a text.
  bigint: "number | string",
  bool: "boolean",
  ...Object.fromEntries(["text", "uuid", "json"].map((type) => [type, "string"])),
};

function typeOf({ name, type }: SqlParameter): string {
  const element = type.replace("[]", "");
  const known = TYPES[element];
  if (known === undefined) throw new Error(`the parameter :${name} has the type ${type}, which scripts/print-sql-parameters.ts does not know`);
  return type.endsWith("[]") ? `Column<${known}>` : known;
}

function declarationOf(parameters: readonly SqlParameter[]): string {
  const single = parameters.filter(({ name }) => !name.includes("."));
  const sets = new Set(parameters.flatMap(({ name }) => (name.includes(".") ? name.slice(0, name.indexOf(".")) : [])));
  const lines = single.map((one) => `    readonly ${camelCase(one.name)}: ${typeOf(one)} | null;`);
  for (const set of sets) {
    const columns = parameters.filter(({ name }) => name.startsWith(`${set}.`));
    const inside = columns.map((one) => `      readonly ${camelCase(one.name.slice(set.length + 1))}: ${typeOf(one)};`);
    lines.push(`    readonly ${camelCase(set)}: {\n${inside.join("\n")}\n    };`);
  }
  return lines.length === 0 ? "Record<never, never>" : `{\n${lines.join("\n")}\n  }`;
}

const files = readdirSync(ROOT, { recursive: true, encoding: "utf8" })
  .map((file) => file.replaceAll("\\", "/"))
  .filter((file) => file.endsWith(".sql") && !file.startsWith("migrations/"))
  .sort();
const labels = new Map<string, string>();
const names = new Map<string, string>();
const declarations = files.map((file) => {
  const source = readFileSync(new URL(file, ROOT), "utf8");
  for (const label of new Set(source.match(/-- (?:guard|stop): [a-z0-9-]+/g))) claimName(labels, label, file);
  claimName(names, file.replace(/^.*\//, ""), file);
  try {
    return `  readonly "${file}": ${declarationOf(parseSql(source, SQL_CONSTANTS).parameters)};`;
  } catch (error) {
    throw new Error(`${file}: ${(error as Error).message}`, { cause: error });
  }
});

function claimName(taken: Map<string, string>, name: string, file: string): void {
  if (taken.has(name)) throw new Error(`${file}: the name ${name} is also in ${taken.get(name)}`);
  taken.set(name, file);
}

const printed = `import type { ArrayText } from "./arrays.js";

/** An array of a record set, or one by itself. */
type Column<Element> = readonly (Element | null | undefined)[] | ArrayText;

/** The parameters of each statement, printed from the \`.sql\` files by \`npm run sql:parameters\`. */
export interface SqlParameters {
${declarations.join("\n")}
}
`;

/** The page that shows the claim as it is. */
const PAGE = new URL("../docs/architecture.md", import.meta.url);
const claim = readFileSync(new URL("claim/claim.sql", ROOT), "utf8");
const page = readFileSync(PAGE, "utf8").replace(
  /(<!-- claim\.sql: .* -->\n)[\s\S]*(<!-- end of claim\.sql -->)/,
  (_, begin: string, end: string) => `${begin}\n\`\`\`sql\n${claim}\`\`\`\n\n${end}`,
);

for (const [file, text] of [
  [TARGET, printed],
  [PAGE, page],
] as const) {
  if (!process.argv.includes("--check")) writeFileSync(file, text);
  else if (readFileSync(file, "utf8") !== text) {
    console.error(`${fileURLToPath(file)} is not what the .sql files say: run npm run sql:parameters`);
    process.exitCode = 1;
  }
}

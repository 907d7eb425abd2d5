/**
 * What SECURITY.md says is so: every check that "holds" has a test whose name carries its id (S23), no code is made of text
 * (S28), and no statement is put together where it is sent.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";

const root = resolve(import.meta.dirname, "..");
const SKIPPED = new Set(["node_modules", "dist", "data"]);

function* files(folder, suffix) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (SKIPPED.has(entry.name)) continue;
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* files(path, suffix);
    else if (entry.name.endsWith(suffix)) yield path;
  }
}

let wrong = 0;
function complain(what) {
  console.error(what);
  wrong++;
}

/** "S4 – S8, S10" is six ids. */
function idsOf(cell) {
  return cell.split(",").flatMap((part) => {
    const [from, to = from] = part.split("–").map((id) => Number(id.trim().slice(1)));
    return Array.from({ length: to - from + 1 }, (_, step) => `S${from + step}`);
  });
}

/** Ids in names, wherever a test says its own: in the first text of a call, or of a row of its table. */
const named = new Set();
for (const folder of ["packages", "test"]) {
  for (const file of files(join(root, folder), ".test.ts")) {
    for (const [, name] of readFileSync(file, "utf8").matchAll(/[([]\s*["`]([^"`\n]*\bS\d{1,2}\b[^"`\n]*)["`]/g))
      for (const [id] of name.matchAll(/\bS\d{1,2}\b/g)) named.add(id);
  }
}

let held = 0;
for (const [, ids, stands] of readFileSync(join(root, "SECURITY.md"), "utf8").matchAll(/^\| (S[\dS,– ]*?) +\|[^|]*\| (.*?) *\|$/gm)) {
  if (!stands.startsWith("holds")) continue;
  for (const id of idsOf(ids)) {
    held++;
    if (!named.has(id)) complain(`SECURITY.md: ${id} holds, and no test carries its id in its name`);
  }
}
if (held === 0) complain("SECURITY.md: there is no check that holds, so the table was not understood");

const FORBIDDEN = [
  [/\beval\(|\bnew Function\(|["']node:vm["']/, "code is not made of text (S28)"],
  [
    /\.(?:query|run)(?:<[^(\n]*>)?\(\s*`(?:[^`$]|\$\{[A-Z_]+\})*\$\{(?![A-Z_]+\})/,
    "a statement is a constant with parameters, not put together where it is sent (S23)",
  ],
];
for (const file of files(join(root, "packages"), ".ts")) {
  if (file.endsWith(".test.ts")) continue;
  const text = readFileSync(file, "utf8");
  for (const [form, why] of FORBIDDEN) if (form.test(text)) complain(`${relative(root, file)}: ${why}`);
}
console.log(`security: ${held} checks hold, ${wrong} complaint(s)`);
process.exitCode = wrong === 0 ? 0 : 1;

/**
 * Clock, timers and randomness only through runtime/, the environment only in the CLI's config, the console nowhere in
 * the library: so that a simulation can own time, and so that nothing but the telemetry speaks.
 * Looks at the syntax tree, so comments, strings and properties of other objects do not count.
 */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import ts from "typescript";

const library = "packages/pawl/src/";
const server = "packages/server/src/";
const postgres = `${library}store/postgres/`;
/** What owns real processes, sockets, files and threads (and `renewer.ts`, which tells a thread's time from ours). */
const owners = [
  `${library}runtime/`,
  `${postgres}drivers/`,
  `${postgres}embedded/`,
  `${postgres}settle/renewer.ts`,
  `${library}testing/`,
  "-thread.ts",
];

const time = { allowed: [...owners, server], instead: "take the Clock of runtime/time/clock.ts" };
const rules = {
  // The memory store's clock is a store's clock: the one place that says what time it is.
  "Date.now": { ...time, allowed: [...time.allowed, `${library}store/memory/index.ts`] },
  "new Date()": time,
  "performance.now": time,
  "process.hrtime": time,
  setTimeout: time,
  setInterval: time,
  setImmediate: time,
  "Math.random": time,
  "process.env": { allowed: [...owners, `${server}cli/`], instead: "pass it as an option" },
  console: { allowed: [`${server}cli/`, `${server}telemetry/`], instead: "emit an event on the bus" },
};
const exempt = /\.test\.ts$|\/conformance\//;

/** Yields [rule, node] for every forbidden global the tree refers to. */
function* uses(node) {
  if (ts.isPropertyAccessExpression(node) && ts.isIdentifier(node.expression)) {
    const name = `${node.expression.text}.${node.name.text}`;
    if (Object.hasOwn(rules, name)) yield [name, node];
    else if (node.expression.text === "console") yield ["console", node];
  } else if (ts.isNewExpression(node) && node.expression.getText() === "Date" && !node.arguments?.length) {
    yield ["new Date()", node];
  } else if (ts.isIdentifier(node) && Object.hasOwn(rules, node.text) && node.text !== "console" && !isNameOnly(node)) {
    yield [node.text, node];
  }
  for (const child of node.getChildren()) yield* uses(child);
}

/** `x.setTimeout` and `{ setTimeout: … }` are names of something else. */
function isNameOnly(node) {
  const { parent } = node;
  return (
    (ts.isPropertyAccessExpression(parent) && parent.name === node) ||
    ((ts.isPropertyAssignment(parent) || ts.isMethodDeclaration(parent) || ts.isMethodSignature(parent)) && parent.name === node)
  );
}

let found = 0;
const root = resolve(import.meta.dirname, "..");
const files = ts.sys.readDirectory(root, [".ts"], ["**/node_modules", "**/dist"], ["packages/*/src/**/*.ts"]);
for (const path of files) {
  const file = path.slice(root.length + 1);
  if (exempt.test(file)) continue;
  const source = ts.createSourceFile(file, readFileSync(path, "utf8"), ts.ScriptTarget.Latest, true);
  for (const [rule, node] of uses(source)) {
    if (rules[rule].allowed.some((allowed) => file.startsWith(allowed) || file.endsWith(allowed))) continue;
    const { line } = source.getLineAndCharacterOfPosition(node.getStart());
    console.error(`${file}:${line + 1}: ${rule} does not belong here: ${rules[rule].instead}`);
    found++;
  }
}
console.log(`globals: ${files.length} files, ${found} misuse(s)`);
process.exitCode = found === 0 ? 0 : 1;

/**
 * What tsc leaves behind: the migrations are read beside the compiled code, so they are published with it.
 * (`runtime/io/thread-source.mjs` is not: it starts threads from TypeScript, which the published code never does.)
 * And the command can be run by its path, as npm makes it where it installs it.
 */
import { chmodSync, cpSync, existsSync, readdirSync, rmSync, statSync } from "node:fs";
import { join, resolve } from "node:path";

const library = resolve(import.meta.dirname, "../packages/pawl");
const server = resolve(import.meta.dirname, "../packages/server");
const [dist = `${library}/dist`, command = `${server}/dist/cli/main.js`] = process.argv.slice(2);
cpSync(`${library}/src`, dist, { recursive: true, filter: (file) => file.endsWith(".sql") || statSync(file).isDirectory() });
// One that was renamed would be there twice, under one number, and the wrong one of the two might be run.
for (const file of readdirSync(dist, { recursive: true, encoding: "utf8" })) {
  if (file.endsWith(".sql") && !existsSync(join(library, "src", file))) rmSync(join(dist, file));
}
chmodSync(command, 0o755);

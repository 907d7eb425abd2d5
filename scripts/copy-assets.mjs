/**
 * What tsc leaves behind: the migrations are read beside the compiled code, so they are published with it.
 * (`runtime/thread-source.mjs` is not: it starts threads from TypeScript, which the published code never does.)
 */
import { cpSync, statSync } from "node:fs";
import { resolve } from "node:path";

const library = resolve(import.meta.dirname, "../packages/pawl");
const dist = process.argv[2] ?? `${library}/dist`;
cpSync(`${library}/src`, dist, { recursive: true, filter: (file) => file.endsWith(".sql") || statSync(file).isDirectory() });

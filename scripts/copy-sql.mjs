/** What tsc leaves behind: the migrations are read beside the compiled code, so they are published with it. */
import { cpSync, statSync } from "node:fs";
import { resolve } from "node:path";

const library = resolve(import.meta.dirname, "../packages/pawl");
cpSync(`${library}/src`, `${library}/dist`, { recursive: true, filter: (file) => file.endsWith(".sql") || statSync(file).isDirectory() });

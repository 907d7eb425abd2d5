import { transpile } from "./transpiled.js";

/** `transpile` as a process: prints the folder. */
process.stdout.write(await transpile());

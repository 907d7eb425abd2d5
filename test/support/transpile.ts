import { transpiled } from "./transpiled.js";

/** `transpiled` as a process: prints the folder. */
process.stdout.write(transpiled());

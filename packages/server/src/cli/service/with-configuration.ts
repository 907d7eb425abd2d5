import { ConfigError, problemLine } from "../../config/problem.js";
import { EXIT, type ExitCode } from "../exit.js";

/** Does what needs a good configuration. What is wrong with it is told in one line each, and is an exit code of its own. */
export async function withConfiguration(work: () => Promise<void>): Promise<ExitCode> {
  try {
    await work();
    return EXIT.done;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    for (const problem of error.problems) process.stderr.write(`pawl: ${problemLine(problem)}\n`);
    return EXIT.config;
  }
}

import { createInterface } from "node:readline/promises";
import { CliError, EXIT } from "./exit.js";
import type { Session } from "./session.js";

/** Asks before what cannot be taken back. Where nobody can answer, `--yes` must have been given. */
export async function confirm({ out, signal }: Session, question: string, yes: boolean | undefined): Promise<void> {
  if (yes === true) return;
  const { stdin, stderr } = out.io;
  if (stdin.isTTY !== true || stderr.isTTY !== true || out.json) {
    throw new CliError(
      EXIT.unconfirmed,
      "unconfirmed",
      `${question} Nothing was done: there is nobody to ask`,
      "give --yes to do it without being asked",
    );
  }
  const lines = createInterface({ input: stdin, output: process.stderr });
  try {
    const answer = await lines.question(`${question} [y/N] `, { signal });
    if (!/^y(es)?$/i.test(answer.trim())) throw new CliError(EXIT.unconfirmed, "unconfirmed", "nothing was done");
  } finally {
    lines.close();
  }
}

import { createInterface } from "node:readline";
import { CliError, EXIT } from "./exit.js";
import type { CommandSession } from "./session.js";

/** Asks before what cannot be taken back. Where nobody can answer, `--yes` must have been given. */
export async function confirm(session: CommandSession, question: string, yes: boolean | undefined): Promise<void> {
  if (yes === true) return;
  const { out } = session;
  const { stdin, stderr } = out.io;
  if (stdin.isTTY !== true || stderr.isTTY !== true || out.json) {
    throw new CliError(
      EXIT.unconfirmed,
      "unconfirmed",
      `${question} Nothing was done: there is nobody to ask`,
      "give --yes to do it without being asked",
    );
  }
  const { signal } = session;
  stderr.write(`${question} [y/N] `);
  // Without an output it leaves the terminal as it is, which shows what is typed and makes a signal of Ctrl-C.
  const lines = createInterface({ input: stdin, signal });
  try {
    // An input that ends says nothing, which is no.
    const { value: answer = "" } = (await lines[Symbol.asyncIterator]().next()) as { readonly value?: string };
    signal.throwIfAborted();
    if (!/^y(es)?$/i.test(answer.trim())) throw new CliError(EXIT.unconfirmed, "unconfirmed", "nothing was done");
  } finally {
    lines.close();
  }
}

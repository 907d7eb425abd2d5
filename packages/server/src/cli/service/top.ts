import type { ReadStream, WriteStream } from "node:tty";
import type { Command } from "commander";
import type { Act, CommandSession } from "../session.js";

export function build(command: Command, act: Act): void {
  command.option("--once", "print the queues as they are, and end").option("--every <time>", "between looks", "1s");
  act<TopFlags>(command, top);
}

interface TopFlags {
  readonly once?: boolean;
  readonly every: string;
}

/** In a terminal it stays; anywhere else it says once how things are. */
async function top(session: CommandSession, { once, every }: TopFlags): Promise<void> {
  const { out } = session;
  const { stdin, stdout } = out.io;
  const { period } = await import("../flags.js");
  const pace = Math.max(200, period("--every", every));
  const pawl = await session.pawl();
  if (once === true || out.json || !out.terminal || stdin.isTTY !== true) {
    const { snapshot } = await import("./top-once.js");
    return snapshot(session, pawl);
  }
  const { TopBoard } = await import("../../terminal/top/board.js");
  const board = new TopBoard(pawl, pace);
  await board.run(stdin as ReadStream, stdout as WriteStream, session.signal);
}

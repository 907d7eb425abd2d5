import type { SpawnOptions } from "node:child_process";
import type { Account } from "./account.js";
import { type Binaries, type ToolName, tool, toolEnvironment } from "./binaries.js";
import type { Folder } from "./folder.js";

/** Everything needed to run a server: where its files are, which program, as whom. */
export interface Site {
  readonly folder: Folder;
  readonly binaries: Binaries;
  readonly account: Account | undefined;
}

export interface Command {
  readonly file: string;
  readonly args: readonly string[];
  readonly options: SpawnOptions;
}

/**
 * A command of Postgres that works on the given data folder.
 *
 * As root the server is another user, to whom the data may be out of reach (/root is 0700). But a process keeps the
 * working directory it was started in, and on Linux /proc/self/cwd leads there without passing the folders above:
 * spawn enters the directory before it drops to the account, and Postgres, all of whose processes stay in their data
 * folder, calls it by that name. Reloads and restarts after a crash work too. Elsewhere the path must be reachable.
 */
export function dataCommand(site: Site, data: string, name: ToolName, args: (data: string) => string[], on = process): Command {
  const { binaries, account } = site;
  const path = account && on.platform === "linux" ? "/proc/self/cwd" : data;
  return {
    file: tool(binaries.home, name, on.platform),
    args: args(path),
    options: { ...account, cwd: data, env: toolEnvironment(binaries.home, on), windowsHide: true },
  };
}

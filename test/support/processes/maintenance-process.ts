import { spawn } from "node:child_process";
import { once } from "node:events";
import type { PruneRules } from "../../../packages/pawl/src/store/port/duties/prune.js";
import { type Database, serverFor } from "../servers/servers.js";
import { type StopPoint, TcpProxy } from "../servers/tcp-proxy.js";
import { childScript } from "./worker-process.js";

/** What such a process is to do. */
export interface MaintenanceOrder {
  readonly url: string;
  /** by that clock, with an export that appends ids to a file */
  readonly prune?: Omit<PruneRules, "exportFinished"> & { readonly now: number; readonly archive: string };
  /** the tenant */
  readonly purge?: string;
  /** the folder of the migrations */
  readonly migrations?: string;
}

/** A request at which such a process is killed; with `after`, the first one that comes after another. */
export interface KillPoint extends StopPoint {
  readonly after?: RegExp;
}

/** Starts a process that prunes, purges or migrates, waits until it stands at that point, and kills it with -9. */
export async function killedAt({ after, ...stop }: KillPoint, database: Database, upkeep: Omit<MaintenanceOrder, "url">): Promise<void> {
  const probe = serverFor("embedded18");
  if (!probe.available) throw new Error(probe.reason);
  const wire = await TcpProxy.before(probe.server.direct);
  const stopped = after === undefined ? wire.stopAt(stop) : wire.request(after).then(() => wire.stopAt(stop));
  const order: MaintenanceOrder = { url: wire.url(database.name), ...upkeep };
  const child = spawn(process.execPath, ["--enable-source-maps", await childScript("maintenance-child"), JSON.stringify(order)], {
    stdio: ["ignore", "ignore", "pipe", "ipc"],
  });
  let complaints = "";
  child.stderr?.on("data", (chunk: Buffer) => {
    complaints += chunk.toString();
  });
  const exited = once(child, "exit");
  const ended = exited.then(([code, signal]) => {
    throw new Error(`it ended with ${code ?? signal} before it could be killed: ${complaints}`);
  });
  ended.catch(() => {}); // of no interest once it was killed
  try {
    await Promise.race([stopped, ended]);
  } finally {
    child.kill("SIGKILL");
    await exited;
    await wire.close();
  }
}

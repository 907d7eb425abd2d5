import { spawn } from "node:child_process";
import * as fs from "node:fs";
import { pawlError } from "../../../core/values/error.js";
import { atExit } from "../../../runtime/process/signals.js";
import { type Endpoint, endpointSettings } from "./endpoint.js";
import { type Folder, giveToFolderOwner } from "./folder.js";
import { discardMistakenPidFile, dismissOrphans, findPostmaster, readPostmaster } from "./postmaster.js";
import { dataCommand, type Site } from "./site.js";
import { type Deadline, isPast, pause, until } from "./wait.js";

export type Settings = Readonly<Record<string, string>>;

/** For a laptop: durable above all, modest in memory, quiet in its log. */
const DEFAULTS: Settings = {
  fsync: "on",
  synchronous_commit: "on",
  full_page_writes: "on",
  max_connections: "200",
  shared_buffers: "256MB",
  timezone: "UTC",
  log_timezone: "UTC",
  log_destination: "stderr",
  logging_collector: "off",
  log_min_messages: "warning",
  log_checkpoints: "off",
};

const LOG_LIMIT_BYTES = 10 * 1024 * 1024;
const ORPHANS_END_MS = 100;

/** Starts a server on data that has none, and waits until it accepts connections. Answers its pid. */
export async function launch(site: Site, endpoint: Endpoint, settings: Settings, deadline: Deadline): Promise<number> {
  const { folder } = site;
  for (;;) {
    discardMistakenPidFile(folder.data);
    trimLog(folder);
    const before = sizeOf(folder.log);
    const result = await start(site, { ...DEFAULTS, ...endpointSettings(endpoint), ...settings }, deadline);
    if ("pid" in result) return result.pid;
    const said = fs.readFileSync(folder.log).subarray(before).toString();
    const orphaned = /shared memory block .* is still in use/.test(said);
    // The last server was killed so recently that it is not quite gone.
    const dying = /lock file "postmaster.pid" already exists/.test(said) && !findPostmaster(folder.data);
    if ((!orphaned && !dying) || isPast(deadline)) {
      const reason = lastComplaint(said) ?? result.reason;
      throw pawlError("embedded_failed", { folder: folder.path, log: folder.log, reason });
    }
    if (orphaned) dismissOrphans(folder.data);
    await pause(ORPHANS_END_MS);
  }
}

/** Keeps the log and one older part. By copying, since the server holds the file open. */
export function trimLog(folder: Folder): void {
  try {
    if (sizeOf(folder.log) <= LOG_LIMIT_BYTES) return;
    fs.copyFileSync(folder.log, `${folder.log}.old`);
    fs.truncateSync(folder.log);
  } catch {
    // a log that is too long is no reason to stop working
  }
}

/**
 * The server gets a process group of its own and writes to a file: neither Ctrl-C in our terminal nor our death
 * reaches it. It is left alone when the deadline passes: it may be recovering, and the next start finds that done.
 */
async function start(site: Site, settings: Settings, deadline: Deadline): Promise<{ pid: number } | { reason: string }> {
  const { data } = site.folder;
  const switches = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const command = dataCommand(site, data, "postgres", (path) => ["-D", path, ...switches]);
  const log = openLog(site.folder);
  const child = spawn(command.file, command.args, { ...command.options, detached: true, stdio: ["ignore", log, log] });
  fs.closeSync(log);
  child.unref();
  let ended: { reason: string } | undefined;
  child.once("error", (error) => (ended = { reason: error.message }));
  child.once("exit", (code, signal) => (ended = { reason: `it ended with ${code ?? signal}` }));
  // Until it has said in the folder who it is, whoever ends finds it by this alone.
  const stay = atExit(() => child.kill("SIGINT"));
  const answer = await until(() => {
    const server = readPostmaster(data);
    return server?.status === "ready" && server.pid === child.pid ? { pid: server.pid } : ended;
  }, deadline).finally(stay);
  return answer ?? { reason: "it was not ready in time" };
}

/** Never through a link: as root we would write wherever the folder's owner points. */
function openLog(folder: Folder): number {
  const { O_APPEND, O_CREAT, O_WRONLY, O_NOFOLLOW } = fs.constants;
  const log = fs.openSync(folder.log, O_APPEND | O_CREAT | O_WRONLY | (O_NOFOLLOW ?? 0), 0o600);
  giveToFolderOwner(folder, folder.log);
  return log;
}

function sizeOf(path: string): number {
  return fs.statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

function lastComplaint(log: string): string | undefined {
  const complaints = log.split("\n").filter((line) => /(FATAL|PANIC|ERROR|cannot|not permitted)/.test(line));
  return complaints.at(-1)?.replace(/^.*?(FATAL|PANIC|ERROR): +/, "");
}

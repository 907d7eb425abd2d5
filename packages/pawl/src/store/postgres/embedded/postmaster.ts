import { spawnSync } from "node:child_process";
import * as fs from "node:fs";
import { join } from "node:path";
import { commandOf, isAlive, isZombie, signal } from "./processes.js";
import { dataCommand, type Site } from "./site.js";
import { deadlineIn, until } from "./wait.js";

/** above the highest there is on Linux */
const NOBODYS_PID = "4194305";
const FAST_SHUTDOWN_MS = 30_000;
const IMMEDIATE_SHUTDOWN_MS = 5_000;
/** ms after which a server that says that it is stopping, and that nobody waits for, is taken for stuck */
const STUCK_STOP_MS = 10_000;

/** The first process of a server, as it describes itself in its pid file. */
export interface Postmaster {
  readonly pid: number;
  readonly status: string;
}

export function readPostmaster(data: string): Postmaster | undefined {
  try {
    const lines = fs.readFileSync(join(data, "postmaster.pid"), "utf8").split("\n");
    const pid = Number(lines[0]);
    return Number.isInteger(pid) && pid > 0 ? { pid, status: lines[7]?.trim() ?? "" } : undefined;
  } catch {
    return undefined;
  }
}

/** The server that runs on this data folder, whoever started it. */
export function findPostmaster(data: string): Postmaster | undefined {
  const described = readPostmaster(data);
  return described && isAlive(described.pid) && worksOn(described.pid, data) ? described : undefined;
}

/**
 * A pid file that survived its server, when another process has the pid by now, or when the dead server is a zombie.
 * Postgres would refuse to start; a pid nobody has, it handles itself, and better: it looks for processes the dead
 * server left behind.
 */
export function discardMistakenPidFile(data: string): void {
  const described = readPostmaster(data);
  if (!described) return;
  const file = join(data, "postmaster.pid");
  if (isZombie(described.pid)) fs.writeFileSync(file, fs.readFileSync(file, "utf8").replace(/^\d+/, NOBODYS_PID));
  else if (isAlive(described.pid) && !worksOn(described.pid, data)) fs.rmSync(file);
}

/** Ends what a killed server left running. Without a postmaster these can only end, but some are slow to notice. */
export function dismissOrphans(data: string): void {
  if (process.platform !== "linux") return;
  const pids = fs.readdirSync("/proc").map(Number).filter(Number.isInteger);
  for (const pid of pids.filter((each) => worksOn(each, data))) signal(pid, "SIGQUIT");
}

/** Ends all sessions, writes a checkpoint, and waits until the server is gone. */
export async function stopPostmaster(site: Site): Promise<void> {
  const { data } = site.folder;
  const server = findPostmaster(data);
  if (!server) return;
  askToStop(site, server);
  const gone = () => (isAlive(server.pid) ? undefined : true);
  if (await until(gone, deadlineIn(FAST_SHUTDOWN_MS))) return;
  signal(server.pid, "SIGQUIT");
  await until(gone, deadlineIn(IMMEDIATE_SHUTDOWN_MS));
}

/**
 * To be asked about a server for as long as it is waited for: one that does not end its stop is told to end at once. Postgres 18 stops for
 * ever if it is asked to while it starts anew after one of its backends has crashed. Nothing is lost: the next start recovers.
 */
export function stuckStopEnder(): (server: Postmaster) => void {
  let since: number | undefined;
  return ({ pid, status }) => {
    const now = performance.now();
    if (status !== "stopping") since = undefined;
    else since ??= now;
    if (since === undefined || now - since < STUCK_STOP_MS) return;
    signal(pid, "SIGQUIT");
    since = now;
  };
}

/** The same by a process that ends and can wait for nothing: the server is asked, and ends by itself. */
export function dismissPostmaster(site: Site): void {
  const server = findPostmaster(site.folder.data);
  if (server) askToStop(site, server);
}

function askToStop(site: Site, { pid }: Postmaster): void {
  if (process.platform === "win32") {
    // There a signal is a kill.
    const { file, args, options } = dataCommand(site, site.folder.data, "pg_ctl", (path) => ["stop", "-D", path, "-m", "fast", "--no-wait"]);
    spawnSync(file, args, { ...options, stdio: "ignore" });
  } else signal(pid, "SIGINT");
}

/** Every process of a server works in its data folder; another folder's server may have got the same pid. */
function worksOn(pid: number, data: string): boolean {
  if (process.platform === "win32") return true;
  const command = commandOf(pid);
  if (process.platform !== "linux") return command.includes("postgres") && command.includes(data);
  if (command !== "postgres") return false;
  try {
    const [its, ours] = [fs.statSync(`/proc/${pid}/cwd`), fs.statSync(data)];
    return its.ino === ours.ino && its.dev === ours.dev;
  } catch {
    return false;
  }
}

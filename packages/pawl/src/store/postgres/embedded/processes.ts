import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

/**
 * Names one process for ever: pid, machine boot and start time. A pid alone is given to another process sooner or
 * later (at once in containers, where everything is pid 1), and then a dead holder would look alive.
 * Contains no character that a file name could not hold.
 */
export type ProcessName = string;

/** The name of a running process, or undefined when none has this pid. */
export function nameOf(pid: number): ProcessName | undefined {
  if (!isAlive(pid)) return undefined;
  const born = birthOf(pid);
  return born === undefined ? undefined : `${pid}_${born}`;
}

export function ownName(): ProcessName {
  return nameOf(process.pid) ?? `${process.pid}_`;
}

export function pidOf(name: ProcessName): number {
  return Number.parseInt(name, 10);
}

export function isRunning(name: ProcessName): boolean {
  return nameOf(pidOf(name)) === name;
}

/** A zombie is dead: in containers whose first process does not reap, it stays in the table for ever. */
export function isAlive(pid: number): boolean {
  if (process.platform === "linux") return !["Z", "X", undefined].includes(procStat(pid)?.state);
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** Dead, and not yet taken note of: to a signal, and so to Postgres, it still looks alive. */
export function isZombie(pid: number): boolean {
  return process.platform === "linux" && procStat(pid)?.state === "Z";
}

export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // it is gone already
  }
}

/** The command of a process: its short name on Linux, the whole command line elsewhere. */
export function commandOf(pid: number): string {
  return (process.platform === "linux" ? procStat(pid)?.command : ps(pid, "command")) ?? "";
}

function birthOf(pid: number): string | undefined {
  if (process.platform === "linux") {
    const ticks = procStat(pid)?.startTicks;
    return ticks && `${bootId()}_${ticks}`;
  }
  if (process.platform === "win32") return "";
  const started = ps(pid, "lstart");
  return started && createHash("sha256").update(started).digest("hex").slice(0, 12);
}

interface ProcStat {
  readonly command: string;
  readonly state: string | undefined;
  readonly startTicks: string | undefined;
}

function procStat(pid: number): ProcStat | undefined {
  try {
    // "pid (command) state ppid …": the command may itself hold spaces and parentheses.
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    const end = text.lastIndexOf(")");
    const fields = text.slice(end + 2).split(" ");
    return { command: text.slice(text.indexOf("(") + 1, end), state: fields[0], startTicks: fields[19] };
  } catch {
    return undefined;
  }
}

function bootId(): string {
  return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").slice(0, 8);
}

function ps(pid: number, column: string): string | undefined {
  try {
    return execFileSync("ps", ["-o", `${column}=`, "-p", String(pid)], { encoding: "utf8", stdio: "pipe" }).trim();
  } catch {
    return undefined;
  }
}

import { readdirSync, readFileSync } from "node:fs";

/** Of Linux, and the same on every machine we know. */
const TICK_MS = 10;

/**
 * CPU ms spent by a process, its children, and the children it has seen end. Undefined where there is no /proc.
 * A Postgres server is a family: backends that closed are in its own count, the others are its children.
 */
export function familyCpuMs(pid: number): number | undefined {
  const own = timesOf(pid);
  if (own === undefined) return undefined;
  const children = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => timesOf(Number(name)) ?? [])
    .filter(({ parent }) => parent === pid);
  return (own.used + own.ofEnded + children.reduce((sum, { used }) => sum + used, 0)) * TICK_MS;
}

function timesOf(pid: number): { parent: number; used: number; ofEnded: number } | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // After the name, which is in brackets and may hold anything.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const at = (index: number) => Number(fields[index]);
    return { parent: at(1), used: at(11) + at(12), ofEnded: at(13) + at(14) };
  } catch {
    return undefined; // it has just ended, or this is no Linux
  }
}
